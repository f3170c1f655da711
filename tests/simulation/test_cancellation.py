"""A turn stopped at each of its awaits: nothing of it goes on, and the session answers the next message."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect, TurnCause
from hermes.core.transcript import ToolSpec
from tests.simulation.outside import answer, cut_after, tool_call
from tests.simulation.test_kills import check_promises
from tests.simulation.world import World
from tests.stepping import TURN, Stepped, stop_at

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

MOST = 200
"""More awaits than a turn of these has."""


class Slow:
    """A tool with a side effect and several awaits."""

    effect = ToolEffect.ONCE
    spec = ToolSpec("slow", "Does something once, slowly.", {"type": "object", "properties": {}})

    def __init__(self) -> None:
        self.begun = 0

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        self.begun += 1
        for _ in range(3):
            await asyncio.sleep(0.2)
        return "done"


def tasks(world: World) -> Counter[str]:
    """What runs in the gateway's loop, by what it does."""
    assert world._runner is not None
    running = asyncio.all_tasks(world._runner.get_loop())
    return Counter(getattr(task.get_coro(), "__qualname__", "turn") for task in running)


def stopped_at(make: Make, at: int, cause: TurnCause) -> tuple[World, Slow, list[Stepped]]:
    """A world whose first turn (a tool, a broken stream, a streamed answer) is cancelled at its n-th await."""
    tool = Slow()
    world = make([tool_call("slow"), cut_after(3), answer("all of the answer", pieces=4)], tools=[tool])
    world.run(1)
    quiet = tasks(world)
    gateway, runner = world.gateway, world._runner
    assert gateway is not None
    assert runner is not None
    lane = gateway.lane

    def cancel() -> None:
        for running in tuple(lane.running.values()):
            running.cancel(cause)

    steps = stop_at(runner.get_loop(), TURN, at, cancel)
    world.say("first")
    world.run(60)
    runner.get_loop().set_task_factory(None)
    assert tasks(world) == quiet, f"tasks are left after a stop at await {at}"
    assert not lane.running
    return world, tool, steps


@pytest.mark.parametrize("cause", [TurnCause.STOP, TurnCause.DEADLINE])
def test_a_turn_stopped_at_any_await_leaves_no_task_and_the_next_message_is_answered(
    make: Make, cause: TurnCause
) -> None:
    ends: Counter[str] = Counter()
    for at in range(1, MOST):
        world, tool, steps = stopped_at(make, at, cause)
        assert tool.begun <= 1
        world.model.script.clear()
        world.say("second")
        world.run(60)
        said = {"7": ["second"]}
        assert len(steps) == 1
        check_promises(world, said)
        assert world.crashes == []
        [(_, end), (_, after)] = world.outcomes()
        assert after == "answered"
        assert sum("all of the answer" in text for text in world.heard()) <= 1
        ends[end] += 1
        world.close()
        if steps[0].awaits < at:
            break
    assert at < MOST - 1
    stopped = "stopped" if cause is TurnCause.STOP else "failed_told"
    assert ends[stopped] > 8
    assert ends["answered"] >= 1, "the last round was not stopped"


def test_a_turn_given_back_at_any_await_is_resumed_and_answered_once(make: Make) -> None:
    """The same at a shutdown: the lane releases the turn, and the next start goes on with it."""
    for at in range(1, MOST):
        world, tool, steps = stopped_at(make, at, TurnCause.SHUTDOWN)
        world.kill()
        world.run(60)
        world.say("second")
        world.run(60)
        check_promises(world, {"7": ["second"]})
        assert tool.begun <= 1
        assert [end for _, end in world.outcomes()] == ["answered", "answered"]
        assert sum("all of the answer" in text for text in world.heard()) <= 1
        world.close()
        if steps[0].awaits < at:
            break
    assert at < MOST - 1
