"""What the ports promise about stopping, questions and deliveries, over both databases (R12–R14, R17–R20)."""

from __future__ import annotations

import pytest

from hermes.core.delivery import Operation
from hermes.core.errors import LostFence
from hermes.core.ids import InboxId, IntentId, QuestionId
from hermes.core.records import (
    OutboxState,
    Outcome,
    Question,
    StepResult,
    ToolEffect,
    ToolIntent,
    TurnCause,
    TurnFinish,
)
from hermes.core.transcript import AssistantItem, ToolCall, ToolResultItem, ToolStatus, load_item
from tests.unit.store.making import NOW, Store, address, answered, delivery, everybody, states

# ---- stop and questions ----------------------------------------------------------------------------


async def test_stop_ends_what_was_queued_before_its_line_and_nothing_after(store: Store) -> None:
    _, session = await store.say(1)
    line, _ = await store.say(2)
    await store.say(3)
    stopped = await store.turns.stop(session, line, NOW)
    assert (stopped.queued, stopped.running) == (1, False)
    assert [s for s, _ in await states(store)] == ["done", "new", "new"]


async def test_an_answer_after_stop_loses_and_an_answer_before_it_is_withdrawn(store: Store) -> None:
    rows = await store.answer(1)
    _, session = await store.say(2)
    claim = await store.claim(session)
    stopped = await store.turns.stop(session, InboxId(99), NOW)
    assert (stopped.running, stopped.withdrawn) == (True, 1)
    assert not await store.outbox.start_sending(rows[0].seq, NOW)
    with pytest.raises(LostFence):
        await store.turns.finish(answered(claim, "too late"), NOW)
    end = TurnFinish(claim.turn_id, claim.epoch, Outcome.STOPPED, cause=TurnCause.STOP)
    assert await store.turns.finish(end, NOW) == []


async def suspended(store: Store) -> Question:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim)
    call = ToolCall("c1", "clarify", "{}")
    await store.turns.finish_step(
        StepResult(claim.turn_id, claim.epoch, 1, AssistantItem("", (call,))), NOW
    )
    intent = ToolIntent(claim.turn_id, claim.epoch, 1, IntentId("i"), "c1", "clarify", ToolEffect.ONCE)
    await store.turns.start_tools([intent], NOW)
    question = Question(
        QuestionId(0), session, claim.turn_id, IntentId("i"), "c1", "clarify", "Which?", ("a", "b"), NOW + 60
    )
    await store.turns.suspend(claim.turn_id, claim.epoch, question, delivery("Which?"), NOW)
    asked = await store.turns.open_question(session)
    assert asked is not None
    return asked


async def test_a_suspended_turn_is_claimed_again_only_after_its_answer(store: Store) -> None:
    asked = await suspended(store)
    assert asked.options == ("a", "b")
    assert await store.turns.sessions_with_questions() == {asked.session_id}
    assert await store.turns.claim(asked.session_id, NOW, everybody) is None
    row, _ = await store.say(2)
    assert await store.turns.answer_question(asked.id, "a", [row], NOW)
    assert not await store.turns.answer_question(asked.id, "b", [row], NOW)
    claim = await store.claim(asked.session_id)
    assert load_item(claim.history[-1]) == ToolResultItem("c1", "clarify", "a", ToolStatus.OK)
    assert (await states(store))[1] == ("done", "answered_question")


async def test_an_expired_question_lets_the_turn_go_on_with_an_error(store: Store) -> None:
    asked = await suspended(store)
    assert await store.turns.expired_questions(NOW) == []
    [expired] = await store.turns.expired_questions(NOW + 61)
    assert await store.turns.answer_question(expired.id, "Nobody answered.", (), NOW + 61, expired=True)
    last = load_item((await store.claim(asked.session_id)).history[-1])
    assert isinstance(last, ToolResultItem)
    assert last.status is ToolStatus.ERROR


async def test_stop_closes_the_question_and_its_turn_is_ended_by_its_lane(store: Store) -> None:
    asked = await suspended(store)
    assert await store.turns.end_suspended(asked.session_id, NOW) == 1
    assert await store.turns.open_question(asked.session_id) is None
    assert (await store.claim(asked.session_id)).cause is TurnCause.STOP


# ---- delivery --------------------------------------------------------------------------------------


