"""A message that comes while its session is at work: it waits, steers or interrupts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.core.transcript import UserItem
from tests.simulation.outside import answer, tool_call
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]
SEARCH = tool_call("session_search", query="tea")


def mode(name: str, **more: object) -> dict[str, object]:
    return {"agent": {"busy_mode": name, **more}}


def test_a_message_that_waits_long_is_told_its_place(make: Make) -> None:
    world = make([answer("one", after=20.0)])
    world.say("first")
    world.run(2)
    world.say("second")
    world.run(1)
    world.say("third")
    assert world.run(1).heard() == []
    heard = world.run(5).heard()
    assert [("1 waiting" in text, "2 waiting" in text) for text in heard] == [(True, False), (False, True)]
    assert world.run(60).heard()[2:] == ["one", "You said: second\n\nthird"]


def test_a_message_that_is_soon_taken_up_is_told_nothing(make: Make) -> None:
    world = make([answer("one", after=2.0)])
    world.say("first")
    world.run(1)
    world.say("second")
    assert world.run(60).heard() == ["one", "You said: second"]


def test_beyond_the_limit_a_message_is_told_that_it_was_not_taken(make: Make) -> None:
    world = make([answer("one", after=20.0)], settings=mode("queue", queue_limit=2, queue_notice_after=3600))
    world.say("first")
    world.run(2)
    for text in ("second", "third", "fourth"):
        world.say(text)
    world.run(60)
    assert world.outcomes()[-1] == ("fourth", "failed_told")
    assert "2 messages are waiting" in world.heard()[0]
    assert world.heard()[1:] == ["one", "You said: second\n\nthird"]


def test_a_steering_message_joins_the_running_turn_after_its_tools(make: Make) -> None:
    world = make([SEARCH, answer("done")], settings=mode("steer"))
    world.say("look for tea")
    world.run(0.5)
    world.say("green tea, please")
    assert world.run(60).heard() == ["done"]
    assert world.outcomes() == [("look for tea", "answered"), ("green tea, please", "steered_into")]
    asked = [i.text for i in world.model.requests[-1].items if isinstance(i, UserItem)]
    assert asked == ["look for tea", "green tea, please"]


def test_a_steering_message_that_comes_too_late_is_an_ordinary_one(make: Make) -> None:
    world = make([answer("one", after=5.0)], settings=mode("steer"))
    world.say("first")
    world.run(1)
    world.say("second")
    assert world.run(60).heard() == ["one", "You said: second"]
    assert world.outcomes() == [("first", "answered"), ("second", "answered")]


def test_one_message_may_steer_where_others_wait(make: Make) -> None:
    world = make([SEARCH, answer("done")])
    world.say("look for tea")
    world.run(0.5)
    world.say("and later this")
    world.say("/steer green tea")
    world.run(60)
    assert world.heard() == ["done", "You said: and later this"]
    assert [outcome for _, outcome in world.outcomes()] == ["answered", "answered", "steered_into"]
    steered = [i.text for i in world.model.requests[1].items if isinstance(i, UserItem)]
    assert steered == ["look for tea", "green tea"]


def test_one_message_may_wait_where_others_steer(make: Make) -> None:
    world = make([SEARCH, answer("done")], settings=mode("steer"))
    world.say("look for tea")
    world.run(0.5)
    world.say("/queue and later this")
    assert world.run(60).heard() == ["done", "You said: and later this"]


def test_steer_without_a_text_says_how(make: Make) -> None:
    world = make()
    world.say("/steer")
    assert "Write what you want to say" in world.run(5).heard()[0]


def test_an_interrupting_message_ends_the_running_turn_and_is_answered(make: Make) -> None:
    world = make([answer("never", after=600.0)], settings=mode("interrupt"))
    world.say("first")
    world.run(5)
    world.say("no, this")
    world.run(20)
    assert world.heard() == ["Interrupted.", "You said: no, this"]
    assert world.outcomes() == [("first", "stopped"), ("no, this", "answered")]


@pytest.mark.parametrize("point", ["after_tool_intent", "after_tool_effect", "after_tool_result", "after_step_intent"])
def test_a_steering_message_survives_a_kill_and_is_used_once(make: Make, point: str) -> None:
    world = make([SEARCH, SEARCH, SEARCH], settings=mode("steer"))
    world.say("look for tea")
    world.run(0.5)
    world.say("green tea")
    world.checkpoints.at, world.checkpoints.after = point, 2 if point == "after_step_intent" else 1
    world.run(120)
    assert world.kills == 1
    assert [outcome for _, outcome in world.outcomes()] == ["answered", "steered_into"]
    said = [item for (item,) in world.rows("SELECT item FROM messages") if "green tea" in item]
    assert len([item for item in said if '"t":"u"' in item]) == 1


def test_what_stop_ended_no_longer_counts_as_waiting(make: Make) -> None:
    world = make([answer("one", after=20.0)], settings=mode("queue", queue_limit=1, queue_notice_after=3600))
    world.say("first")
    world.run(2)
    world.say("second")
    world.say("/stop")
    world.run(2)
    world.say("third")
    assert world.run(20).heard()[-1] == "You said: third"


def test_a_command_that_changes_the_session_takes_its_place_in_it(make: Make) -> None:
    world = make([answer("one", after=10.0)], settings=mode("queue", queue_notice_after=3600))
    world.say("first")
    world.run(2)
    world.say("second")
    world.say("/new")
    world.say("third")
    world.run(60)
    assert world.heard()[:2] == ["one", "You said: second"]
    assert world.heard()[2].startswith("A new conversation begins")
    assert world.heard()[3] == "You said: third"
    assert [len(request.items) for request in world.model.requests] == [1, 3, 1]


def test_stop_also_drops_a_command_that_waits(make: Make) -> None:
    world = make([answer("one", after=10.0)])
    world.say("first")
    world.run(2)
    world.say("/new")
    world.say("/stop")
    world.run(60)
    assert [outcome for _, outcome in world.outcomes()] == ["stopped", "stopped", "command"]
    world.say("go on")
    world.run(20)
    assert len(world.model.requests[-1].items) == 2
