"""Home channels and the commands of the house."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.core.delivery import DeliveryFacts
from tests.simulation.outside import answer
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


def house(**more: object) -> dict[str, object]:
    telegram = {"enabled": True, "token": "1:abcdefgh", "allowed_users": ["7", "8"], "owners": ["7"], **more}
    return {"platforms": {"telegram": telegram}}


def refused() -> DeliveryFacts:
    return DeliveryFacts("telegram", "InvalidToken", 401, message="Unauthorized")


def test_only_an_owner_handles_the_house(make: Make) -> None:
    world = make(settings=house())
    for command in ("/platform", "/reload", "/sethome"):
        world.say(command, chat="8")
    world.run(10)
    assert world.heard("8") == []
    assert [outcome for _, outcome in world.outcomes()] == ["ignored"] * 3
    world.say("/platform", chat="7")
    world.run(5)
    assert world.heard("7")[0].startswith("telegram is connected")


def test_a_platform_is_connected_anew_at_once(make: Make) -> None:
    world = make(settings=house())
    world.run(5)
    world.server.poll_broken = refused()
    world.run(30)
    gateway = world.gateway
    assert gateway is not None
    world.server.poll_broken = None
    world.say("are you there?")
    world.run(60)
    assert world.heard() == []  # refused: probed slowly
    world._in_loop(_reconnect(world))
    assert world.run(5).heard() == ["You said: are you there?"]


async def _reconnect(world: World) -> None:
    assert world.gateway is not None
    world.gateway.links.reconnect("telegram")


def test_a_healthy_platform_may_be_connected_anew_and_nothing_is_lost(make: Make) -> None:
    world = make([answer("slow", after=10.0)], settings=house())
    world.say("one")
    world.run(2)
    world.say("/platform telegram")
    world.run(1)
    world.say("two")
    world.run(60)
    assert [text for text in world.heard() if not text.startswith("I am still busy")] == [
        "I connect telegram anew; /platform says how it went.", "slow", "You said: two",
    ]  # fmt: skip


def test_the_home_channel_outlives_a_restart_and_the_broken_platform_carries_no_notice(make: Make) -> None:
    world = make(settings=house())
    world.say("/sethome")
    world.run(5).kill()
    world.run(5)
    assert world.gateway is not None
    home = world.gateway.homes.of("telegram")
    assert home is not None
    assert home.chat_id == "7"
    world.server.poll_broken = refused()
    world.run(60)
    world.server.poll_broken = None
    assert world.run(2000).heard() == ["I send notices here from now on."]