async def test_a_draft_with_a_receipt_becomes_an_edit_and_keeps_its_place(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim)
    draft = await store.outbox.open_draft(claim.turn_id, claim.epoch, claim.address, NOW)
    await store.outbox.draft_receipt(draft.seq, "m9", NOW)
    resumed = await store.claim(session)
    assert resumed.draft is not None
    assert resumed.draft.receipt == "m9"
    rows = await store.turns.finish(answered(resumed, "one", "two"), NOW)
    assert [(r.seq == draft.seq, r.part, r.operation, r.marked) for r in rows] == [
        (True, 0, Operation.EDIT, False), (False, 1, Operation.CREATE, False),
    ]  # fmt: skip
    assert len({r.delivery_id for r in rows}) == 1


async def test_a_draft_whose_first_send_is_unknown_becomes_a_marked_create(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim)
    draft = await store.outbox.open_draft(claim.turn_id, claim.epoch, claim.address, NOW)
    [row] = await store.turns.finish(answered(claim, "one"), NOW)
    assert (row.seq, row.operation, row.marked) == (draft.seq, Operation.CREATE, True)


async def test_a_draft_certainly_not_sent_leaves_no_trace(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    draft = await store.outbox.open_draft(claim.turn_id, claim.epoch, claim.address, NOW)
    await store.outbox.discard_draft(draft.seq, NOW)
    assert await store.rows("SELECT count(*) FROM outbox") == [(0,)]


async def test_a_part_is_sent_only_from_pending_and_put_back_only_from_sending(store: Store) -> None:
    [row] = await store.outbox.enqueue([delivery("x")], NOW)
    assert [await store.outbox.start_sending(row.seq, NOW) for _ in range(2)] == [True, False]
    await store.outbox.put_back(row.seq, not_before=NOW + 30, attempts=1, marked=True, now=NOW)
    [again] = await store.outbox.pending()
    assert (again.attempts, again.marked, again.not_before) == (1, True, NOW + 30)
    await store.outbox.start_sending(row.seq, NOW)
    await store.outbox.delivered(row.seq, "m1", NOW)
    assert await store.outbox.pending() == []
    assert await store.rows("SELECT state, receipt FROM outbox") == [("delivered", "m1")]


async def test_a_failed_part_takes_the_later_parts_of_its_own_delivery_only(store: Store) -> None:
    rows = await store.outbox.enqueue([delivery("a", "b", "c"), delivery("d")], NOW)
    await store.outbox.start_sending(rows[1].seq, NOW)
    await store.outbox.bury(rows[1].seq, "no such chat", NOW)
    assert [r.payload for r in await store.outbox.pending()] == ["a", "d"]
    assert [r.payload for r in await store.outbox.dead_letters()] == ["b", "c"]
    retried = await store.outbox.retry(rows[0].delivery_id, NOW)
    assert [r.payload for r in retried] == ["a", "b", "c"]
    await store.outbox.hold(rows[0].seq, "?", NOW)
    assert await store.outbox.drop(rows[0].delivery_id, NOW) == 3


@pytest.mark.parametrize(("uncertain", "state"), [("mark", OutboxState.PENDING), ("hold", OutboxState.HELD)])
async def test_what_a_kill_left_sending_is_marked_or_held(
    store: Store, uncertain: str, state: OutboxState
) -> None:
    [row] = await store.outbox.enqueue([delivery("x")], NOW)
    await store.outbox.start_sending(row.seq, NOW)
    assert await store.outbox.recover(uncertain, NOW) == 1
    found = await store.rows("SELECT state, mark, not_before>=? FROM outbox", NOW + 30)
    assert found == [(state.value, 1, 1) if uncertain == "mark" else (state.value, 0, 0)]


async def test_a_flood_ban_is_kept_and_never_shortened(store: Store) -> None:
    await store.outbox.ban(address(), NOW + 60, NOW)
    await store.outbox.ban(address(), NOW + 30, NOW)
    assert await store.outbox.bans(NOW) == {("telegram", "1", "7"): NOW + 60}
    assert await store.outbox.bans(NOW + 61) == {}


# ---- looks -----------------------------------------------------------------------------------------


async def test_figures_count_what_is_open_and_not_what_waits_for_a_person(store: Store) -> None:
    await suspended(store)
    await store.say(2)
    await store.say(3, chat="8")
    f = await store.sessions.figures()
    assert (f.inbox_new, f.inbox_claimed, f.suspended_turns, f.outbox_pending) == (1, 1, 1, 1)
    assert (f.inbox_oldest_at, f.outbox_oldest_at, f.sessions) == (NOW, NOW, 2)


async def test_only_sessions_with_a_running_turn_are_resumed(store: Store) -> None:
    """Rows that are only ``new`` go through triage first: one may be a command (R12)."""
    await store.say(1, chat="8")
    _, second = await store.say(2, chat="7")
    await store.claim(second)
    assert await store.turns.unfinished_sessions() == [second]
