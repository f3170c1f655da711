"""Who is served first when not all can be: people before background work before schedules, and nobody never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermes.core.transcript import ModelReply, ModelRequest, UserItem
from hermes.core.urgency import Urgency
from tests.simulation.limits import ANYBODY, Upstream
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

LIMITED = {"kind": "openai", "base_url": "http://sim.invalid/v1", "requests_per_minute": 20}


class Named(Upstream):
    """Notes what each call is about, in the order in which they began."""

    def __init__(self, world: World) -> None:
        super().__init__(world.now)
        self.asked: list[tuple[float, str]] = []
        self.takes = 0.0

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        said = [item.text for item in request.items if isinstance(item, UserItem)][-1]
        self.asked.append((self.now(), said))
        return await super().complete(request, on_text)

    def before(self, text: str, since: float) -> int:
        """How many calls began after ``since`` and before the one about ``text``."""
        names = [said for at, said in self.asked if at >= since]
        return names.index(text)


def named(make: Make, **settings: Any) -> tuple[World, Named]:
    world = make(settings={**ANYBODY, "providers": {"sim": LIMITED}, **settings})
    model = world.model = Named(world)
    world.run(1)
    return world, model


@pytest.mark.parametrize("waited", [5, 100, 400])
def test_a_flood_of_schedules_delays_a_person_by_one_call_at_most(make: Make, waited: int) -> None:
    world, model = named(make)
    for n in range(200):
        world.say(f"scheduled {n}", chat=str(1000 + n), urgency=Urgency.SCHEDULE)
    world.run(waited)
    since = world.now()
    world.say("hello", chat="7")
    world.run(70)
    assert model.before("hello", since) <= 1
    assert world.heard("7") == ["You said: hello"]


def test_a_flood_of_schedules_leaves_a_lane_to_a_person(make: Make) -> None:
    provider = {"kind": "openai", "base_url": "http://sim.invalid/v1", "requests_per_minute": 100_000}
    world, model = named(make, agent={"max_concurrent_turns": 8}, providers={"sim": provider})
    model.hangs = True
    for n in range(50):
        world.say(f"scheduled {n}", chat=str(1000 + n), urgency=Urgency.SCHEDULE)
    world.run(30)
    assert len(model.asked) == 6
    model.hangs = False
    world.say("hello", chat="7")
    assert world.run(3).heard("7") == ["You said: hello"]


@pytest.mark.parametrize(("urgency", "share"), [(Urgency.BACKGROUND, 10), (Urgency.SCHEDULE, 20)])
def test_people_who_never_stop_starve_nothing(make: Make, urgency: Urgency, share: int) -> None:
    world, model = named(make)
    for n in range(60):
        world.say(f"person {n}", chat=str(100 + n))
    world.run(2)
    since = world.now()
    world.say("later", chat="7", urgency=urgency)
    for n in range(60, 120):
        world.say(f"person {n}", chat=str(100 + n))
        world.run(3)
    assert world.heard("7") == ["You said: later"]
    assert model.before("later", since) <= share


def test_a_busy_person_does_not_push_the_others_aside(make: Make) -> None:
    world, model = named(make)
    for n in range(60):
        world.say(f"busy {n}", chat=str(100 + n), user="1")
    world.run(10)
    since = world.now()
    world.say("quiet", chat="7")
    world.run(70)
    assert model.before("quiet", since) <= 1


def test_a_resumed_turn_is_as_urgent_as_it_was_and_a_persons_word_raises_it(make: Make) -> None:
    world, model = named(make)
    model.hangs = True
    world.say("scheduled", chat="7", urgency=Urgency.SCHEDULE)
    world.run(5)
    assert world.rows("SELECT urgency FROM turns") == [(2,)]
    world.kill()
    world.run(5)
    assert world.gateway is not None
    [waiting] = world.gateway.lane.running.values()
    assert waiting.claim.urgency is Urgency.SCHEDULE
    assert waiting.claim.resumed
