"""One run per key at a time, a bounded number in all; an idle key costs nothing (R44)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from hermes.core.urgency import Urgency

AGE = 60.0
"""Seconds of waiting that make a key one class more urgent."""
RESERVED = 4
"""One in so many of the width is for keys that a person waits for."""

K = TypeVar("K", bound=Hashable)


class LaneRun:
    """One run of the handler. `cause`: why it is being cancelled; None as long as it is not."""

    __slots__ = ("_again", "_task", "cause", "urgency")

    def __init__(self, urgency: Urgency) -> None:
        self.cause: object | None = None
        self.urgency = urgency
        self._again: Urgency | None = None
        self._task: asyncio.Task[None] | None = None


class Lanes(Generic[K]):
    """Runs `handler(key, run)` whenever `key` has work: at most once per key and `width` in all at a time.

    Keys beyond the width wait, those that a person waits for first, else first come, first served; a share of the
    width is only for them. A key that waits becomes more urgent with time. What the handler raises goes to
    `on_error(key, error)` and ends only that run. Must be used from one loop; `wake` and `cancel` never wait.
    """

    def __init__(
        self,
        *,
        width: int,
        handler: Callable[[K, LaneRun], Awaitable[None]],
        on_error: Callable[[K, BaseException], None],
    ) -> None:
        if width < 1:
            raise ValueError(f"width: {width} runs at a time would never run anything; allowed: 1 or more")
        self._width = width
        self._handler = handler
        self._on_error = on_error
        self._running: dict[K, LaneRun] = {}
        self._waiting: dict[Urgency, dict[K, float]] = {urgency: {} for urgency in Urgency}
        self._unattended = 0
        self._stopped = False

    def __len__(self) -> int:
        """Keys that run or wait."""
        return len(self._running) + self.waiting

    @property
    def waiting(self) -> int:
        """Keys that wait for width."""
        return sum(map(len, self._waiting.values()))

    def wake(self, key: K, urgency: Urgency = Urgency.INTERACTIVE) -> None:
        """`key` has work. Any number of calls before a run begins make one run; during a run, one more.

        The most urgent call counts. Ignored after `stop_intake`.
        """
        if self._stopped:
            return
        run = self._running.get(key)
        if run is not None:
            run._again = urgency if run._again is None else min(run._again, urgency)
            return
        self._queue(key, urgency)
        self._fill()

    def _queue(self, key: K, urgency: Urgency) -> None:
        now = asyncio.get_running_loop().time()
        for other, keys in self._waiting.items():
            if key in keys:
                if other <= urgency:
                    return
                now = keys.pop(key)
        self._waiting[urgency][key] = now

    def _fill(self) -> None:
        while len(self._running) < self._width and (found := self._next()) is not None:
            key, urgency = found
            del self._waiting[urgency][key]
            self._start(key, urgency)

    def _next(self) -> tuple[K, Urgency] | None:
        """The oldest key of the most urgent class that may run now; waiting raises a class."""
        now = asyncio.get_running_loop().time()
        best: tuple[tuple[int, float], K, Urgency] | None = None
        for urgency, keys in self._waiting.items():
            if not keys or (urgency is not Urgency.INTERACTIVE and self._unattended >= self._width - self._reserve):
                continue
            key, since = next(iter(keys.items()))
            place = (max(0, int(urgency) - int((now - since) // AGE)), since)
            if best is None or place < best[0]:
                best = place, key, urgency
        return None if best is None else best[1:]

    @property
    def _reserve(self) -> int:
        return self._width // RESERVED

    def cancel(self, key: K, cause: object) -> bool:
        """Records the cause, then cancels the run (R14); the first cause stays. False: nothing runs."""
        run = self._running.get(key)
        if run is None or run._task is None:
            return False
        if run.cause is None:
            run.cause = cause
        return run._task.cancel()

    def running(self, key: K) -> bool:
        """Whether the handler runs for `key` now."""
        return key in self._running

    def running_keys(self) -> tuple[K, ...]:
        """Keys whose handler runs now, oldest run first."""
        return tuple(self._running)

    def stop_intake(self) -> None:
        """No further run begins; those that wait are forgotten (their work is on disk)."""
        self._stopped = True
        for keys in self._waiting.values():
            keys.clear()

    async def drain(self, timeout: float) -> list[K]:  # noqa: ASYNC109 - answers who still runs
        """Waits up to `timeout` seconds until nothing runs or waits; answers the keys that still run.

        Cancels nothing. Without `stop_intake` new work keeps it waiting.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while self._running:
            tasks = [run._task for run in self._running.values() if run._task is not None]
            left = until - loop.time()
            if left <= 0:
                break
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # the lanes' own callbacks
        return list(self._running)

    def _start(self, key: K, urgency: Urgency) -> None:
        run = LaneRun(urgency)
        self._running[key] = run
        self._unattended += urgency is not Urgency.INTERACTIVE
        # A context of its own: what the waker bound for its log lines is not this run's.
        run._task = asyncio.get_running_loop().create_task(
            self._run(key, run), name="lane", context=contextvars.Context()
        )
        run._task.add_done_callback(lambda task: self._finished(key, run, task))

    async def _run(self, key: K, run: LaneRun) -> None:
        await self._handler(key, run)

    def _finished(self, key: K, run: LaneRun, task: asyncio.Task[None]) -> None:
        run._task = None  # breaks the cycle run -> task -> coroutine -> run
        del self._running[key]
        self._unattended -= run.urgency is not Urgency.INTERACTIVE
        if run._again is not None and not self._stopped:
            self._queue(key, run._again)  # behind those that wait already
        self._fill()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(key, error)
