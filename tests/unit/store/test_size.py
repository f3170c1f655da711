"""Ten thousand sessions and a hundred thousand messages: what runs for every message looks at few rows."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from hermes.core.ids import InboxId, IntentId, QuestionId
from hermes.core.records import (
    Outcome,
    Question,
    StepResult,
    ToolEffect,
    ToolIntent,
    ToolOutcome,
)
from hermes.core.transcript import AssistantItem, ToolCall, ToolResultItem, UserItem, dump_item
from hermes.store.database import InlineDatabase
from hermes.store.home import take_ownership
from tests.unit.store.making import NOW, Store, answered, delivery

SESSIONS, MESSAGES = 10_000, 100_000
SMALL = ("owner", "chat_bans", "stranger_counts", "questions", "CONSTANT")
"""Tables that a full look at costs nothing: one row, or a row a person or ban."""
SCAN = re.compile(r"^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")
PARTIAL = {"inbox_open", "inbox_turn", "inbox_dead", "outbox_open", "outbox_dead", "turns_open", "questions_open"}
"""Indexes that hold only rows with something left to do: reading one whole is reading what is due."""


def fill(conn: sqlite3.Connection) -> None:
    """Finished conversations: each message with its inbox row, turn, journal, ledger and reply."""
    half = MESSAGES // 2
    conn.execute("BEGIN")
    conn.executemany(
        "INSERT INTO sessions(id, principal_id, created_at, last_active_at) VALUES(?,?,?,?)",
        ((f"s{i}", f"p{i % 5000}", NOW, NOW + i) for i in range(SESSIONS)),
    )
    conn.executemany(
        "INSERT INTO session_keys VALUES(?,?)", ((f"telegram:k{i}", f"s{i}") for i in range(SESSIONS))
    )
    conn.executemany(
        "INSERT INTO messages(session_id, generation, principal_id, turn_id, step, item, text, created_at) "
        "VALUES(?,1,?,?,1,?,?,?)",
        (
            (f"s{i % SESSIONS}", f"p{i % 5000}", i // 2, dump_item(UserItem(f"words {i}")), f"words {i}", NOW)
            for i in range(MESSAGES)
        ),
    )
    conn.executemany(
        "INSERT INTO inbox(platform, account, dedup_key, session_id, principal_id, user_id, chat_id, chat_kind, raw, "
        "state, outcome, received_at, turn_id, done_at) "
        "VALUES('telegram','1',?,?,?,?,?,'private','{}','done','answered',?,?,?)",
        (
            (f"k{i}", f"s{i % SESSIONS}", f"p{i % 5000}", str(i % 5000), str(i % 5000), NOW, i, NOW)
            for i in range(half)
        ),
    )
    conn.executemany(
        "INSERT INTO seen_keys VALUES('telegram','1',?,?)", ((f"k{i}", NOW) for i in range(half))
    )
    conn.executemany(
        "INSERT INTO turns(session_id, principal_id, generation, epoch, state, platform, account, chat_id, "
        "claim_generation, created_at, ended_at) VALUES(?,?,1,1,'done','telegram','1',?,0,?,?)",
        ((f"s{i % SESSIONS}", f"p{i % 5000}", str(i % 5000), NOW, NOW) for i in range(half)),
    )
    conn.executemany("INSERT INTO turn_inputs VALUES(?,?,1)", ((i + 1, i + 1) for i in range(half)))
    conn.executemany(
        "INSERT INTO journal(turn_id, epoch, step, kind, open, at) VALUES(?,1,1,'model',0,?)",
        ((i + 1, NOW) for i in range(half)),
    )
    conn.executemany(
        "INSERT INTO ledger(turn_id, day, provider, model, purpose, state, at) "
        "VALUES(?,'x','p','m','turn','settled',?)",
        ((i + 1, NOW) for i in range(half)),
    )
    conn.executemany(
        "INSERT INTO outbox(delivery_id, part, session_id, platform, account, chat_id, operation, priority, payload, "
        "nonce, state, expires_at, turn_id, created_at, done_at) "
        "VALUES(?,0,?,'telegram','1',?,'create','final','{}','',?,?,?,?,?)",
        (
            (i + 1, f"s{i % SESSIONS}", str(i % 5000), "delivered" if i % 1000 else "failed", NOW, i + 1, NOW, NOW)
            for i in range(half)
        ),
    )
    conn.execute("COMMIT")


@pytest.fixture(scope="module")
def large() -> Iterator[InlineDatabase]:
    db = InlineDatabase()
    fill(db.conn)
    yield db
    db.conn.close()


async def one_of_everything(s: Store) -> None:
    """Every statement that a message, a command, a start or the housekeeping runs."""
    await take_ownership(s.db, NOW)
    first, session = await s.say(1)
    for number in (2, 3):
        await s.say(number)
    await s.inbox.defer(first, 0.0)
    await s.inbox.count_failure(first, "x", 0.0)
    await s.inbox.backlog()
    await s.inbox.replace("telegram", "1", "1", InboxId(first + 1), NOW)
    claim = await s.claim(session)
    await s.begin(claim)
    draft = await s.outbox.open_draft(claim.turn_id, claim.epoch, claim.address, NOW)
    await s.outbox.draft_receipt(draft.seq, "r", NOW)
    call = ToolCall("c1", "t", "{}")
    asks = AssistantItem("", (call,))
    await s.turns.finish_step(StepResult(claim.turn_id, claim.epoch, 1, asks), NOW)
    intent = IntentId("i1")
    await s.turns.start_tools(
        [ToolIntent(claim.turn_id, claim.epoch, 1, intent, "c1", "t", ToolEffect.ONCE)], NOW
    )
    await take_ownership(s.db, NOW)
    claim = await s.claim(session)
    question = Question(QuestionId(0), session, claim.turn_id, intent, "c1", "clarify", "?", (), NOW + 5)
    await s.turns.suspend(claim.turn_id, claim.epoch, question, delivery("?"), NOW)
    asked = await s.turns.open_question(session)
    assert asked is not None
    await s.turns.sessions_with_questions()
    await s.turns.expired_questions(NOW + 9)
    answer, _ = await s.say(4)
    await s.turns.answer_question(asked.id, "yes", [answer], NOW)
    claim = await s.claim(session)
    await s.turns.finish_tool(ToolOutcome(claim.turn_id, intent, ToolResultItem("c1", "t", "ok")), NOW)
    await s.begin(claim, 2)
    await s.turns.transcript(session)
    await s.turns.unfinished_sessions()
    await deliveries_through_their_states(s, answered(claim, "a", "b"))
    await commands_and_looks(s)


async def deliveries_through_their_states(s: Store, finish: object) -> None:
    rows = await s.turns.finish(finish, NOW)  # type: ignore[arg-type]
    seq, turn = rows[0].seq, rows[0].turn_id
    assert turn is not None
    await s.outbox.pending()
    await s.outbox.start_sending(seq, NOW)
    await s.outbox.put_back(seq, not_before=0.0, attempts=1, marked=False, now=NOW)
    await s.outbox.start_sending(seq, NOW)
    for uncertain in ("mark", "hold"):
        await s.outbox.recover(uncertain, NOW)
    await s.outbox.delivered(seq, "r", NOW)
    await s.outbox.bury(rows[1].seq, "x", NOW)
    await s.outbox.dead_letters()
    await s.outbox.retry(rows[0].delivery_id, NOW)
    await s.outbox.withdraw(turn, NOW)
    await s.outbox.drop(rows[0].delivery_id, NOW)


async def commands_and_looks(s: Store) -> None:
    row, session = await s.say(5)
    await s.turns.stop(session, InboxId(row + 1), NOW)
    await s.turns.end_suspended(session, NOW)
    row, _ = await s.say(6)
    await s.inbox.finish([row], Outcome.DEAD_LETTER, now=NOW)
    await s.inbox.dead_letters()
    await s.inbox.revive(row)
    await s.inbox.drop(row, NOW)
    claim = await s.claim(session)
    await s.turns.release(claim.turn_id, claim.epoch, 1.0, NOW)
    await s.turns.new_generation(session, NOW)
    await s.turns.cut_history(session, 3)
    await s.sessions.history(session, 0, 5)
    await s.sessions.index_new_text()
    await s.sessions.overview(claim.principal_id, 5)
    await s.sessions.session_for("telegram:7")
    await s.sessions.deliveries("telegram", "7", 0, 5)
    await s.sessions.said("telegram", "7", 0, 5)
    await s.sessions.recent_positions("telegram", "7", 5)
    await s.sessions.figures()


async def test_no_statement_of_a_messages_way_reads_a_whole_table(large: InlineDatabase) -> None:
    said: dict[str, None] = {}
    large.conn.set_trace_callback(lambda sql: said.setdefault(sql))
    await one_of_everything(Store.over(large))
    large.conn.set_trace_callback(None)
    looked_at = [sql for sql in said if sql.split()[0] in ("SELECT", "UPDATE", "DELETE", "INSERT")]
    assert len(looked_at) > 80, "the statements were not seen"
    whole = []
    for sql in looked_at:
        for (*_, step) in large.conn.execute(f"EXPLAIN QUERY PLAN {sql}"):
            scan = SCAN.match(step)
            if scan and scan[1] not in SMALL and scan[2] not in PARTIAL and not _counts_sessions(sql):
                whole.append(f"{step}  <-  {sql[:300]}")
    harmless = ("SCAN s  ", "SCAN (", "SCAN messages_fts", "SCAN main.messages_fts_config")  # the last: one row
    assert [w for w in whole if not w.startswith(harmless)] == []


def _counts_sessions(sql: str) -> bool:
    """One count over an index of 10,000 entries, well under a millisecond."""
    return sql == "SELECT count(*), NULL FROM sessions"


@pytest.mark.parametrize(
    ("name", "bound"), [("figures", 0.005), ("unfinished", 0.005), ("backlog", 0.005), ("claim", 0.005)]
)
async def test_what_runs_every_few_seconds_stays_cheap(large: InlineDatabase, name: str, bound: float) -> None:
    s = Store.over(large)
    looks: dict[str, Callable[[], Awaitable[object]]] = {
        "figures": s.sessions.figures,
        "unfinished": s.turns.unfinished_sessions,
        "backlog": s.inbox.backlog,
        "claim": lambda: s.turns.claim("s1", NOW, lambda row: True),  # type: ignore[arg-type]
    }
    best = 1.0
    for _ in range(5):
        began = time.thread_time()
        await looks[name]()
        best = min(best, time.thread_time() - began)
    assert best < bound, f"{name}: {best * 1000:.1f} ms of processor time"
