"""An upstream with limits and outages of its own, a tool that takes its time, and the command line without a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import FinishReason, ModelReply, ModelRequest, ToolCall, ToolSpec, Usage, UserItem
from hermes.gateway.control import ControlServer
from hermes.gateway.held import Held
from hermes.runtime.clock import SystemClock
from hermes.runtime.supervisor import Supervisor
from tests.simulation.outside import ScriptedModel
from tests.simulation.world import World

SUPERVISOR = Supervisor("control", clock=SystemClock())
ANYBODY = {"platforms": {"telegram": {"enabled": True, "token": "1:abcdefgh", "allow_all_users": True}}}


class Upstream(ScriptedModel):
    """A model behind limits and outages; notes (when, what became of it) of each call."""

    def __init__(self, now: Callable[[], float], name: str = "sim") -> None:
        super().__init__((), name)
        self.now = now
        self.calls: list[tuple[float, int]] = []
        self.admits: Callable[[float], bool] = lambda at: True
        self.down: tuple[float, float] = (0.0, 0.0)
        self.headers: dict[str, str] = {}
        self.status = 503
        self.message = "Too many requests"
        self.kind = FaultKind.HTTP_STATUS
        self.steps = 0
        self.under_way = 0
        self.most_at_once = 0
        self.hangs = False

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        at = self.now()
        status = self.status if self.down[0] <= at < self.down[1] else 200 if self.admits(at) else 429
        self.calls.append((at, status))
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await asyncio.sleep(1e6 if self.hangs else 0.3)
            if status != 200:
                message = self.message if status == 429 else "Service unavailable"
                if status != 429 and self.kind is not FaultKind.HTTP_STATUS:
                    raise ProviderFailure(FailureFacts(self.kind, Phase.CONNECT, self.name, "m"))
                raise ProviderFailure(_facts(self.name, status, message, self.headers if status == 429 else {}))
            if self.steps > 0:
                self.steps -= 1
                call = ToolCall(f"c{len(self.calls)}", "wait_a_little", f'{{"n": {len(self.calls)}}}')
                return ModelReply("", (call,), FinishReason.TOOL_CALLS, Usage(10, 5), request.model)
            said = [i.text for i in request.items if isinstance(i, UserItem)]
            on_text("You ")
            await asyncio.sleep(0.7)
            on_text(f"said: {said[-1]}")
            return ModelReply(f"You said: {said[-1]}", (), FinishReason.STOP, Usage(10, 5), request.model)
        finally:
            self.under_way -= 1

    def refused(self) -> list[float]:
        """When it said 429."""
        return [at for at, status in self.calls if status == 429]


def _facts(name: str, status: int, message: str, headers: Mapping[str, str]) -> FailureFacts:
    return FailureFacts(
        FaultKind.HTTP_STATUS, Phase.RESPONSE, name, "m", status, headers=headers, message=message
    )


class Minute:
    """Twenty calls in each minute, counted from the first one or from a full minute of the wall clock."""

    def __init__(self, allowed: int, offset: float = 0.0) -> None:
        self.allowed = allowed
        self.offset = offset
        self.taken: dict[int, int] = {}

    def __call__(self, at: float) -> bool:
        window = int((at + self.offset) // 60)
        self.taken[window] = self.taken.get(window, 0) + 1
        if self.taken[window] <= self.allowed:
            return True
        self.taken[window] -= 1
        return False


class Sliding:
    """Twenty calls in any sixty seconds."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.taken: deque[float] = deque()

    def __call__(self, at: float) -> bool:
        while self.taken and at - self.taken[0] >= 60.0:
            self.taken.popleft()
        if len(self.taken) >= self.allowed:
            return False
        self.taken.append(at)
        return True


class Bucket:
    """Twenty tokens that flow back over a minute."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.left, self.at = float(allowed), 0.0

    def __call__(self, at: float) -> bool:
        self.left = min(self.allowed, self.left + (at - self.at) * self.allowed / 60.0)
        self.at = at
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class WaitALittle:
    """A tool that takes two seconds."""

    effect = ToolEffect.PURE
    spec = ToolSpec("wait_a_little", "Waits.", {"type": "object", "properties": {"n": {"type": "integer"}}})

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        await asyncio.sleep(2.0)
        return f"waited for the {arguments['n']}th time"


def upstream(world: World) -> Upstream:
    """Puts an upstream with a will of its own in the model's place."""
    found = Upstream(world.now)
    world.model = found
    return found


class Cli:
    """The command line, which talks to the gateway through its control port without a socket."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: list[str] = []

    async def keep_talking(self) -> None:
        g = self.world.gateway
        assert g is not None
        port = ControlServer(Path("control.sock"), g.door, g.actions, str, self._key, SUPERVISOR, g.governor)

        async def send(message: dict[str, Any]) -> None:
            """What a terminal would show."""

        while True:
            said = f"cli {len(self.answers)}"
            result = await port.answer({"op": "chat", "text": said}, send, Held())
            assert isinstance(result, dict)
            self.answers.append(result["text"])

    def _key(self) -> str:
        return f"key-{len(self.answers)}"
