"""Flood control against a platform that doubles a ban for whoever calls before it is over (R20)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from hermes.simulators.telegram_world import Flood
from tests.simulation.outside import Answer, answer
from tests.simulation.world import World

Make = Callable[..., World]
pytestmark = pytest.mark.simulation
CROWD = [str(n) for n in range(100, 160)]
OPEN = {"platforms": {"telegram": {"enabled": True, "token": "1:abcdefgh", "allowed_users": ["7", "8", "9", *CROWD]}}}


def test_a_chat_that_floods_waits_out_each_ban_and_keeps_its_order(make: Make) -> None:
    world = make([answer("".join(f"{n:04}" * 250 for n in range(12)))])
    world.server.flood = flood = Flood(limit=3, window=10.0, ban=7.0)
    world.say("hi")
    world.run(600)
    assert [text[:4] for text in world.heard()] == [f"{n:04}" for n in range(12)]
    assert (flood.ignored, flood.violations >= 1) == (0, True)


def test_a_ban_is_kept_over_a_restart_in_the_middle_of_it(make: Make) -> None:
    world = make([answer("a" * 6000)])
    world.server.flood = flood = Flood(limit=3, window=10.0, ban=60.0)
    world.say("hi")
    world.run(20)
    assert (len(world.heard()), flood.violations) == (3, 1)
    world.kill()
    world.run(10)
    world.stop()
    world.run(300)
    assert (len(world.heard()), flood.ignored) == (6, 0)


def test_drafts_and_typing_keep_a_ban_too_and_the_answer_is_the_first_thing_after_it(make: Make) -> None:
    world = make([Answer("word " * 40, after=3.0, pieces=40)])
    world.server.flood = flood = Flood(limit=2, window=60.0, ban=15.0)
    world.say("hi")
    world.run(120)
    assert world.heard() == ["word " * 40]
    assert (flood.ignored, flood.violations >= 1) == (0, True)
    [(ended,)] = world.rows("SELECT ended_at FROM turns")
    assert all(at <= ended for at, _ in world.server.typings)


def test_other_chats_are_not_disturbed_by_a_ban(make: Make) -> None:
    world = make([answer("a" * 5000), answer("b"), answer("c")])
    world.server.flood = flood = Flood(limit=3, window=10.0, ban=120.0)
    world.say("hi", chat="7")
    world.run(10)
    asked = world.server.now()
    world.say("hi", chat="8")
    world.say("hi", chat="9")
    world.run(10)
    assert (len(world.heard("8")), len(world.heard("9"))) == (1, 1)
    assert max(at for at, chat, _ in world.server.sends if chat in "89") - asked < 3.0
    assert flood.ignored == 0


@pytest.mark.parametrize("kills", [0, 1])
def test_a_limit_for_all_chats_closes_all_and_loses_none(make: Make, kills: int) -> None:
    world = make(settings=OPEN)
    world.server.flood = flood = Flood(limit=1000, window=1.0, ban=20.0, everywhere=25, grace=0.05)
    world.run(5)
    for chat in CROWD:
        world.say("hi", chat=chat)
    world.run(0.5)
    world.server.down_until = world.server.now() + 60  # so that all answers are there at once
    world.run(80)
    for _ in range(kills):
        world.kill()
    world.run(600)
    assert all(world.heard(chat) == ["You said: hi"] for chat in CROWD)
    assert (flood.ignored, flood.violations >= 1) == (0, True)


def test_after_a_ban_a_chat_is_written_to_gently_and_then_as_before(make: Make) -> None:
    world = make([answer("".join(f"{n:04}" * 250 for n in range(60)))])
    world.server.flood = Flood(limit=20, window=20.0, ban=5.0)
    world.say("hi")
    world.run(900)
    at = [at for at, _, _ in world.server.sends]
    gaps = [later - before for before, later in pairwise(at)]
    first = next(n for n, gap in enumerate(gaps) if gap > 5.0)
    assert len(at) == 60
    assert max(gaps[:first]) < 0.5  # open at first
    assert gaps[first + 1] >= 0.9  # one a second after the ban
    assert gaps[first + 1] > gaps[first + 9]  # and faster with each that was taken
