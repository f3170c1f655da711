"""The one path of a message, in virtual time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from hermes.core.delivery import DeliveryFacts
from tests.simulation.outside import (
    DELIVERED_THEN_TIMED_OUT,
    Answer,
    answer,
    cut_after,
    flood,
    refused,
    status,
    timed_out,
    tool_call,
)
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


def test_a_message_gets_its_answer_once(make: Make) -> None:
    world = make([answer("hello")])
    world.say("hi")
    assert world.run().heard() == ["hello"]
    assert world.outcomes() == [("hi", "answered")]


def test_a_stranger_hears_nothing_and_leaves_only_a_count(make: Make) -> None:
    world = make()
    world.say("let me in", chat="666")
    assert world.run().heard("666") == []
    assert world.rows("SELECT user_id, count FROM stranger_counts") == [("666", 1)]
    assert world.rows("SELECT count(*) FROM inbox") == [(0,)]


def test_messages_during_a_turn_become_the_next_turn(make: Make) -> None:
    world = make([answer("one", after=10.0)], settings={"agent": {"queue_notice_after": 60}})
    world.say("first")
    world.run(2)
    world.say("second")
    world.say("third")
    world.run(60)
    assert world.heard() == ["one", "You said: second\n\nthird"]
    assert world.outcomes() == [("first", "answered"), ("second", "merged_into"), ("third", "answered")]


def test_one_chat_does_not_wait_for_another(make: Make) -> None:
    world = make([answer("slow", after=600.0), answer("quick", after=1.0)])
    world.say("a", chat="7")
    world.run(1)
    world.say("b", chat="8")
    assert world.run(5).heard("8") == ["quick"]


def test_a_tool_runs_once_and_its_result_reaches_the_model(make: Make) -> None:
    world = make([tool_call("session_search", query="tea"), answer("found")])
    world.say("what did I say about tea?")
    assert world.run().heard() == ["found"]
    items = world.rows("SELECT item FROM messages ORDER BY seq")
    assert len(items) == 4
    assert world.rows("SELECT count(*) FROM journal WHERE kind='tool' AND open=0") == [(1,)]


def test_an_unknown_tool_is_an_answer_to_the_model_not_a_crash(make: Make) -> None:
    world = make([tool_call("fly_to_the_moon"), answer("I cannot")])
    world.say("fly")
    assert world.run().heard() == ["I cannot"]


# ---- provider faults ----


def test_a_cut_stream_is_retried_and_the_user_sees_one_answer(make: Make) -> None:
    world = make([cut_after(3), answer("hello")])
    world.say("hi")
    assert world.run().heard() == ["hello"]


def test_three_server_errors_are_within_the_retries(make: Make) -> None:
    world = make([status(500)] * 3 + [answer("at last")])
    world.say("hi")
    assert world.run(300).heard() == ["at last"]
    assert len(world.model.requests) == 4


def test_a_wrong_key_is_told_at_once_and_not_retried(make: Make) -> None:
    world = make([status(401, "Incorrect API key provided")])
    world.say("hi")
    world.run(60)
    assert len(world.model.requests) == 1
    assert "refused the credential" in world.heard()[0]
    assert world.outcomes() == [("hi", "failed_told")]


def test_the_fallback_answers_when_the_primary_does_not(make: Make) -> None:
    world = make([refused()] * 10, spare=[answer("from the spare")])
    world.say("hi")
    assert world.run(300).heard() == ["from the spare"]


def test_retry_after_is_obeyed(make: Make) -> None:
    world = make([status(429, "slow down", retry_after="20"), answer("ok")])
    world.say("hi")
    assert world.run(15).heard() == []
    assert world.run(30).heard() == ["ok"]


def test_after_a_refused_long_message_the_next_one_is_answered(make: Make) -> None:
    words = "This model's maximum context length is 1000 tokens. However, your messages resulted in 9000 tokens."
    overflow = status(400, words)
    world = make([overflow])
    world.say("long " * 2000)
    world.run(60)
    assert "too long" in world.heard()[0]
    assert len(world.model.requests) == 1, "nothing could be left out, so it is not asked again"
    world.say("short")
    assert world.run(60).heard()[1] == "You said: short"
    assert "long long" not in str(world.model.requests[-1].items)


# ---- delivery ----


def test_a_time_out_after_delivery_gives_no_second_unmarked_copy(make: Make) -> None:
    world = make([answer("hello")])
    world.server.failures.append(DELIVERED_THEN_TIMED_OUT)
    world.say("hi")
    world.run(120)
    assert world.server.unmarked("7") == ["hello"]
    assert len(world.heard()) == 2


def test_an_ambiguous_time_out_waits_half_a_minute_and_marks(make: Make) -> None:
    world = make([answer("hello")])
    world.server.failures.append(timed_out())
    world.say("hi")
    assert world.run(25).heard() == []
    assert world.run(30).heard() == ["↻ (may be a repeat) hello"]


def test_a_flood_ban_delays_its_chat_and_no_other_also_across_a_kill(make: Make) -> None:
    world = make()
    world.server.failures.append(flood(300))
    world.say("a", chat="7")
    world.run(10)
    world.say("b", chat="8")
    assert world.run(10).heard("8") == ["You said: b"]
    world.kill()
    assert world.run(200).heard("7") == []
    assert world.run(120).heard("7") == ["You said: a"]
    assert [c for _, c, _ in world.server.sends] == ["8", "7"]


def test_a_platform_down_for_ten_minutes_loses_nothing_and_keeps_order(make: Make) -> None:
    world = make([Answer(f"answer {n}") for n in range(3)])
    world.run(5)
    world.say("before")
    world.run(0.5)
    world.server.down_until = world.server.now() + 600
    world.run(10)
    world.say("during 1")
    world.run(300)
    world.say("during 2", chat="8")
    world.run(1200)
    assert [world.heard("7"), world.heard("8")] == [["answer 0", "answer 1"], ["answer 2"]] or [
        world.heard("7"),
        world.heard("8"),
    ] == [["answer 0", "answer 2"], ["answer 1"]]
    assert {outcome for _, outcome in world.outcomes()} == {"answered"}


def test_a_long_answer_goes_out_in_order(make: Make) -> None:
    world = make([answer("a" * 1000 + "b" * 1000 + "c" * 10)])
    world.say("hi")
    assert world.run().heard() == ["a" * 1000, "b" * 1000, "c" * 10]


def test_a_slow_answer_is_one_message_that_grows(make: Make) -> None:
    world = make([answer("word " * 20, pieces=20)])
    world.say("hi")
    world.run(6)
    [partial] = world.heard()
    assert 0 < len(partial) < 100
    assert world.run(30).heard() == ["word " * 20]


# ---- poison ----


@pytest.mark.parametrize("text", ["poison", "explode"])
def test_a_poison_update_becomes_a_dead_letter_and_all_else_goes_on(make: Make, text: str) -> None:
    world = make()
    world.say(text)
    world.say("hi")
    world.say("hello", chat="8")
    world.run(30)
    assert world.heard("7") == ["You said: hi"]
    assert world.heard("8") == ["You said: hello"]
    assert dict(world.outcomes())[text] == "dead_letter"
    assert world.rows("SELECT attempts FROM inbox WHERE outcome='dead_letter'") == [(3,)]


def test_an_answer_that_cannot_be_rendered_is_told_and_kept(make: Make) -> None:
    world = make([answer("cursed text")])
    world.run(1)
    assert world.gateway is not None
    world.gateway.platforms.get("telegram").poison_render.add("cursed")  # type: ignore[attr-defined]
    world.say("hi")
    world.run(30)
    assert "cannot be shown" in world.heard()[0]
    assert world.outcomes() == [("hi", "dead_letter")]


# ---- people ----


def test_stop_ends_the_turn_and_drops_what_is_queued(make: Make) -> None:
    world = make([answer("never", after=600.0)])
    world.say("work")
    world.run(2)
    world.say("and more")
    world.say("/stop")
    world.run(10)
    assert world.outcomes() == [("work", "stopped"), ("and more", "stopped"), ("/stop", "command")]
    assert any("dropped 1 queued message" in text for text in world.heard())
    world.say("again")
    assert world.run(30).heard()[-1] == "You said: again"


def test_a_clarify_question_suspends_and_the_reply_resumes(make: Make) -> None:
    world = make([tool_call("clarify", question="Which one?", options=["tea", "coffee"]), answer("done")])
    world.say("order")
    world.run(5)
    assert world.heard() == ["Which one?\n1. tea\n2. coffee"]
    world.kill()
    world.run(5)
    world.say("2")
    world.run(30)
    assert world.heard()[-1] == "done"
    assert world.outcomes() == [("order", "answered"), ("2", "answered_question")]
    assert "coffee" in str(world.model.requests[-1].items)


def test_a_question_nobody_answers_goes_back_to_the_model(make: Make) -> None:
    script = [tool_call("clarify", question="Which one?"), answer("I chose")]
    world = make(script, settings={"approvals": {"timeout": 100}})
    world.say("order")
    world.run(200)
    assert world.heard()[-1] == "I chose"


def test_stop_while_a_question_is_open_ends_the_turn(make: Make) -> None:
    world = make([tool_call("clarify", question="Which one?")])
    world.say("order")
    world.run(5)
    world.say("/stop")
    world.run(10)
    assert dict(world.outcomes())["order"] == "stopped"
    world.say("hi")
    assert world.run(10).heard()[-1] == "You said: hi"


def test_an_edit_before_the_turn_replaces_and_later_only_notes(make: Make) -> None:
    world = make([answer("slow", after=30.0)])
    world.say("one")
    world.run(2)
    ref = world.say("two")
    world.run(1)
    world.say("two!", edits=ref)
    world.run(60)
    assert world.heard() == ["slow", "You said: [an earlier message was edited and now reads:] two!"]
    world.say("two?", edits=ref)
    world.run(30)
    assert len(world.heard()) == 2
    assert ("two", "replaced_by_edit") in world.outcomes()


def test_an_edited_stop_is_no_command(make: Make) -> None:
    world = make([answer("fine", after=20.0)])
    ref = world.say("work")
    world.run(2)
    world.say("/stop", edits=ref)
    assert world.run(60).heard() == ["fine"]


def test_a_new_conversation_forgets(make: Make) -> None:
    world = make()
    world.say("secret")
    world.run(5)
    world.say("/new")
    world.run(5)
    world.say("what?")
    world.run(5)
    assert "secret" not in str(world.model.requests[-1].items)


def test_what_is_too_old_gets_one_line(make: Make) -> None:
    world = make()
    world.run(1).stop()
    world.say("one")
    world.say("two")
    world.time_before += 2 * 86_400
    world.run(30)
    assert len(world.heard()) == 1
    assert "too long" in world.heard()[0]
    assert [o for _, o in world.outcomes()] == ["expired_told", "expired_told"]


def test_a_stale_stop_is_told_not_obeyed(make: Make) -> None:
    world = make([answer("done", after=5.0)])
    world.run(1).stop()
    world.say("work")
    world.say("/stop")
    world.time_before += 600
    world.run(30)
    assert "done" in world.heard()
    assert any("did not carry it out" in t for t in world.heard())


# ---- the disk ----


@pytest.mark.parametrize("full_at", [0.0, 0.3, 1.2, 2.5])
def test_a_disk_that_is_full_for_two_minutes_costs_time_and_nothing_else(make: Make, full_at: float) -> None:
    world = make([answer("one", after=2.0)])
    world.run(1)
    world.say("first")
    world.run(full_at)
    world.disk.fail_with = sqlite3.OperationalError("database or disk is full")
    world.say("second", chat="8")
    world.run(120)
    assert world.heard("8") == []
    world.disk.fail_with = None
    world.run(120)
    assert world.heard("7") + world.heard("8") in (["one", "You said: second"], ["You said: first", "one"])
    assert [o for _, o in world.outcomes()] == ["answered", "answered"]
    assert len(world.model.requests) == 2  # what was paid for is not asked for again


def test_sends_go_on_while_another_program_takes_our_updates(make: Make) -> None:
    conflict = DeliveryFacts("telegram", "Conflict", 409, message="Conflict: terminated by other getUpdates request")
    world = make([answer("late", after=20.0)])
    world.run(1)
    world.say("hi")
    world.run(1)
    world.server.poll_failures.extend([conflict] * 200)
    world.say("not heard")
    assert world.run(40).heard() == ["late"]
