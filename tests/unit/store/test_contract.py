"""What the ports promise, over both databases: a simulation proves something only if they agree (R28)."""

from __future__ import annotations

import pytest

from hermes.core.delivery import Operation
from hermes.core.errors import LostFence
from hermes.core.events import RawUpdate
from hermes.core.ids import InboxId, IntentId, QuestionId
from hermes.core.principals import ChatKind
from hermes.core.records import (
    Admitted,
    Outcome,
    OutboxState,
    Question,
    StepResult,
    StrangerCount,
    ToolEffect,
    ToolIntent,
    ToolOutcome,
    TurnCause,
    TurnFinish,
)
from hermes.core.stores import NOTE_ONLY
from hermes.core.transcript import (
    AssistantItem,
    ToolCall,
    ToolResultItem,
    ToolStatus,
    Usage,
    UserItem,
    load_item,
)
from hermes.store.home import note_clean_end, take_ownership
from tests.unit.store.making import NOW, Store, address, answered, delivery, everybody, update


async def states(store: Store) -> list[tuple[object, ...]]:
    return list(await store.rows("SELECT state, outcome FROM inbox ORDER BY id"))


# ---- T1 -------------------------------------------------------------------------------------------


async def test_a_repeated_update_is_a_duplicate_and_makes_no_row(store: Store) -> None:
    first, again = await store.accept(update(1), update(1))
    assert (first.duplicate, again.duplicate) == (False, True)
    assert len(await store.inbox.backlog()) == 1


async def test_a_dedup_key_outlives_its_row(store: Store) -> None:
    await store.accept(update(1))
    await store.db.write(lambda conn: conn.execute("DELETE FROM inbox"))
    [again] = await store.accept(update(1))
    assert again.duplicate


async def test_an_update_whose_envelope_cannot_be_read_is_kept_as_a_dead_letter(store: Store) -> None:
    raw = RawUpdate("telegram", "1", "k", "{odd}", None, None, problem="no sender")
    await store.inbox.accept([Admitted(raw, None)], (), {}, NOW)
    [dead] = await store.inbox.dead_letters()
    assert (dead.update.raw, dead.update.problem) == ("{odd}", "no sender")
    assert await store.inbox.revive(dead.id) is None
    assert await store.inbox.drop(dead.id, NOW) == 1
    assert await store.inbox.dead_letters() == []


async def test_cursors_and_strangers_are_written_with_the_rows(store: Store) -> None:
    stranger = StrangerCount("telegram", "1", "66", 2, NOW)
    for value in ("10", "11"):
        await store.inbox.accept([Admitted(update(int(value)), "k")], [stranger], {"slack\n1\nC1": value}, NOW)
    assert await store.rows("SELECT value FROM cursors") == [("11",)]
    [counted] = await store.sessions.strangers(5)
    assert (counted.user_id, counted.count) == ("66", 4)


async def test_members_of_a_group_share_its_principal_and_one_person_has_one_principal(store: Store) -> None:
    group = [update(n, chat="-5", user=str(n), kind=ChatKind.GROUP) for n in (1, 2)]
    private = [update(3, user="7"), update(4, user="7")]
    accepted = await store.accept(*group, *private)
    principals = [a.row.principal_id for a in accepted]
    assert principals[0] == principals[1] == "group:telegram:1:-5"
    assert principals[2] == principals[3] != principals[0]


# ---- ends without a turn ---------------------------------------------------------------------------


async def test_a_row_ends_once_and_only_its_first_end_is_told(store: Store) -> None:
    row, _ = await store.say(1)
    said = await store.inbox.finish([row], Outcome.COMMAND, now=NOW, replies=[delivery("ok")])
    assert len(said) == 1
    assert await store.inbox.finish([row], Outcome.IGNORED, now=NOW, replies=[delivery("again")]) == []
    assert await states(store) == [("done", "command")]


async def test_failures_are_counted_on_disk_and_a_dead_letter_can_be_revived(store: Store) -> None:
    row, _ = await store.say(1)
    assert [await store.inbox.count_failure(row, "odd", NOW) for _ in range(3)] == [1, 2, 3]
    await store.inbox.finish([row], Outcome.DEAD_LETTER, now=NOW, reason="odd")
    [dead] = await store.inbox.dead_letters()
    assert dead.update.problem == "odd"
    revived = await store.inbox.revive(row)
    assert revived is not None
    assert revived.attempts == 0
    assert await states(store) == [("new", None)]


