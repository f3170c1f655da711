"""The four time limits of one model call, each a fault of its own.

``connect_timeout``: look-up, TCP and TLS (kept by the transport). ``first_byte_timeout``: from the call's
start until the first event of the answer. ``stall_timeout``: from one *progress* to the next, where
progress is text, reasoning, a piece of a tool call or the finish; comments, pings and empty deltas keep a
connection alive and are none. ``total_timeout``: the whole call, for a model that reasons for ever.
Headers alone are no first byte: some servers send them before they read the prompt, and a slow local
model would be judged by the shorter stall limit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from hermes.core.failures import FaultKind
from hermes.policy.streams import time_limits


class CallSettings(Protocol):
    """What an adapter reads of its provider's configuration; times in seconds."""

    @property
    def connect_timeout(self) -> float: ...

    @property
    def first_byte_timeout(self) -> float: ...

    @property
    def stall_timeout(self) -> float: ...

    @property
    def total_timeout(self) -> float: ...

    @property
    def max_response_bytes(self) -> int: ...

    @property
    def base_url(self) -> str: ...


LIMIT_KEYS = ("first_byte_timeout", "stall_timeout", "total_timeout")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of each call of one provider: times in seconds, ``size`` in bytes of one answer."""

    connect: float = 15.0
    first_byte: float = 120.0
    stall: float = 60.0
    total: float = 900.0
    size: int = 32 * 2**20
    base_url: str = ""
    stated: frozenset[str] = frozenset(LIMIT_KEYS)

    @classmethod
    def of(cls, settings: CallSettings) -> CallLimits:
        """The limits that a provider's configuration names; those that it leaves open suit server and model."""
        stated = getattr(settings, "model_fields_set", LIMIT_KEYS)
        return cls(
            settings.connect_timeout,
            settings.first_byte_timeout,
            settings.stall_timeout,
            settings.total_timeout,
            settings.max_response_bytes,
            settings.base_url,
            frozenset(stated),
        )

    def for_model(self, model: str) -> CallLimits:
        """The limits of a call to ``model``: local servers and reasoning models have time, unless stated."""
        wide = time_limits(model, self.base_url)
        return replace(
            self,
            first_byte=self.first_byte if "first_byte_timeout" in self.stated else wide.first_byte,
            stall=self.stall if "stall_timeout" in self.stated else wide.stall,
            total=self.total if "total_timeout" in self.stated else wide.total,
        )


class LimitReached(Exception):
    """A time limit ended the call; ``kind`` says which."""

    def __init__(self, kind: FaultKind, seconds: float) -> None:
        super().__init__(f"{kind.value} after {seconds:g} s")
        self.kind = kind


class CallClock:
    """An async context that ends the call at whichever limit comes first, by LimitReached."""

    __slots__ = ("_begun", "_end", "_limits", "_loop", "_timeout")

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._end = now + limits.total
        self._begun = False
        self._timeout = asyncio.timeout_at(min(now + limits.first_byte, self._end))

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    def progress(self) -> None:
        """The answer moved on: the stall limit starts anew."""
        self._begun = True
        if not self._timeout.expired():
            self._timeout.reschedule(min(self._loop.time() + self._limits.stall, self._end))

    def wind_down(self, seconds: float) -> None:
        """The answer is complete: only its clean end is awaited, for so long at most."""
        if not self._timeout.expired():
            self._timeout.reschedule(min(self._loop.time() + seconds, self._end))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise self._reached() from None

    def _reached(self) -> LimitReached:
        if (self._timeout.when() or 0.0) >= self._end:
            return LimitReached(FaultKind.TOTAL_TIMEOUT, self._limits.total)
        if self._begun:
            return LimitReached(FaultKind.STALLED, self._limits.stall)
        return LimitReached(FaultKind.FIRST_BYTE_TIMEOUT, self._limits.first_byte)
