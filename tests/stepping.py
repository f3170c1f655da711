"""Stops a coroutine's task at its n-th await, exactly: the loop's task factory counts the steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Stepped(Coroutine[Any, Any, Any]):
    """A coroutine that says when it is suspended for the n-th time; that moment is one of its awaits."""

    def __init__(self, inner: Coroutine[Any, Any, Any], at: int, reached: Callable[[], None]) -> None:
        self._inner = inner
        self._at = at
        self._reached = reached
        self.awaits = 0

    def send(self, value: Any) -> Any:
        waits_for = self._inner.send(value)
        self.awaits += 1
        if self.awaits == self._at:
            self._reached()
        return waits_for

    def throw(self, *error: Any) -> Any:
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise TypeError("only a task runs this")


def stop_at(
    loop: asyncio.AbstractEventLoop, name: str, at: int, reached: Callable[[], None]
) -> list[Stepped]:
    """From now on each task whose coroutine's qualified name is ``name`` calls ``reached`` at its n-th await.

    The list fills with what was started. ``loop.set_task_factory(None)`` ends it.
    """
    started: list[Stepped] = []

    def make(loop: asyncio.AbstractEventLoop, coro: Any, **how: Any) -> asyncio.Task[Any]:
        if getattr(coro, "__qualname__", "") == name:
            coro = Stepped(coro, at, reached)
            started.append(coro)
        return asyncio.Task(coro, loop=loop, **how)

    loop.set_task_factory(make)
    return started


TURN = "TurnLane._guard"
"""The coroutine of a turn's own task."""
