"""One way out: stop intake, drain, flush, close, then the end, all within one deadline (R31)."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hermes.runtime.children import ChildGroups

Step = Callable[[float], Awaitable[object]]
"""One part of a stage; gets the seconds that are left for it."""

UNWIND = 0.5
"""Seconds that a step which was cancelled may take to unwind."""


class Stage(IntEnum):
    """In this order."""

    STOP_INTAKE = 1
    DRAIN = 2
    FLUSH = 3
    CLOSE = 4


@dataclass(frozen=True, slots=True)
class StepReport:
    """How one step ended: in time if `finished`; `error` is what it raised."""

    stage: Stage
    name: str
    seconds: float
    finished: bool
    error: BaseException | None


class Shutdown:
    """Holds what must happen at the end, and makes it happen once.

    `deadline_seconds` bounds all stages together; `reserve` of it is kept from DRAIN for what comes after.
    A signal requests the end; one that finds it requested hurries it, which ends DRAIN at once. If the end is not
    reached `grace` seconds after the deadline, a thread ends the process with `hard_code`.
    """

    def __init__(
        self,
        deadline_seconds: float,
        *,
        reserve: float | None = None,
        grace: float = 5.0,
        hard_code: int = 1,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self.deadline_seconds = deadline_seconds
        self.reserve = min(5.0, deadline_seconds / 4) if reserve is None else reserve
        self.requested = asyncio.Event()
        self.hurried = asyncio.Event()
        self.reason = ""
        self._grace = grace
        self._hard_code = hard_code
        self._leave = leave
        self._steps: list[tuple[Stage, str, Step]] = []
        self._sinks: list[Callable[[float], object]] = []
        self._children: list[ChildGroups] = []
        self._timer: threading.Timer | None = None

    def add(self, stage: Stage, name: str, step: Step) -> None:
        """`step(seconds left)` runs in `stage`; within a stage in the order of registration."""
        self._steps.append((stage, name, step))

    def add_sink(self, close: Callable[[float], object]) -> None:
        """`close(seconds)` says an output's last word and blocks at most that long; called by `exit_now`."""
        self._sinks.append(close)

    def add_children(self, children: ChildGroups) -> None:
        """These groups are killed by `exit_now`."""
        self._children.append(children)

    def request(self, reason: str) -> None:
        """Asks for the end; further requests change nothing (two parts may fail at once)."""
        if self.requested.is_set():
            return
        self.reason = reason
        self.requested.set()
        self._timer = threading.Timer(self.deadline_seconds + self._grace, self.exit_now, [self._hard_code])
        self._timer.name = "hermes-hard-limit"
        self._timer.daemon = True
        self._timer.start()

    def install_signals(
        self, loop: asyncio.AbstractEventLoop, *, on_hangup: Callable[[], object] | None = None
    ) -> None:
        """SIGTERM and SIGINT request the end, SIGHUP calls `on_hangup`. From the main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number.name)
        if on_hangup is not None:
            loop.add_signal_handler(signal.SIGHUP, on_hangup)

    def hurry(self) -> None:
        """Ends DRAIN at once, now or when it comes."""
        self.hurried.set()

    def _signalled(self, name: str) -> None:
        if self.requested.is_set():
            self.hurry()
        else:
            self.request(name)

    async def run(self) -> list[StepReport]:
        """All stages, whatever fails in one; answers how each step went. Requests the end if nobody has."""
        if not self.requested.is_set():
            self.request("end of run")
        loop = asyncio.get_running_loop()
        until = loop.time() + self.deadline_seconds
        reports = []
        for stage, name, step in sorted(self._steps, key=lambda one: one[0]):
            left = until - loop.time()
            if stage <= Stage.DRAIN:
                left -= self.reserve
            reports.append(await self._run_step(stage, name, step, max(0.0, left)))
        return reports

    def exit_now(self, code: int) -> None:
        """Kills the registered children, gives each sink its last second and ends the process. Any thread."""
        for children in self._children:
            children.kill_all()
        for close in self._sinks:
            close(1.0)
        self._leave(code)

    def disarm(self) -> None:
        """Takes back the hard limit; for a process that goes on living (a test, a foreground command)."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _run_step(self, stage: Stage, name: str, step: Step, left: float) -> StepReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        task = loop.create_task(_call(step, left), name=f"shutdown.{name}")
        waits: set[asyncio.Task[Any]] = {task}
        hurry = loop.create_task(self.hurried.wait()) if stage is Stage.DRAIN else None
        if hurry is not None:
            waits.add(hurry)
        await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if hurry is not None:
            hurry.cancel()
            await asyncio.sleep(0)
        finished = task.done()
        if not finished:
            task.cancel()
            await asyncio.wait([task], timeout=UNWIND)
        error = task.exception() if task.done() and not task.cancelled() else None
        return StepReport(stage, name, loop.time() - began, finished, error)


def _call(step: Step, left: float) -> Coroutine[Any, Any, object]:
    async def call() -> object:
        return await step(left)

    return call()
