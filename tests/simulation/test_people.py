"""Who may talk, as what, and how somebody is let in."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.simulation.outside import answer, tool_call
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


def who(**more: object) -> dict[str, object]:
    telegram = {"enabled": True, "token": "1:abcdefgh", "allowed_users": ["8"], "owners": ["7"], **more}
    return {"platforms": {"telegram": telegram}}


def code_in(text: str) -> str:
    found = re.search(r"[2-9A-Z]{4}-[2-9A-Z]{4}", text)
    assert found is not None
    return found.group()


def test_a_stranger_is_let_in_by_the_code_an_owner_approves(make: Make) -> None:
    world = make(settings=who(pairing=True))
    world.say("let me in", chat="9")
    world.run(5)
    [offer] = world.heard("9")
    assert world.rows("SELECT count(*) FROM inbox") == [(0,)]  # not a word of a stranger is kept
    world.say(f"/pair {code_in(offer).lower()}", chat="7")
    world.run(5)
    assert "may talk to me now" in world.heard("7")[0]
    assert world.heard("9")[1].startswith("You may talk to me now")
    world.say("hello", chat="9")
    world.run(5).kill()
    world.say("still there?", chat="9")
    world.run(20)
    assert world.heard("9")[2:] == ["You said: hello", "You said: still there?"]


def test_only_an_owner_lets_somebody_in(make: Make) -> None:
    world = make(settings=who(pairing=True))
    world.say("let me in", chat="9")
    world.run(5)
    code = code_in(world.heard("9")[0])
    world.say(f"/pair {code}", chat="8")
    world.say(f"/pair {code}", chat="9")
    world.run(20)
    assert world.heard("8") == ["I do not know this code, or it is too old."]
    assert len(world.heard("9")) == 1
    assert world.rows("SELECT count(*) FROM paired") == [(0,)]


def test_a_stranger_is_shown_one_code_an_hour_and_an_old_code_is_none(make: Make) -> None:
    world = make(settings=who(pairing=True))
    for _ in range(5):
        world.say("let me in", chat="9")
        world.run(5)
    assert len(world.heard("9")) == 1
    world.run(3700)
    world.say(f"/pair {code_in(world.heard('9')[0])}", chat="7")
    world.run(5)
    assert world.heard("7") == ["I do not know this code, or it is too old."]
    world.say("let me in", chat="9")
    world.run(5)
    assert len(world.heard("9")) == 2
    assert world.rows("SELECT code_hash FROM pairing_offers") != [(code_in(world.heard("9")[1]),)]


def test_whose_pairing_is_revoked_is_a_stranger_again_and_what_is_queued_does_not_run(make: Make) -> None:
    world = make([answer("slow", after=30.0)], settings=who(pairing=True))
    world.say("let me in", chat="9")
    world.run(5)
    world.say(f"/pair {code_in(world.heard('9')[0])}", chat="7")
    world.run(5)
    world.say("one", chat="9")
    world.run(2)
    world.say("two", chat="9")
    world.run(1)
    gateway = world.gateway
    assert gateway is not None
    world._in_loop(gateway.people.revoke("telegram", "9"))
    world.run(60)
    assert world.heard("9")[-1] == "slow"
    assert world.outcomes()[-1] == ("two", "ignored")


def test_two_accounts_become_one_person(make: Make) -> None:
    world = make(settings=who())
    world.say("about tea", chat="7")
    world.say("/title Tea", chat="7")
    world.run(10)
    world.say("/pair new", chat="7")
    world.run(5)
    world.say(f"/pair {code_in(world.heard('7')[-1])}", chat="8")
    world.run(5)
    world.say("hello", chat="8")
    world.say("/sessions", chat="8")
    world.run(20)
    assert world.heard("8")[0] == "This account and the one that made the code are one person to me now."
    assert any("1. Tea (" in text for text in world.heard("8"))


def test_a_link_code_is_good_for_one_account(make: Make) -> None:
    world = make(settings=who(guests=["9"]))
    world.say("/pair new", chat="7")
    world.run(5)
    code = code_in(world.heard("7")[0])
    for chat in ("8", "9"):
        world.say(f"/pair {code}", chat=chat)
        world.run(5)
    assert world.heard("9") == ["I do not know this code, or it is too old."]


def test_a_guest_has_no_tools_but_questions_and_no_commands_of_the_house(make: Make) -> None:
    world = make([tool_call("session_search", query="x"), answer("done")], settings=who(guests=["9"]))
    world.say("look for x", chat="9")
    world.run(20)
    assert [spec.name for spec in world.model.requests[0].tools] == ["clarify"]
    assert "There is no tool 'session_search'" in world.model.requests[1].items[-1].text
    world.say("/status", chat="9")
    world.say("/help", chat="9")
    world.run(10)
    assert len(world.heard("9")) == 2
    assert "/status" not in world.heard("9")[1]
    assert world.outcomes()[1] == ("/status", "ignored")


def test_a_guests_turn_stays_a_guests_after_a_kill(make: Make) -> None:
    world = make([tool_call("clarify", question="which?"), answer("done")], settings=who(guests=["9"]))
    world.say("help me", chat="9")
    world.run(5).kill()
    world.say("the second", chat="9")
    world.run(30)
    assert all([spec.name for spec in request.tools] == ["clarify"] for request in world.model.requests)
    assert world.heard("9")[-1] == "done"


def test_in_a_group_only_what_is_meant_for_the_bot_is_heard(make: Make) -> None:
    world = make(settings=who(free_chats=["-5"]))
    world.say("lunch?", chat="-3", user="8")
    world.say("@bot what is for lunch?", chat="-3", user="8")
    world.say("/status", chat="-3", user="8")
    world.say("@bot let me in", chat="-3", user="666")
    world.say("anything goes", chat="-5", user="8")
    world.run(20)
    said = [text for text, _ in world.outcomes()]
    assert sorted(said) == ["/status", "@bot what is for lunch?", "anything goes"]
    assert world.rows("SELECT user_id FROM stranger_counts") == [("666",)]


def test_members_of_an_allowed_group_talk_there_and_nowhere_else(make: Make) -> None:
    world = make(settings=who(allowed_chats=["-3"]))
    world.say("@bot hello", chat="-3", user="55")
    world.say("hello", chat="55")
    world.run(20)
    assert [text for text, _ in world.outcomes()] == ["@bot hello"]
