"""Writes that must not be lost because the disk is full for a moment: retried in place (DESIGN §6).

A step that was paid for is not run again because its result could not be written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from hermes.core.clock import Clock
from hermes.core.errors import StoreUnavailable
from hermes.runtime.logs import get_logger

log = get_logger(__name__)
T = TypeVar("T")
RETRY_SECONDS = 1.0


async def persist(clock: Clock, write: Callable[[], Awaitable[T]]) -> T:
    """Repeats ``write`` until the store takes it; cancellation ends it. Other errors pass."""
    failures = 0
    while True:
        try:
            return await write()
        except StoreUnavailable as error:
            failures += 1
            if failures in (1, 10, 100):
                log.error("journal_waits_for_disk", failures=failures, error=str(error))
            await clock.sleep(RETRY_SECONDS)
