"""SDK clients that can be replaced while calls are under way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

C = TypeVar("C")


class Closed(Exception):
    """A call came after the end."""


class _Lease(Generic[C]):
    __slots__ = ("client", "retired", "uses")

    def __init__(self, client: C) -> None:
        self.client = client
        self.uses = 0
        self.retired = False


class Clients(Generic[C]):
    """The current client and those that still serve a call; each is closed when nothing needs it."""

    def __init__(self, build: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        self._build = build
        self._close = close
        self._current = _Lease(build())
        self._all = {self._current}
        self._closed = False

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[C]:
        """The client for one call. Raises Closed after ``aclose``."""
        if self._closed:
            raise Closed("the provider is closed")
        lease = self._current
        lease.uses += 1
        try:
            yield lease.client
        finally:
            lease.uses -= 1
            if lease.retired and not lease.uses:
                await self._end(lease)

    async def replace(self) -> None:
        """New calls get a fresh client; the old one ends with its last call. Nothing after ``aclose``."""
        if self._closed:
            return
        old, self._current = self._current, _Lease(self._build())
        self._all.add(self._current)
        old.retired = True
        if not old.uses:
            await self._end(old)

    async def aclose(self) -> None:
        """Closes all, calls under way included. Idempotent."""
        self._closed = True
        for lease in list(self._all):
            await self._end(lease)

    async def _end(self, lease: _Lease[C]) -> None:
        if lease in self._all:
            self._all.discard(lease)
            await self._close(lease.client)
