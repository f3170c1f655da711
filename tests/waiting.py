"""Waiting for a condition in another process: the one place of the tests where real time passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["until"]

T = TypeVar("T")


def until(condition: Callable[[], T], *, within: float, why: str, every: float = 0.05) -> T:
    """Calls `condition` until it answers something true, and returns that.

    `within` and `every` are seconds. Raises AssertionError, with `why` and the last answer, when time is up.
    For what cannot be awaited (a unit's state, a container's health): inside one process wait on an event.
    """
    end = time.monotonic() + within
    while not (answer := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {within} s: {why} (last answer: {answer!r})")
        time.sleep(every)
    return answer