async def test_an_edit_replaces_only_what_no_turn_has_begun(store: Store) -> None:
    first, session = await store.say(1)
    edit, _ = await store.say(2)
    assert await store.inbox.replace("telegram", "1", "1", edit, NOW)
    claim = await store.claim(session)
    assert [r.id for r in claim.rows] == [edit]
    third, _ = await store.say(3)
    assert not await store.inbox.replace("telegram", "1", "2", third, NOW)
    assert (await states(store))[0] == ("done", "replaced_by_edit")
    assert first != edit


async def test_a_note_begins_no_turn_and_goes_with_the_next_message(store: Store) -> None:
    note, session = await store.say(1)
    await store.inbox.defer(note, NOTE_ONLY)
    assert await store.turns.claim(session, NOW, everybody) is None
    second, _ = await store.say(2)
    assert [r.id for r in (await store.claim(session)).rows] == [note, second]


async def test_a_revoked_persons_queued_rows_do_not_run(store: Store) -> None:
    _, session = await store.say(1)
    assert await store.turns.claim(session, NOW, lambda row: False) is None
    assert await states(store) == [("done", "ignored")]


# ---- turns -----------------------------------------------------------------------------------------


async def test_an_answered_turn_ends_its_rows_with_one_outcome_each(store: Store) -> None:
    await store.say(1)
    _, session = await store.say(2)
    claim = await store.claim(session)
    await store.begin(claim)
    rows = await store.turns.finish(answered(claim, "a", "b"), NOW)
    assert await states(store) == [("done", "merged_into"), ("done", "answered")]
    assert [(r.part, r.payload, r.address.reply_to) for r in rows] == [(0, "a", None), (1, "b", None)]
    assert await store.turns.claim(session, NOW, everybody) is None


async def test_a_row_bound_and_not_consumed_goes_back(store: Store) -> None:
    row, session = await store.say(1)
    claim = await store.claim(session)
    await store.turns.finish(answered(claim, "an answer that used nothing"), NOW)
    assert await states(store) == [("new", None)]
    assert [r.id for r in (await store.claim(session)).rows] == [row]


@pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.FAILED_TOLD, Outcome.DEAD_LETTER])
async def test_a_turn_that_ends_without_an_answer_ends_what_was_bound_to_it(
    store: Store, outcome: Outcome
) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.turns.finish(answered(claim, "sorry", outcome=outcome), NOW)
    assert await states(store) == [("done", outcome.value)]


async def test_after_a_crash_the_old_epoch_writes_nothing(store: Store) -> None:
    _, session = await store.say(1)
    old = await store.claim(session)
    await store.begin(old)
    new = await store.claim(session)
    assert (new.epoch, new.resumed, new.step, new.rows) == (old.epoch + 1, True, 2, ())
    before = await store.rows("SELECT count(*) FROM messages")
    with pytest.raises(LostFence):
        await store.begin(old, 2)
    with pytest.raises(LostFence):
        await store.turns.finish_step(StepResult(old.turn_id, old.epoch, 1, AssistantItem("x"), Usage()), NOW)
    with pytest.raises(LostFence):
        await store.turns.finish(answered(old, "late"), NOW)
    with pytest.raises(LostFence):
        await store.outbox.open_draft(old.turn_id, old.epoch, old.address, NOW)
    with pytest.raises(LostFence):
        await store.turns.release(old.turn_id, old.epoch, 0.0, NOW)
    assert await store.rows("SELECT count(*) FROM messages") == before
    assert len(await store.turns.finish(answered(new, "the answer"), NOW)) == 1


async def test_a_call_cut_off_by_a_crash_is_charged_in_full(store: Store) -> None:
    _, session = await store.say(1)
    await store.begin(await store.claim(session))
    await store.claim(session)
    assert await store.rows("SELECT state, actual_usd FROM ledger") == [("charged", 0.25)]


