"""Time that passes only when nothing else can happen: the simulation's event loop (R28)."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

START = 1_750_000_000.0
"""Unix seconds at which a simulation begins unless told otherwise."""

PATIENCE = 30.0
"""Real seconds that an external operation may take."""


class NothingCanHappen(RuntimeError):
    """No task is ready, no timer is set, and nothing outside is under way: the simulation would hang."""


class ExternalStalled(RuntimeError):
    """An operation outside of the simulation did not end within PATIENCE real seconds."""


class _JumpingSelector(selectors.BaseSelector):
    """Where the loop would wait for a timer, moves the loop's time there instead."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.time = 0.0
        self.outside: list[str] = []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.outside:
            ready = self._real.select(PATIENCE)
            if not ready:
                raise ExternalStalled(f"not done within {PATIENCE} real seconds: {', '.join(self.outside)}")
            return ready
        if timeout is None:
            raise NothingCanHappen("every task waits for something that nobody will do")
        self.time += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` starts at 0 and jumps to the next timer when nothing is ready.

    asyncio.sleep, timeout and wait_for follow it. `start` is the unix time of its beginning. Raises
    NothingCanHappen out of `run_until_complete` where a real loop would hang.
    """

    def __init__(self, start: float = START) -> None:
        self._jumping = _JumpingSelector()
        self.start = start
        super().__init__(self._jumping)
        self._clock_resolution = 1e-6  # far jumps round: a timer is due within a microsecond

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.time

    @contextmanager
    def external(self, name: str) -> Iterator[None]:
        """While open, time stands still: something outside (a thread, a socket) works on behalf of a task."""
        self._jumping.outside.append(name)
        try:
            yield
        finally:
            self._jumping.outside.remove(name)


class VirtualClock:
    """`hermes.core.clock.Clock` over a VirtualLoop."""

    __slots__ = ("_loop",)

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        """Unix seconds, UTC, in virtual time."""
        return self._loop.start + self._loop.time()

    def monotonic(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Returns when the virtual time has come; zero or less only yields."""
        await asyncio.sleep(seconds)


def running_clock() -> VirtualClock:
    """The clock of the running VirtualLoop. Raises TypeError on another loop."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise TypeError(f"the running loop is a {type(loop).__name__}, not a VirtualLoop: use run_virtual")
    return VirtualClock(loop)


def run_virtual(coro: Coroutine[Any, Any, T], *, start: float = START, debug: bool | None = None) -> T:
    """Runs `coro` to its end in virtual time, as asyncio.run does in real time. Raises what it raises."""
    with asyncio.Runner(debug=debug, loop_factory=lambda: VirtualLoop(start)) as runner:
        return runner.run(coro)
