"""Owners of tasks: one failure cancels no sibling, and none goes unnoticed (R25, R26)."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from hermes.core.clock import Clock

T = TypeVar("T")

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
"""Seconds before a restart: doubles from the first to the longest with each crash in the window."""


class LeakedCancellation(Exception):
    """A task ended as cancelled although nobody cancelled it: a library let its own cancellation out."""


class Supervisor:
    """Keeps every task it started until it ends.

    `on_crash(task name, error)` hears of each failure; `on_escalate(error)` of an essential task that failed
    too often. Both are called on the loop and must not raise. `crashes` counts by error type; `parked` holds
    what will not be started again, by name. Must be used from one loop.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        on_crash: Callable[[str, BaseException], None] = lambda name, error: None,
        on_escalate: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.name = name
        self.crashes: Counter[str] = Counter()
        self.parked: dict[str, BaseException] = {}
        self._clock = clock
        self._on_crash = on_crash
        self._on_escalate = on_escalate
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks that have not ended, sorted."""
        return tuple(sorted(task.get_name() for task in self._tasks))

    def spawn(self, coro: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Starts one task. Raises RuntimeError after `aclose` began; the coroutine is closed then."""
        if self._closed:
            coro.close()
            raise RuntimeError(f"supervisor {self.name} is closed: {name} cannot start")
        task = asyncio.get_running_loop().create_task(coro, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def spawn_forever(
        self,
        factory: Callable[[], Awaitable[object]],
        name: str,
        *,
        restarts: int = 5,
        seconds: float = 300.0,
        essential: bool = False,
    ) -> asyncio.Task[None]:
        """Starts `factory()` again after each failure, with a growing delay.

        More than `restarts` failures within `seconds`: an essential task escalates, another is parked. A
        normal return ends it. Cancelling the returned task ends it at any point.
        """
        self.parked.pop(name, None)
        return self.spawn(self._keep(factory, name, restarts, seconds, essential), name)

    async def aclose(self, timeout: float) -> list[str]:  # noqa: ASYNC109 - answers who is left
        """Cancels all and waits up to `timeout` seconds; answers the names of those that did not end."""
        self._closed = True
        mine = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in mine:
            task.cancel()
        if not mine:
            return []
        _, left = await asyncio.wait(mine, timeout=timeout)
        return sorted(task.get_name() for task in left)

    async def _keep(
        self,
        factory: Callable[[], Awaitable[object]],
        name: str,
        restarts: int,
        seconds: float,
        essential: bool,
    ) -> None:
        failures: deque[float] = deque()
        while True:
            error = await self._once(factory)
            if error is None:
                return
            self._crashed(name, error)
            now = self._clock.monotonic()
            failures.append(now)
            while failures[0] < now - seconds:
                failures.popleft()
            if len(failures) > restarts:
                self.parked[name] = error
                if essential:
                    self._on_escalate(error)
                return
            await self._clock.sleep(min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** (len(failures) - 1)))

    @staticmethod
    async def _once(factory: Callable[[], Awaitable[object]]) -> Exception | None:
        task = asyncio.current_task()
        try:
            await factory()
        except asyncio.CancelledError as error:
            if task is None or task.cancelling():
                raise
            leaked = LeakedCancellation("ended as cancelled, though nobody cancelled it")
            leaked.__cause__ = error
            return leaked
        except Exception as error:  # noqa: BLE001 - R26
            return error
        return None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(task.get_name(), error)

    def _crashed(self, name: str, error: BaseException) -> None:
        self.crashes[type(error).__name__] += 1
        self._on_crash(name, error)


def outcome_of(fn: Callable[..., T], *args: object) -> tuple[T, None] | tuple[None, BaseException]:
    """Calls `fn`; what it raises is answered. For worker threads, which outlive any job (R26)."""
    try:
        return fn(*args), None
    except BaseException as error:  # noqa: BLE001 - R26
        return None, error
