"""Ten-minute outages of the platform in every dress, a restart in the middle included (promises 1, 2, 5)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.links import LinkState
from tests.simulation.outside import DELIVERED_THEN_TIMED_OUT, network_down, timed_out
from tests.simulation.test_kills import check_promises
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

BAD_GATEWAY = DeliveryFacts("telegram", "NetworkError", 502, message="Bad Gateway")
HANGING = DeliveryFacts("telegram", "TimedOut", message="Timed out", sent=Sent.MAYBE_SENT)
REVOKED = DeliveryFacts("telegram", "InvalidToken", 401, message="Unauthorized")
CONFLICT = DeliveryFacts("telegram", "Conflict", 409, message="Conflict: terminated by other getUpdates request")


def state(world: World) -> LinkState:
    """The platform's link now."""
    assert world.gateway is not None
    [link] = world.gateway.links.states()
    return link.state


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("facts", [network_down(), BAD_GATEWAY, HANGING], ids=["refused", "502", "hanging"])
def test_ten_minutes_of_outage(make: Make, facts: DeliveryFacts, restart: bool) -> None:
    world = make()
    said: dict[str, list[str]] = {"7": [], "8": []}
    world.run(2)
    for n in range(6):
        chat = "78"[n % 2]
        said[chat].append(f"before-{n}-")
        world.say(f"before-{n}-", chat=chat)
        world.run(0.4)
    world.server.broken = facts
    world.run(100)
    for n in range(6):
        chat = "78"[n % 2]
        said[chat].append(f"during-{n}-")
        world.say(f"during-{n}-", chat=chat)
    world.run(300)
    if restart:
        world.kill()
    world.run(200)
    world.server.broken = None
    world.run(700)
    check_promises(world, said)
    assert state(world) is LinkState.UP
    for chat, texts in said.items():
        places = [next(i for i, t in enumerate(world.heard(chat)) if text in t) for text in texts]
        assert places == sorted(places), "order is kept"


def test_a_revoked_token_parks_and_given_back_heals_by_itself(make: Make) -> None:
    world = make()
    world.run(2)
    world.server.broken = REVOKED
    world.run(60)
    assert state(world) is LinkState.REFUSED
    polls = world.server.polls
    world.say("hello?")
    world.run(800)
    assert world.server.polls - polls <= 2, "no quick tries"
    world.server.broken = None
    world.run(1000)
    assert state(world) is LinkState.UP
    assert world.heard() == ["You said: hello?"]


def test_a_conflict_is_told_once_and_heals_with_the_first_cycle(make: Make) -> None:
    world = make()
    world.run(2)
    world.server.poll_broken = CONFLICT
    world.run(600)
    assert state(world) is LinkState.CONFLICT
    world.server.poll_broken = None
    world.say("hi")
    world.run(400)
    assert state(world) is LinkState.UP
    assert world.heard() == ["You said: hi"]


@pytest.mark.parametrize("round_", range(8))
def test_random_send_faults_give_no_second_unmarked_copy(make: Make, round_: int, seed: int) -> None:
    rng = random.Random(seed)
    world = make(seed=seed)
    faults = [network_down(), timed_out(), BAD_GATEWAY, DELIVERED_THEN_TIMED_OUT]
    said: dict[str, list[str]] = {"7": [], "8": [], "9": []}
    for n in range(20):
        chat = rng.choice("789")
        said[chat].append(f"message-{n}-")
        world.say(f"message-{n}-", chat=chat)
        if rng.random() < 0.5:
            world.server.failures.append(rng.choice(faults))
        world.run(rng.expovariate(0.5))
    world.run(900)
    held = {row[0] for row in world.rows("SELECT chat_id FROM outbox WHERE state='held'")}
    check_promises(world, {chat: texts for chat, texts in said.items() if chat not in held})
    for chat, texts in said.items():
        for text in texts:
            assert sum(text in t for t in world.server.unmarked(chat)) <= 1
