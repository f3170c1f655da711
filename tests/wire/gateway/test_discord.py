"""The gateway as a real process in front of Discord: an answer, a restart, kill -9."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hermes.core.delivery import MARK_PREFIX
from tests.waiting import until
from tests.wire.gateway import random_kills
from tests.wire.gateway.discord_outages import CHATS, OUTAGES, outside, play
from tests.wire.gateway.harness import Gateway, Lab, configuration, free_port, merged
from tests.wire.gateway.invariants import check_disk
from tests.wire.gateway.kill_points import SCENARIOS, SENDING, Point, play_on

pytestmark = pytest.mark.wire
SHORT: tuple[Point, ...] = (("plain", "sending_after_bytes"),)

CURES = {"auth lost": "platforms.discord.token", "intent lost": "MESSAGE CONTENT INTENT"}


@pytest.mark.parametrize("late", [True, pytest.param(False, marks=pytest.mark.long)], ids=["late", "soon"])
def test_a_message_is_answered_and_what_is_said_while_it_is_down_is_answered_after_the_start(
    tmp_path: Path, late: bool
) -> None:
    with outside() as (discord, model):
        gateway = Gateway(tmp_path / "home", configuration(discord, model, free_port()))
        try:
            gateway.start()
            discord.connected()
            discord.say(10, "«one»")
            assert discord.wait(10, "«one»") == ["You said: User10: «one»"]
            discord.order("say", {"chat": 500, "text": "«private»", "user": 20})
            assert discord.wait(500, "«private»") == ["You said: «private»"]
            assert gateway.stop() == 0
            if late:
                discord.order("forget")  # the session is over: only the channels' histories tell
            discord.say(10, "«two»")
            discord.say(11, "«in another channel»")
            discord.order("say", {"chat": 500, "text": "«private again»", "user": 20})
            gateway.start()
            discord.wait(10, "«two»")
            discord.wait(11, "«in another channel»")
            discord.wait(500, "«private again»")
            assert gateway.stop() == 0
            check_disk(gateway)
            assert discord.texts(10) == ["You said: User10: «one»", "You said: User10: «two»"]
            assert discord.read("state")["identifies"] == 1 + late
        finally:
            gateway.close()


def test_a_button_that_is_pressed_after_a_restart_answers_its_question_and_no_other(tmp_path: Path) -> None:
    with outside() as (discord, model):
        gateway = Gateway(tmp_path / "home", configuration(discord, model, free_port()))
        try:
            gateway.start()
            discord.connected()
            ask = {"question": "Which?", "options": ["tea", "coffee"]}
            model.script({"tool": "clarify", "arguments": ask}, {"text": "Here is your coffee."})
            discord.say(10, "a drink, please")
            discord.wait(10, "Which?")
            (question,) = discord.read("chat", id=10)
            labels = [button["label"] for row in question["components"] for button in row["components"]]
            assert labels == ["tea", "coffee"]
            assert gateway.stop() == 0
            gateway.start()
            discord.connected()
            coffee = question["components"][0]["components"][1]["custom_id"]
            press = {"chat": 10, "message_id": question["message_id"], "user": 10}
            discord.order("press", {**press, "custom_id": coffee[:-1] + "x"})
            pressed = discord.order("press", {**press, "custom_id": coffee})
            discord.wait(10, "Here is your coffee.")
            discord.order("press", {**press, "custom_id": coffee})
            until(lambda: len(discord.read("state")["answered"]) == 3, within=10, why="each press is told heard")
            assert discord.read("state")["answered"][pressed] == {"type": 6}
            assert gateway.stop() == 0
            check_disk(gateway)
            told = gateway.rows("SELECT outcome FROM inbox WHERE raw LIKE '%INTERACTION%' ORDER BY id")
            assert told == [("ignored",), ("answered_question",), ("ignored",)]
            assert discord.texts(10)[1:] == ["Here is your coffee."]
        finally:
            gateway.close()


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, marks=() if s in SHORT else pytest.mark.long) for s in SCENARIOS],
    ids="-".join,
)
def test_killed_at_a_named_point_there_is_one_answer_and_never_a_mark(tmp_path: Path, scenario: Point) -> None:
    """Discord knows a repeated create by its nonce, so no send is ever doubtful."""
    with outside() as (discord, model):
        end = play_on(discord, model, tmp_path / "home", SCENARIOS.index(scenario), scenario)
        assert end.code == -9, f"{scenario[1]} was never reached"
        assert len(end.first) == 1
        assert len(end.second) == 1
        assert not [text for text in (*end.first, *end.second) if text.startswith(MARK_PREFIX)]
        if scenario[1] in ("after_t2", *SENDING):
            assert end.committed
            assert end.asked == end.asked_before


@pytest.mark.long
@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_is_survived_unaided_and_nothing_is_lost_doubled_or_marked(tmp_path: Path, outage: str) -> None:
    end = play(tmp_path, outage)
    assert end.repeats == 0
    assert end.states[-1] == "up"
    assert len(end.states) > 1
    if outage in CURES:
        assert CURES[outage] in end.sentence
    for chat in CHATS:
        numbers = [int(text.rpartition(".")[2].rstrip("»")) for text in end.answers[chat] if "«" in text]
        assert numbers == sorted(numbers), "order is kept"


@pytest.mark.long
def test_twenty_random_kills_under_load_lose_double_and_mark_nothing(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with outside() as (discord, model):
        gateway = Gateway(tmp_path / "home", configuration(discord, model, free_port()))
        try:
            gateway.start()
            discord.connected()
            discord.say(9, "«before»")
            discord.wait(9, "«before»")
            assert gateway.stop() == 0
            rng = random.Random(int(pytestconfig.getoption("--hypothesis-seed")))
            said = random_kills.survive(Lab(discord, model, gateway), rng, 20)
            assert said.endswith(" 0 marked repeats")
        finally:
            gateway.close()


@pytest.mark.long
def test_limits_that_headers_announce_are_never_broken_not_even_by_streams_and_a_restart(tmp_path: Path) -> None:
    """Each violation would double the ban; a bucket here holds far less than Discord's."""
    chats = (10, 11, 12)
    with outside() as (discord, model):
        quick = {"streaming": {"first_after": 0.1, "min_interval": 0.2}}
        gateway = Gateway(tmp_path / "home", merged(configuration(discord, model, free_port()), quick))
        try:
            gateway.start()
            discord.connected()
            discord.order("limit", {"limit": 2, "window": 3.0, "ban": 2.0})
            model.order("config", {"pieces": 20, "gap": 0.1})
            for number in range(2):
                for chat in chats:
                    discord.say(chat, f"«{chat}.{number}» " + "word " * 30)
            for chat in chats:
                discord.wait(chat, f"«{chat}.0»", within=60)
            gateway.kill()
            gateway.start()
            for chat in chats:
                discord.say(chat, f"«{chat}.2»")
                discord.wait(chat, f"«{chat}.2»", within=90)
            assert discord.read("state")["violations"] == 0
            assert gateway.stop() == 0
            check_disk(gateway)
            for chat in chats:
                text = "\n".join(discord.texts(chat))
                assert text.index(f"«{chat}.0»") < text.index(f"«{chat}.1»") < text.index(f"«{chat}.2»")
                assert MARK_PREFIX not in text
        finally:
            gateway.close()
