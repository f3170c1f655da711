"""A thousand calls that fail together: through the real pipeline, without a governor's help and with it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from hermes.agent.governor import Governor
from hermes.agent.pipeline import Pipeline, with_policy
from hermes.agent.targets import Answered, Ask, Target, UpstreamBook
from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.transcript import FinishReason, ModelReply, ModelRequest, Usage, UserItem
from hermes.policy.recovery import RecoveryPolicy
from hermes.runtime.virtual import VirtualClock, VirtualLoop
from tests.simulation.test_bound import Quiet

pytestmark = pytest.mark.simulation

CLIENTS = 1000
BOUNDS = RecoveryPolicy(targets=(), retries=5, base=5.0, cap=60.0, ratio=0.5)


class Down:
    """Says 503 until ``until``; notes when each client called, and how often it had before."""

    name = "sim"

    def __init__(self, now: Callable[[], float], until: float) -> None:
        self.now, self.until = now, until
        self.calls: list[float] = []
        self.sends: dict[int, list[float]] = {}
        self.by: Counter[str] = Counter()

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        [said] = [item.text for item in request.items if isinstance(item, UserItem)]
        self.calls.append(self.now())
        self.sends.setdefault(self.by[said], []).append(self.now())
        self.by[said] += 1
        await asyncio.sleep(0.05)
        if self.now() < self.until:
            facts = FailureFacts(FaultKind.HTTP_STATUS, Phase.RESPONSE, "sim", "m", 503, message="Service unavailable")
            raise ProviderFailure(facts)
        on_text("yes")
        return ModelReply("yes", (), FinishReason.STOP, Usage(1, 1), "m")

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Nothing to close."""


def fullest(times: Iterable[float], start: float) -> int:
    """The most sends within one second of the clock."""
    return max(Counter(int(at - start) for at in times).values())


def crowd(until: float, *, shared: bool, bounds: RecoveryPolicy = BOUNDS, seed: int = 1) -> tuple[Down, int]:
    """All call in the same instant; each process of its own, or all of one process. How many were answered."""

    async def run() -> tuple[Down, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock, draw = VirtualClock(loop), random.Random(seed)
        start = clock.monotonic()
        model = Down(lambda: clock.monotonic() - start, until)
        targets = (Target(model, "m"),)
        governor = Governor(clock, draw.random) if shared else None

        async def client(number: int) -> bool:
            own = governor if governor is not None else Governor(clock, draw.random)
            pipeline = Pipeline(
                targets, with_policy(bounds, targets), clock, draw.random, upstreams=UpstreamBook(), governor=own
            )
            ask = Ask("", (UserItem(f"client {number}"),), (), f"p{number}")
            return isinstance(await pipeline.call(ask, Quiet(), clock.monotonic() + 1800.0), Answered)

        ends = await asyncio.gather(*(client(n) for n in range(CLIENTS)))
        return model, sum(ends)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(1_800_000_000.0)) as runner:
        return runner.run(run())


def test_a_thousand_processes_that_fail_together_spread_out() -> None:
    model, _ = crowd(1e9, shared=False)
    retries = [k for k in model.sends if k >= 2 and len(model.sends[k]) == CLIENTS]
    assert len(retries) >= 2, "the circuit of a process alone leaves its retries to it"
    for k in retries:
        first, last = min(model.sends[k]), max(model.sends[k])
        assert fullest(model.sends[k], first) <= 3 * CLIENTS / (last - first), k


def test_a_thousand_turns_of_one_process_do_not_call_together_when_the_circuit_half_opens() -> None:
    model, answered = crowd(100.0, shared=True)
    during = [at for at in model.calls if at < 100.0]
    assert len(during) <= 30, "one finds out for all"
    after = [at for at in model.calls if at >= 100.0]
    assert answered == CLIENTS
    assert after[0] < 175.0, "one pause of the circuit at most"
    assert fullest(after, after[0]) <= 3 * CLIENTS / (after[-1] - after[0])
    assert sum(at < after[0] + 0.3 for at in after) <= 50, "few at first, then as many as are answered"
