"""What the ports promise, over both databases: a simulation proves something only if they agree (R28)."""

from __future__ import annotations

import pytest

from hermes.core.errors import LostFence
from hermes.core.events import RawUpdate
from hermes.core.ids import IntentId
from hermes.core.principals import ChatKind
from hermes.core.records import (
    Admitted,
    Outcome,
    StepResult,
    StrangerCount,
    ToolEffect,
    ToolIntent,
    ToolOutcome,
    TurnFinish,
)
from hermes.core.stores import NOTE_ONLY
from hermes.core.transcript import (
    AssistantItem,
    ToolCall,
    ToolResultItem,
    UserItem,
    load_item,
)
from hermes.store.home import note_clean_end, take_ownership
from tests.unit.store.making import NOW, Store, answered, delivery, everybody, states, update

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
        await store.turns.finish_step(StepResult(old.turn_id, old.epoch, 1, AssistantItem("x")), NOW)
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
        StepResult(old.turn_id, old.epoch, 1, AssistantItem("", (call,))), NOW
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
