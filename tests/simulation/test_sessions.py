"""Conversations as people handle them: left, taken up again, named, taken back, repeated, worked on beside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.core.transcript import UserItem
from tests.simulation.outside import answer
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


def asked(world: World, request: int = -1) -> list[str]:
    """What people said, as the model was told."""
    return [i.text for i in world.model.requests[request].items if isinstance(i, UserItem)]


def test_an_earlier_conversation_is_listed_and_taken_up_again(make: Make) -> None:
    world = make()
    for text in ("about tea", "/title Tea", "/new", "about coffee", "/sessions"):
        world.say(text)
        world.run(10)
    listed = world.heard()[-1]
    assert "This one: no title yet" in listed
    assert "1. Tea (" in listed
    world.say("/resume 1")
    world.say("more of it")
    world.run(20)
    assert world.heard()[-2].startswith("We go on with: Tea")
    assert asked(world) == ["about tea", "more of it"]
    world.say("/new")
    world.say("about milk")
    world.run(20)
    assert asked(world) == ["about milk"]


def test_a_conversation_is_found_by_words_of_its_title(make: Make) -> None:
    world = make()
    for text in ("one", "/title Green tea", "/new", "two", "/title Black tea", "/new", "three", "/resume green"):
        world.say(text)
        world.run(10)
    assert world.heard()[-1].startswith("We go on with: Green tea")
    world.say("/resume t")  # both of the others
    world.run(10)
    assert "Which one?" in world.heard()[-1]


def test_nobody_lists_or_resumes_what_is_not_theirs(make: Make) -> None:
    world = make()
    world.say("a secret of seven", chat="7")
    world.run(10)
    for text in ("/sessions", "/resume 1", "/resume secret", "hello"):
        world.say(text, chat="8")
        world.run(10)
    assert "There is no earlier conversation" in world.heard("8")[0]
    assert all("secret" not in text for text in world.heard("8"))
    assert asked(world) == ["hello"]


def test_undo_takes_back_the_last_question_and_its_answer(make: Make) -> None:
    world = make()
    for text in ("one", "two", "/undo", "three"):
        world.say(text)
        world.run(10)
    assert world.heard()[2] == "Taken back, with its answer: two"
    assert asked(world) == ["one", "three"]
    assert world.rows("SELECT count(*) FROM messages WHERE live=0") == [(2,)]  # kept, and no longer sent
    for text in ("/undo", "/undo", "/undo"):
        world.say(text)
        world.run(10)
    assert world.heard()[-1] == "There is nothing to take back."


def test_retry_answers_the_last_question_again(make: Make) -> None:
    world = make([answer("a poor answer"), answer("a better one")])
    world.say("why?")
    world.run(10)
    world.say("/retry")
    world.run(20)
    assert world.heard() == ["a poor answer", "Once more.", "a better one"]
    assert asked(world) == ["why?"]
    assert [outcome for _, outcome in world.outcomes()] == ["answered", "command", "answered"]


@pytest.mark.parametrize("point", ["after_claim", "before_t2", "after_t2", "after_step_intent"])
def test_a_retry_that_is_cut_off_undoes_only_one_turn(make: Make, point: str) -> None:
    world = make()
    for text in ("one", "two"):
        world.say(text)
        world.run(10)
    world.checkpoints.at = point
    world.say("/retry")
    world.run(120)
    assert world.kills == 1
    assert asked(world) == ["one", "two"]
    assert world.rows("SELECT count(*) FROM messages WHERE live=1 AND item LIKE '%\"t\":\"u\"%'") == [(2,)]


def test_an_old_message_may_be_retried(make: Make) -> None:
    world = make([answer("first"), answer("second")])
    world.say("why?")
    world.run(10)
    world.run(2 * 86_400)
    world.say("/retry")
    world.run(20)
    assert world.heard() == ["first", "Once more.", "second"]


def test_background_work_goes_on_beside_the_conversation(make: Make) -> None:
    world = make([answer("the comparison", after=30.0), answer("quick")])
    world.say("/background compare the offers")
    world.run(1)
    world.say("hello")
    world.run(10)
    assert world.heard() == ["I work on it beside this conversation; the answer comes by itself.", "quick"]
    world.run(40)
    assert world.heard()[-1] == "the comparison"
    assert asked(world, 0) == ["compare the offers"]
    assert asked(world, 1) == ["hello"]
    world.say("and now?")
    world.run(10)
    assert asked(world) == ["hello", "and now?"]


def test_background_work_survives_a_kill_and_is_told_once(make: Make) -> None:
    world = make([answer("the comparison", after=30.0)] * 2)
    world.say("/background compare the offers")
    world.run(5).kill()
    world.run(90)
    assert world.heard() == ["I work on it beside this conversation; the answer comes by itself.", "the comparison"]
    assert world.outcomes() == [("/background compare the offers", "answered")]


def test_after_a_silence_a_conversation_starts_afresh_and_can_be_resumed(make: Make) -> None:
    world = make(settings={"session_reset": {"mode": "idle", "idle_minutes": 60}})
    world.say("about tea")
    world.run(3000)
    world.say("more")
    world.run(10)
    assert asked(world) == ["about tea", "more"]
    world.run(3700)
    world.say("something else")
    world.run(10)
    assert asked(world) == ["something else"]
    assert world.heard()[-2:] == [
        "You were away for a while, so this begins a new conversation. /resume 1 takes up the one before.",
        "You said: something else",
    ]
    world.say("/resume 1")
    world.say("back to tea")
    world.run(10)
    assert asked(world) == ["about tea", "more", "back to tea"]
