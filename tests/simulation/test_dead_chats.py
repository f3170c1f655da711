"""A chat that cannot be written to retires with its reason and heals at the next message from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.core.delivery import DeliveryFacts
from tests.simulation.outside import PLATFORM, Answer
from tests.simulation.world import World

Make = Callable[..., World]
pytestmark = pytest.mark.simulation
BLOCKED = DeliveryFacts(PLATFORM, "Forbidden", 403, message="Forbidden: bot was blocked by the user")


def shown(world: World) -> dict[str, str]:
    assert world.gateway is not None
    return {key[2]: reason for key, reason in world.gateway.pacer.dead.reasons.items()}


def test_a_chat_that_blocked_us_hears_nothing_more_until_it_writes(make: Make) -> None:
    world = make([Answer("one", after=5.0), Answer("two", after=60.0, pieces=4), Answer("three")])
    world.say("a")
    world.run(1)
    world.say("b")
    world.server.failures.append(BLOCKED)
    world.run(10)
    assert shown(world) == {"7": "Forbidden: bot was blocked by the user"}
    calls = len(world.server.typings)
    world.run(120)
    assert world.heard() == []
    assert len(world.server.typings) == calls
    lost = [reason for (reason,) in world.rows("SELECT reason FROM outbox WHERE state='failed' ORDER BY seq")]
    assert "the chat is retired: Forbidden: bot was blocked by the user" in lost
    world.say("c")
    world.run(30)
    assert (world.heard(), shown(world)) == (["three"], {})
    assert world.rows("SELECT count(*) FROM dead_chats") == [(0,)]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_retired_chat_stays_retired_over_a_restart(make: Make, end: str) -> None:
    world = make()
    world.say("a")
    world.server.failures.append(BLOCKED)
    world.run(30)
    getattr(world, end)()
    world.run(10)
    assert shown(world) == {"7": "Forbidden: bot was blocked by the user"}
    world.say("b", chat="8")
    world.run(30)
    assert world.heard("8") == ["You said: b"]


def test_health_names_retired_chats(make: Make) -> None:
    world = make()
    world.say("a")
    world.server.failures.append(BLOCKED)
    world.run(30)
    world.say("/status", chat="8")
    world.run(10)
    assert "telegram 7: Forbidden: bot was blocked by the user" in world.heard("8")[0]


@pytest.mark.parametrize(
    "facts",
    [
        DeliveryFacts(PLATFORM, "BadRequest", 400, message="Bad Request: message is too long"),
        DeliveryFacts(PLATFORM, "ChatMigrated", 400, message="group chat was upgraded to a supergroup chat"),
    ],
)
def test_a_refusal_of_one_message_retires_no_chat(make: Make, facts: DeliveryFacts) -> None:
    world = make()
    world.say("a")
    world.server.failures.append(facts)
    world.run(30)
    assert shown(world) == {}
    world.say("b")
    assert world.run(30).heard() == ["You said: b"]
