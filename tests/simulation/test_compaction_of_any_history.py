"""The compactor over the real store, for any history, window and summariser: it ends, makes room, loses nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.account import Money
from hermes.agent.compactor import CompactionSettings, Compactor, Frame, TurnCompaction
from hermes.agent.fitting import Fit
from hermes.agent.pipeline import Pipeline, with_policy
from hermes.agent.summariser import Quiet, Summariser
from hermes.agent.targets import Ask, Target, UpstreamBook
from hermes.core.events import Address
from hermes.core.ids import SessionId, TurnId
from hermes.core.principals import PrincipalId
from hermes.core.records import Claim
from hermes.core.transcript import Item, ToolResultItem, dump_item
from hermes.policy.compaction import FREE, reserve_for
from hermes.policy.estimate import prompt_measure, tokens
from hermes.policy.recovery import RecoveryPolicy
from hermes.policy.trim import inviolable, is_summary, item_tokens, last_question
from hermes.runtime.redaction import Redactor
from hermes.runtime.virtual import VirtualClock, VirtualLoop
from hermes.store.database import InlineDatabase
from hermes.store.ledger import SqliteLedger
from hermes.store.snapshots import SqliteSnapshots
from tests.simulation.windows import ANSWERS, WindowedModel
from tests.unit.policy.histories import legal
from tests.unit.policy.test_compaction import long_histories

pytestmark = pytest.mark.simulation

SESSION, TURN = SessionId("s"), TurnId(1)


def disk(items: tuple[Item, ...]) -> InlineDatabase:
    """A store with one running turn and its history; a summary's note is no row."""
    db = InlineDatabase()
    db.conn.execute("INSERT INTO sessions(id, principal_id, created_at, last_active_at) VALUES ('s', 'p', 0, 0)")
    db.conn.execute(
        "INSERT INTO turns(id, session_id, principal_id, generation, epoch, state, platform, account, chat_id, "
        "claim_generation, created_at) VALUES (1, 's', 'p', 1, 1, 'running', 'x', 'y', 'z', 1, 0)"
    )
    db.conn.executemany(
        "INSERT INTO messages(session_id, generation, principal_id, turn_id, step, item, text, created_at) "
        "VALUES ('s', 1, 'p', 1, 1, ?, '', 0)",
        [(dump_item(item),) for item in items],
    )
    return db


def compacting(db: InlineDatabase, model: WindowedModel, known: bool, protect: int) -> tuple[Pipeline, TurnCompaction]:
    """What a turn has; call it inside a running loop."""
    clock = VirtualClock(asyncio.get_running_loop())
    target = Target(model, "m", model.window if known else None)
    pipeline = Pipeline(
        [target], with_policy(RecoveryPolicy(()), [target]), clock, lambda: 0.5, upstreams=UpstreamBook()
    )
    money = Money(SqliteLedger(db), clock)
    summariser = Summariser(pipeline.beside([target], pipeline.policy), clock, Redactor().redact, timeout=60.0)
    settings = CompactionSettings(protect_last_n=protect)
    compactor = Compactor(SqliteSnapshots(db), pipeline, summariser, money, clock, settings)
    claim = Claim(TURN, SESSION, PrincipalId("p"), 1, False, Address("x", "y", "z"), (), (), 1, 0.0)
    deadline = clock.monotonic() + 1_800
    return pipeline, compactor.turn(claim, Frame("You are Hermes.", ()), Quiet(), deadline, money.open(TURN))


def run(what: Any) -> Any:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(1_800_000_000.0)) as runner:
        return runner.run(what)


@given(data=st.data())
def test_any_history_is_compacted_within_bounds_and_stays_as_it_was_on_disk(data: st.DataObject) -> None:
    window = data.draw(st.sampled_from([4_096, 16_000, 128_000, 1_000_000, 2_000_000]))
    items = tuple(i for i in data.draw(long_histories(window)) if not is_summary(i))
    model = WindowedModel(window, data.draw(st.sampled_from(sorted(ANSWERS))))
    db = disk(items)
    before = db.conn.execute("SELECT * FROM messages ORDER BY seq").fetchall()

    async def compact() -> tuple[tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]:
        pipeline, turn = compacting(db, model, True, data.draw(st.integers(0, 40)))
        live = await turn.before_step(items)
        fit = Fit(Ask("You are Hermes.", live, ()), counts=pipeline.tokens.calibration)
        request = fit.request(pipeline.targets[0], 0.75)
        disk_now = await SqliteSnapshots(db).live(SESSION)
        return live, request.items, tuple(json.loads(text)["x"] for text in disk_now.items)

    live, sent, on_disk = run(compact())
    assert db.conn.execute("SELECT * FROM messages ORDER BY seq").fetchall() == before
    assert on_disk == tuple(item.text for item in live), "the next turn sees the same"
    question = last_question(items)
    assert question is None or items[question] in sent
    assert len(model.asked_for_summaries) <= 2 * 8
    must = sum(item_tokens(items[i]) for i in inviolable(items) if not isinstance(items[i], ToolResultItem))
    results = sum(200 for i in inviolable(items) if isinstance(items[i], ToolResultItem))
    if not model.requests and must + results + 40 < 0.6 * window:
        used = tokens(prompt_measure("You are Hermes.", sent)) + reserve_for(window, None)
        assert used <= (1 - FREE) * window + 8
    db.conn.close()


@given(items=legal(), answer=st.sampled_from(sorted(ANSWERS)), window=st.integers(300, 3_000))
def test_after_an_overflow_whatever_comes_back_is_legal_and_on_disk(
    items: tuple[Item, ...], answer: str, window: int
) -> None:
    items = tuple(i for i in items if not is_summary(i))
    db = disk(items)

    async def compact() -> tuple[Item, ...] | None:
        _, turn = compacting(db, WindowedModel(4_000, answer), False, 20)
        assert await turn.before_step(items) == items, "nothing is known of the window"
        return await turn.after_overflow(window)

    shorter = run(compact())
    if shorter is not None:
        question = last_question(items)
        assert question is None or items[question] in shorter
        waiting: set[str] = set()
        for item in shorter:
            if isinstance(item, ToolResultItem):
                assert item.call_id in waiting
            waiting = waiting | {c.call_id for c in getattr(item, "tool_calls", ())}
    db.conn.close()
