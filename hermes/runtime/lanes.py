"""One run per key at a time, a bounded number in all; an idle key costs nothing (R44)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class LaneRun:
    """One run of the handler. `cause`: why it is being cancelled; None as long as it is not."""

    __slots__ = ("_again", "_task", "cause")

    def __init__(self) -> None:
        self.cause: object | None = None
        self._again = False
        self._task: asyncio.Task[None] | None = None


class Lanes(Generic[K]):
    """Runs `handler(key, run)` whenever `key` has work: at most once per key and `width` in all at a time.

    Keys beyond the width wait first come, first served. What the handler raises goes to
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
        self._waiting: dict[K, None] = {}
        self._stopped = False

    def __len__(self) -> int:
        """Keys that run or wait."""
        return len(self._running) + len(self._waiting)

    @property
    def waiting(self) -> int:
        """Keys that wait for width."""
        return len(self._waiting)

    def wake(self, key: K) -> None:
        """`key` has work. Any number of calls before a run begins make one run; during a run, one more.

        Ignored after `stop_intake`.
        """
        if self._stopped:
            return
        run = self._running.get(key)
        if run is not None:
            run._again = True
        elif self._waiting or len(self._running) >= self._width:
            self._waiting[key] = None
        else:
            self._start(key)

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
        self._waiting.clear()

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

    def _start(self, key: K) -> None:
        run = LaneRun()
        self._running[key] = run
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
        if run._again and not self._stopped:
            self._waiting[key] = None  # behind those that wait already
        while self._waiting and len(self._running) < self._width:
            following = next(iter(self._waiting))
            del self._waiting[following]
            self._start(following)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(key, error)