async def test_a_tools_result_is_taken_once_whatever_the_epoch(store: Store) -> None:
    _, session = await store.say(1)
    old = await store.claim(session)
    await store.begin(old)
    call = ToolCall("c1", "t", "{}")
    await store.turns.finish_step(
        StepResult(old.turn_id, old.epoch, 1, AssistantItem("", (call,)), Usage()), NOW
    )
    intent = ToolIntent(old.turn_id, old.epoch, 1, IntentId("i"), "c1", "t", ToolEffect.ONCE)
    await store.turns.start_tools([intent], NOW)
    new = await store.claim(session)
    assert [(s.call_id, s.effect) for s in new.started] == [("c1", ToolEffect.ONCE)]
    first = ToolOutcome(old.turn_id, IntentId("i"), ToolResultItem("c1", "t", "one"))
    second = ToolOutcome(old.turn_id, IntentId("i"), ToolResultItem("c1", "t", "two"))
    assert [await store.turns.finish_tool(o, NOW) for o in (first, second)] == [True, False]
    last = load_item((await store.turns.transcript(session))[-1])
    assert isinstance(last, ToolResultItem)
    assert last.text == "one"


async def test_a_result_that_comes_after_the_turns_end_is_refused(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim)
    intent = ToolIntent(claim.turn_id, claim.epoch, 1, IntentId("i"), "c1", "t", ToolEffect.ONCE)
    await store.turns.start_tools([intent], NOW)
    await store.turns.finish(answered(claim, "Stopped.", outcome=Outcome.STOPPED), NOW)
    late = ToolOutcome(claim.turn_id, IntentId("i"), ToolResultItem("c1", "t", "late"))
    assert not await store.turns.finish_tool(late, NOW)


async def test_new_begins_a_conversation_without_the_earlier_one(store: Store) -> None:
    await store.answer(1)
    _, session = await store.say(2)
    await store.turns.new_generation(session, NOW)
    claim = await store.claim(session)
    assert claim.history == ()


async def test_new_while_a_turn_runs_does_not_take_the_turns_own_words_from_it(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim, text="the question")
    await store.turns.new_generation(session, NOW)
    resumed = await store.claim(session)
    assert [load_item(i) for i in resumed.history] == [UserItem("the question")]
    await store.turns.finish(answered(resumed, "done"), NOW)
    await store.say(2)
    assert (await store.claim(session)).history == ()


async def test_what_no_model_can_take_is_kept_and_not_sent_again(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim, text="word " * 5000)
    finish = TurnFinish(claim.turn_id, claim.epoch, Outcome.FAILED_TOLD, "context_overflow")
    await store.turns.finish(finish, NOW)
    await store.say(2)
    assert (await store.claim(session)).history == ()
    assert len(await store.sessions.history(session, 0, 10)) == 1


async def test_a_drain_gives_the_turn_back_and_blames_nobody(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim)
    intent = ToolIntent(claim.turn_id, claim.epoch, 1, IntentId("i"), "c1", "t", ToolEffect.ONCE)
    await store.turns.start_tools([intent], NOW)
    await store.turns.release(claim.turn_id, claim.epoch, 12.5, NOW)
    owned = await take_ownership(store.db, NOW)
    assert owned.suspects == 0
    resumed = await store.claim(session)
    assert (resumed.active_seconds, resumed.suspect, resumed.parked) == (12.5, False, False)


async def test_only_the_third_crash_of_a_turn_running_alone_parks_it(store: Store) -> None:
    _, session = await store.say(1)
    claim = await store.claim(session)
    await store.begin(claim)
    intent = ToolIntent(claim.turn_id, claim.epoch, 1, IntentId("i"), "c1", "t", ToolEffect.ONCE)
    await store.turns.start_tools([intent], NOW)
    seen = []
    await take_ownership(store.db, NOW)
    for _ in range(3):
        await take_ownership(store.db, NOW)
        resumed = await store.claim(session)
        seen.append((resumed.suspect, resumed.parked))
    assert seen == [(False, False), (True, False), (True, True)]


async def test_a_turn_that_waited_for_a_model_is_no_suspect(store: Store) -> None:
    _, session = await store.say(1)
    await store.begin(await store.claim(session))
    await take_ownership(store.db, NOW)
    assert (await take_ownership(store.db, NOW)).suspects == 0
    await note_clean_end(store.db)
    assert (await take_ownership(store.db, NOW)).clean


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
        StepResult(claim.turn_id, claim.epoch, 1, AssistantItem("", (call,)), Usage()), NOW
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


async def test_sessions_with_work_are_listed_oldest_first(store: Store) -> None:
    _, first = await store.say(1, chat="8")
    _, second = await store.say(2, chat="7")
    await store.claim(second)
    assert set(await store.turns.unfinished_sessions()) == {first, second}
