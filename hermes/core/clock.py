"""The one way in which the program learns the time (R41)."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time as the program sees it; a test may hand in one that jumps."""

    def now(self) -> float:
        """Unix seconds, UTC. May step when the machine's clock is set; never use it to measure a wait."""
        ...

    def monotonic(self) -> float:
        """Seconds from an unspecified start that never go back; the only base for waits in memory."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after `seconds`; zero or less only yields. Cancellation ends it at once."""
        ...
