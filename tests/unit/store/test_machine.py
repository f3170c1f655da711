"""Any order of messages, steps, tools, stops, questions, drafts, sends and crashes keeps the store's promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hermes.core.errors import LostFence
from hermes.core.ids import InboxId, IntentId, QuestionId
from hermes.core.records import (
    Claim,
    Outcome,
    Question,
    StepResult,
    ToolEffect,
    ToolIntent,
    ToolOutcome,
    TurnCause,
    TurnFinish,
)
from hermes.core.transcript import (
    AssistantItem,
    Item,
    ToolCall,
    ToolResultItem,
    load_item,
    open_calls,
)
from hermes.store.database import InlineDatabase
from hermes.store.home import take_ownership
from tests.unit.store.machine_parts import Lane, asked, check_legal, done, idle, running, without_rows
from tests.unit.store.making import NOW, Store, answered, delivery, everybody, update

CHATS = st.sampled_from(("7", "8"))


class TheStore(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.db = InlineDatabase()
        self.store = Store.over(self.db)
        self.lanes: dict[str, Lane] = {}
        self.stale: list[Claim] = []
        self.accepted = 0
        self.outcomes: dict[int, str] = {}
        self.number = 0
        self.sending: set[int] = set()
        self.own()

    def own(self) -> None:
        self.db.generation = done(take_ownership(self.db, NOW)).generation

    # ---- the inbox ----

    @rule(chat=CHATS, again=st.booleans())
    def say(self, chat: str, again: bool) -> None:
        self.number += 1
        for repeat in range(1 + again):
            [accepted] = done(self.store.accept(update(self.number, chat=chat)))
            assert accepted.duplicate == bool(repeat)
        self.accepted += 1
        session = done(self.store.sessions.session_for(f"telegram:{chat}"))
        assert session is not None
        self.lanes.setdefault(chat, Lane(session))

    @rule(chat=CHATS)
    def begin_anew(self, chat: str) -> None:
        if chat in self.lanes:
            done(self.store.turns.new_generation(self.lanes[chat].session, NOW))

    # ---- turns ----

    @precondition(lambda self: self.lanes)
    @rule(data=st.data(), moves=st.integers(1, 8))
    def go_on(self, data: st.DataObject, moves: int) -> None:
        """What a lane does by itself, several moves at a time: deep states are what this is about."""
        chat, lane = self.pick(data, lambda lane: True)
        for _ in range(moves):
            if self.may_answer(lane):
                self.answer_the_question(data)
            elif idle(lane):
                self.claim(chat, lane, data.draw(st.sampled_from((True, True, True, False))))
            elif self.may_act(lane):
                self.run_a_tool(lane, data.draw(st.sampled_from((False, False, False, True))))
            elif asked(lane):
                draft = data.draw(st.sampled_from(("none", "sent", "unknown")))
                self.answer(lane, data.draw(st.integers(1, 3)), draft)
            else:
                self.ask_the_model(lane, data.draw(st.integers(0, 3)))

    def claim(self, chat: str, lane: Lane, allowed: bool) -> None:
        claim = done(self.store.turns.claim(lane.session, NOW, lambda row: allowed))
        if claim is None:
            return
        lane.claim, lane.step, lane.asked = claim, claim.step, False
        lane.rows = [int(r.id) for r in claim.rows]
        if claim.cause is not None or claim.parked:
            self.end(chat, Outcome.STOPPED, TurnCause.STOP)

    def ask_the_model(self, lane: Lane, calls: int) -> None:
        """A step's intent; with calls also its result."""
        claim = lane.claim
        assert claim is not None
        done(self.store.begin(claim if lane.rows else without_rows(claim), lane.step))
        lane.rows, lane.asked = [], True
        if calls:
            made = tuple(ToolCall(f"c{lane.step}.{n}", "t", "{}") for n in range(calls))
            done(
                self.store.turns.finish_step(
                    StepResult(claim.turn_id, claim.epoch, lane.step, AssistantItem("", made)), NOW
                )
            )
            lane.asked = False
        lane.step += 1

    def run_a_tool(self, lane: Lane, crash_inside: bool) -> None:
        claim, call = lane.claim, self.unanswered(lane)[0]
        assert claim is not None
        intent = IntentId(f"{claim.turn_id}:{call.call_id}")
        if call.call_id not in {s.call_id for s in claim.started}:
            record = ToolIntent(claim.turn_id, claim.epoch, 1, intent, call.call_id, "t", ToolEffect.ONCE)
            done(self.store.turns.start_tools([record], NOW))
        if crash_inside:
            self.crash()
            return
        result = ToolOutcome(claim.turn_id, intent, ToolResultItem(call.call_id, "t", "r"))
        taken = [done(self.store.turns.finish_tool(result, NOW)) for _ in range(2)]
        assert taken == [True, False]

    def answer(self, lane: Lane, parts: int, draft: str) -> None:
        claim = lane.claim
        assert claim is not None
        opened = claim.draft
        if draft != "none" and opened is None:
            opened = done(self.store.outbox.open_draft(claim.turn_id, claim.epoch, claim.address, NOW))
        if draft == "sent" and opened is not None:
            done(self.store.outbox.draft_receipt(opened.seq, "m", NOW))
        rows = done(self.store.turns.finish(answered(claim, *"abc"[:parts]), NOW))
        assert [r.part for r in rows] == list(range(parts))
        lane.claim = None

    @precondition(lambda self: self.which(running))
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        chat, lane = self.pick(data, running)
        assert lane.claim is not None
        late = self.open_intents(lane.claim)
        turn = lane.claim.turn_id
        self.end(chat, Outcome.FAILED_TOLD, None)
        for intent, call in late:
            result = ToolOutcome(turn, IntentId(intent), ToolResultItem(call, "t", "late"))
            assert not done(self.store.turns.finish_tool(result, NOW))

    @precondition(lambda self: self.which(running))
    @rule(data=st.data())
    def draft(self, data: st.DataObject) -> None:
        _, lane = self.pick(data, running)
        claim = lane.claim
        assert claim is not None
        if claim.draft is None:
            opened = done(self.store.outbox.open_draft(claim.turn_id, claim.epoch, claim.address, NOW))
            lane.claim = replace(claim, draft=opened)

    @precondition(lambda self: self.which(running))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        _, lane = self.pick(data, running)
        assert lane.claim is not None
        done(self.store.turns.release(lane.claim.turn_id, lane.claim.epoch, 1.0, NOW))
        lane.claim = None

    def end(self, chat: str, outcome: Outcome, cause: TurnCause | None) -> None:
        """What a lane writes: results for what is open, then T2."""
        lane = self.lanes[chat]
        claim = lane.claim
        assert claim is not None
        closing = tuple(ToolResultItem(c.call_id, c.name, "not finished") for c in self.unanswered(lane))
        done(
            self.store.turns.finish(
                TurnFinish(claim.turn_id, claim.epoch, outcome, items=closing, cause=cause), NOW
            )
        )
        lane.claim = None

    @rule(chat=CHATS)
    def stop(self, chat: str) -> None:
        lane = self.lanes.get(chat)
        if lane is None:
            return
        self.number += 1
        [line] = done(self.store.accept(update(self.number, "/stop", chat=chat)))
        self.accepted += 1
        done(self.store.turns.stop(lane.session, line.row.id, NOW))
        done(self.store.turns.end_suspended(lane.session, NOW))
        done(self.store.inbox.finish([line.row.id], Outcome.COMMAND, now=NOW))
        if lane.claim is not None:
            with pytest.raises(LostFence):
                done(self.store.turns.finish(answered(lane.claim, "too late"), NOW))
            self.end(chat, Outcome.STOPPED, TurnCause.STOP)

    # ---- questions ----

    @precondition(lambda self: self.which(self.may_act))
    @rule(data=st.data())
    def ask_the_person(self, data: st.DataObject) -> None:
        chat, lane = self.pick(data, self.may_act)
        claim, call = lane.claim, self.unanswered(lane)[0]
        assert claim is not None
        if call.call_id in {s.call_id for s in claim.started}:
            return
        intent = IntentId(f"{claim.turn_id}:{call.call_id}")
        record = ToolIntent(claim.turn_id, claim.epoch, 1, intent, call.call_id, "clarify", ToolEffect.ONCE)
        done(self.store.turns.start_tools([record], NOW))
        question = Question(
            QuestionId(0), lane.session, claim.turn_id, intent, call.call_id, "clarify", "?", (), NOW + 60
        )
        done(self.store.turns.suspend(claim.turn_id, claim.epoch, question, delivery("?", chat=chat), NOW))
        lane.claim = None
        assert done(self.store.turns.claim(lane.session, NOW, everybody)) is None

    def answer_the_question(self, data: st.DataObject) -> None:
        chat, lane = self.pick(data, self.may_answer)
        expired = data.draw(st.booleans())
        asked = done(self.store.turns.open_question(lane.session))
        assert asked is not None
        by: list[InboxId] = []
        if not expired:
            self.number += 1
            [accepted] = done(self.store.accept(update(self.number, "yes", chat=chat)))
            self.accepted += 1
            by = [accepted.row.id]
        assert done(self.store.turns.answer_question(asked.id, "yes", by, NOW, expired=expired))

    # ---- delivery ----

    @precondition(lambda self: done(self.store.outbox.pending()))
    @rule(end=st.sampled_from(("delivered", "put back", "buried", "held", "still sending")))
    def send_something(self, end: str) -> None:
        under_way = {r[0] for r in self.db.conn.execute("SELECT delivery_id FROM outbox WHERE state='sending'")}
        pending = [r for r in done(self.store.outbox.pending()) if r.delivery_id not in under_way]
        if not pending:
            return  # the courier sends the parts of a delivery strictly one after the other
        seq = pending[0].seq
        assert done(self.store.outbox.start_sending(seq, NOW))
        assert not done(self.store.outbox.start_sending(seq, NOW))
        if end == "delivered":
            done(self.store.outbox.delivered(seq, "m", NOW))
        elif end == "put back":
            done(self.store.outbox.put_back(seq, not_before=NOW, attempts=1, marked=False, now=NOW))
        elif end == "buried":
            done(self.store.outbox.bury(seq, "x", NOW))
        elif end == "held":
            done(self.store.outbox.hold(seq, "x", NOW))
        else:
            self.sending.add(seq)

    # ---- crashes ----

    @rule()
    def crash(self) -> None:
        for lane in self.lanes.values():
            if lane.claim is not None:
                self.stale.append(lane.claim)
            lane.claim = None
        self.own()
        creates = {
            r[0]
            for r in self.db.conn.execute("SELECT seq FROM outbox WHERE state='sending' AND operation='create'")
        }
        done(self.store.outbox.recover("mark", NOW))
        for (marked,) in self.db.conn.execute(
            f"SELECT mark FROM outbox WHERE seq IN ({','.join(map(str, creates)) or 'NULL'})"
        ):
            assert marked == 1, "a create of unknown outcome goes out again without its mark"
        self.sending.clear()

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def a_ghost_writes(self, data: st.DataObject) -> None:
        """A task of an earlier process: its turn was claimed again or ended."""
        ghost = data.draw(st.sampled_from(self.stale))
        now_at = self.db.conn.execute("SELECT epoch, state FROM turns WHERE id=?", (ghost.turn_id,)).fetchone()
        if now_at == (ghost.epoch, "running"):
            return  # nobody has claimed it since: to the store it is still the owner
        assert now_at[0] > ghost.epoch or now_at[1] != "running"
        with pytest.raises(LostFence):
            done(self.store.turns.finish(answered(ghost, "from beyond"), NOW))
        with pytest.raises(LostFence):
            done(self.store.begin(without_rows(ghost), 9))

    # ---- what always holds ----

    def unanswered(self, lane: Lane) -> tuple[ToolCall, ...]:
        return open_calls(tuple(map(load_item, done(self.store.turns.transcript(lane.session)))))

    @invariant()
    def every_row_is_there_with_at_most_one_outcome(self) -> None:
        rows = self.db.conn.execute("SELECT id, state, outcome FROM inbox").fetchall()
        assert len(rows) == self.accepted
        for row, state, outcome in rows:
            assert (state == "done") == (outcome is not None)
            assert self.outcomes.setdefault(row, outcome or "") in ("", outcome), "an outcome changed"
            self.outcomes[row] = outcome or ""

    @invariant()
    def a_claimed_row_has_an_open_turn_and_a_session_at_most_one(self) -> None:
        c = self.db.conn
        assert c.execute(
            "SELECT count(*) FROM inbox i LEFT JOIN turns t ON t.id=i.turn_id "
            "WHERE i.state='claimed' AND (t.id IS NULL OR t.state='done')"
        ).fetchone() == (0,)
        assert c.execute(
            "SELECT coalesce(max(n), 0) < 2 FROM (SELECT count(*) n FROM turns WHERE state<>'done' GROUP BY session_id)"
        ).fetchone() == (1,)

    @invariant()
    def what_a_finished_turn_opened_is_closed(self) -> None:
        for table in ("journal", "ledger"):
            is_open = "open=1" if table == "journal" else "x.state='open'"
            assert self.db.conn.execute(
                f"SELECT count(*) FROM {table} x JOIN turns t ON t.id=x.turn_id WHERE {is_open} AND t.state='done'"
            ).fetchone() == (0,)
        assert self.db.conn.execute(
            "SELECT count(*) FROM outbox o JOIN turns t ON t.id=o.turn_id WHERE o.state='drafting' AND t.state='done'"
        ).fetchone() == (0,)

    @invariant()
    def the_transcript_is_legal(self) -> None:
        found: dict[tuple[str, int], list[Item]] = {}
        for session, generation, item in self.db.conn.execute(
            "SELECT session_id, generation, item FROM messages ORDER BY seq"
        ):
            found.setdefault((session, generation), []).append(load_item(item))
        for items in found.values():
            check_legal(items)

    @invariant()
    def a_deliverys_parts_are_in_order_and_nothing_overtakes_an_end(self) -> None:
        parts: dict[int, list[tuple[int, str]]] = {}
        for delivery_id, part, state in self.db.conn.execute(
            "SELECT delivery_id, part, state FROM outbox ORDER BY seq"
        ):
            parts.setdefault(delivery_id, []).append((part, state))
        for found in parts.values():
            assert [p for p, _ in found] == list(range(len(found)))
            ended = [n for n, (_, state) in enumerate(found) if state in ("failed", "held")]
            assert all(s in ("failed", "held", "withdrawn") for _, s in found[ended[0] :]) if ended else True

    def teardown(self) -> None:
        """After a last crash every row can be brought to its end."""
        self.crash()
        for chat, lane in self.lanes.items():
            asked = done(self.store.turns.open_question(lane.session))
            if asked is not None:
                done(self.store.turns.answer_question(asked.id, "expired", (), NOW, expired=True))
            for _ in range(50):
                claim = done(self.store.turns.claim(lane.session, NOW, everybody))
                if claim is None:
                    break
                lane.claim = claim
                self.end(chat, Outcome.STOPPED if claim.cause else Outcome.FAILED_TOLD, claim.cause)
        self.every_row_is_there_with_at_most_one_outcome()
        self.the_transcript_is_legal()
        assert "" not in self.outcomes.values(), "a row was never ended"
        self.db.conn.close()


    # ---- who can do what ----

    def which(self, able: Callable[[Lane], bool]) -> list[str]:
        return [chat for chat, lane in self.lanes.items() if able(lane)]

    def pick(self, data: st.DataObject, able: Callable[[Lane], bool]) -> tuple[str, Lane]:
        chat = data.draw(st.sampled_from(self.which(able)))
        return chat, self.lanes[chat]

    def may_act(self, lane: Lane) -> bool:
        return running(lane) and bool(self.unanswered(lane))

    def may_answer(self, lane: Lane) -> bool:
        return done(self.store.turns.open_question(lane.session)) is not None

    def open_intents(self, claim: Claim) -> list[tuple[str, str]]:
        return self.db.conn.execute(
            "SELECT intent_id, call_id FROM journal WHERE turn_id=? AND kind='tool' AND open=1", (claim.turn_id,)
        ).fetchall()


TestTheStore = TheStore.TestCase
TestTheStore.settings = settings(stateful_step_count=60, phases=(Phase.generate, Phase.shrink))
