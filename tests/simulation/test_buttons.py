"""Questions with buttons: bound to their question and, in a group, to their asker; they outlive a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.gateway.questions import CLOSED
from tests.simulation.outside import ScriptedModel, answer, tool_call
from tests.simulation.world import World

Make = Callable[..., World]
pytestmark = pytest.mark.simulation
SHARED = {"gateway": {"group_sessions_per_user": False}}
ASKS = tool_call("clarify", question="Red or blue?", options=["red", "blue"])


def labels(world: World, chat: str = "7") -> list[str]:
    return [b[0] for m in world.server.chats.get(chat, []) for b in m.buttons]


def told(model: ScriptedModel) -> str:
    """The result of the model's question, as it came to it."""
    [item] = [i for i in model.requests[-1].items if getattr(i, "name", "") == "clarify"]
    return str(getattr(item, "text", ""))


@pytest.mark.parametrize("end", ["none", "kill", "stop"])
def test_a_button_answers_after_a_restart_and_goes_with_its_answer(make: Make, end: str) -> None:
    world = make([ASKS, answer("blue it is")])
    world.say("paint")
    world.run(30)
    assert labels(world) == ["red", "blue"]
    if end != "none":
        getattr(world, end)()
        world.run(10)
    world.server.press("7", "blue")
    world.run(60)
    assert told(world.model) == "blue"
    assert labels(world) == []
    assert world.heard()[0].endswith("✓ blue")
    assert world.heard()[1:] == ["blue it is"]
    assert [outcome for _, outcome in world.outcomes()] == ["answered", "answered_question"]


def test_a_number_written_as_text_answers_too_and_takes_the_buttons(make: Make) -> None:
    world = make([ASKS, answer("red it is")])
    world.say("paint")
    world.run(30)
    world.say("1")
    world.run(60)
    assert told(world.model) == "red"
    assert labels(world) == []


def test_a_button_of_a_closed_question_does_nothing_but_a_quiet_word(make: Make) -> None:
    world = make([ASKS, answer("red it is")])
    world.say("paint")
    world.run(30)
    [old] = [m.buttons[1][1] for m in world.server.chats["7"]]
    world.say("red")
    world.run(60)
    asked, said = len(world.model.requests), world.heard()
    world.server.press("7", "", data=old)
    world.run(30)
    assert (len(world.model.requests), world.heard()) == (asked, said)
    assert world.server.whispers == [("7", CLOSED)]
    assert world.outcomes()[-1][1] == "ignored"


@pytest.mark.parametrize(
    "data", ["", "q", "q:x:1", "q:000000000000:1", "1", "red", "q:{tag}:0", "q:{tag}:3", "q:{tag}:²", "q:{tag}:0001"]
)
def test_a_forged_button_answers_nothing(make: Make, data: str) -> None:
    world = make([ASKS])
    world.say("paint")
    world.run(30)
    tag = world.server.chats["7"][0].buttons[0][1].split(":")[1]
    world.server.press("7", "", data=data.format(tag=tag))
    world.run(30)
    assert world.rows("SELECT state FROM questions") == [("open",)]
    assert world.outcomes()[-1][1] == "ignored"


@pytest.mark.parametrize("settings", [SHARED, {}])
def test_in_a_group_only_its_asker_may_press(make: Make, settings: dict[str, object]) -> None:
    world = make([ASKS, answer("blue it is")], settings=settings)
    world.say("@bot paint", chat="-5", user="7")
    world.run(30)
    world.server.press("-5", "red", user="8")
    world.run(30)
    assert world.rows("SELECT state FROM questions") == [("open",)]
    assert world.server.whispers == [("8", CLOSED)]
    world.server.press("-5", "blue", user="7")
    world.run(60)
    assert told(world.model) == "blue"
    assert labels(world, "-5") == []


@pytest.mark.parametrize("text", ["²", "9" * 5000, "3"])
def test_an_odd_number_is_an_answer_in_words(make: Make, text: str) -> None:
    world = make([ASKS, answer("very well")])
    world.say("paint")
    world.run(30)
    world.say(text)
    world.run(60)
    assert told(world.model) == text


def test_a_question_that_nobody_answers_loses_its_buttons(make: Make) -> None:
    world = make([ASKS, answer("then I choose")], settings={"approvals": {"timeout": 120}})
    world.say("paint")
    world.run(30)
    assert labels(world) == ["red", "blue"]
    world.run(300)
    assert labels(world) == []
    assert world.heard()[-1] == "then I choose"


def test_a_stop_takes_the_buttons_of_its_question(make: Make) -> None:
    world = make([ASKS])
    world.say("paint")
    world.run(30)
    world.say("/stop")
    world.run(60)
    assert labels(world) == []
