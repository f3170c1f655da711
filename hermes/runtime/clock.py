"""The machine's own time."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """`hermes.core.clock.Clock` over the operating system and the running loop."""

    __slots__ = ()

    def now(self) -> float:
        """Unix seconds, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an unspecified start; never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits on the running loop; zero or less only yields."""
        await asyncio.sleep(seconds)
