"""Limits by the second and limits of tokens: stated by headers, named by a refusal, or configured."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import pytest

from hermes.core.transcript import ModelReply, ModelRequest, Usage
from tests.simulation.limits import ANYBODY, Upstream
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


class Rated(Upstream):
    """Allows so many calls or tokens in any ``seconds``; says so in its refusals or its headers."""

    def __init__(self, world: World, calls: int, seconds: float, *, says: str = "", **headers: str) -> None:
        super().__init__(world.now)
        self.allowed, self.seconds = calls, seconds
        self.says = says
        self.states = {name.replace("_", "-"): value for name, value in headers.items()}
        self.taken: deque[float] = deque()
        self.admits = self._admits
        self.used = 0

    def _admits(self, at: float) -> bool:
        while self.taken and at - self.taken[0] >= self.seconds:
            self.taken.popleft()
        if len(self.taken) >= self.allowed:
            return False
        self.taken.append(at)
        return True

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.message = self.says or self.message
        reply = await super().complete(request, on_text)
        usage = Usage(self.used, 0) if self.used else reply.usage
        return replace(reply, limits=self.states or None, usage=usage)


def crowd(world: World, model: Rated, people: int = 60, seconds: float = 40.0) -> None:
    """So many people say something; all are answered in time."""
    world.model = model
    world.run(1)
    for n in range(people):
        world.say("hi", chat=str(100 + n))
    world.run(seconds)
    assert [world.heard(str(100 + n)) for n in range(people)] == [["You said: hi"]] * people


def test_ten_calls_a_second_named_by_a_refusal_are_kept_and_used(make: Make) -> None:
    world = make(settings=ANYBODY)
    model = Rated(world, 10, 1.0, says="Rate limit exceeded: 10 requests per second")
    crowd(world, model)
    refused = model.refused()
    assert len(refused) <= 8
    assert max(refused) - min(refused) < 1.0, "none after the first crowd was told"


def test_ten_calls_a_second_stated_by_headers_are_never_exceeded(make: Make) -> None:
    world = make(settings=ANYBODY)
    model = Rated(world, 10, 1.0, ratelimit_policy="10;w=1")
    world.model = model
    world.run(1)
    world.say("first", chat="99")
    world.run(5)
    crowd(world, model, seconds=25.0)
    assert model.refused() == []


def minute(model: Rated, size: int) -> int:
    """The most tokens of any sixty seconds, each call being ``size``."""
    times = [at for at, status in model.calls if status == 200]
    return max(sum(size for at in times if first <= at < first + 60.0) for first in times)


@pytest.mark.parametrize("where", ["configured", "stated", "named"])
def test_tokens_by_the_minute_are_kept(make: Make, where: str) -> None:
    """Each call takes 1,000 tokens, as its answer says; 10,000 are allowed."""
    provider = {"kind": "openai", "base_url": "http://sim.invalid/v1"}
    if where == "configured":
        provider |= {"tokens_per_minute": 10_000}  # type: ignore[dict-item]
    world = make(settings={**ANYBODY, "providers": {"sim": provider}})
    headers = {"x_ratelimit_limit_tokens_minute": "10000"} if where == "stated" else {}
    model = Rated(world, 10, 60.0, says="on tokens per min (TPM): Limit 10000, Used 10000, Requested 1000", **headers)
    model.used = 1000
    world.model = model
    world.run(1)
    world.say("first", chat="99")
    world.run(5)
    crowd(world, model, people=25, seconds=300.0)
    assert minute(model, 1000) <= 10_000
    refused = model.refused()
    assert len(refused) <= (8 if where == "named" else 0), refused
    assert max(refused, default=0.0) - min(refused, default=0.0) < 1.0, "none after the first crowd was told"
