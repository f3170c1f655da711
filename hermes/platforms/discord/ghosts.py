"""Whether the gateway still tells of what happens: heartbeats do not prove it. Pure; times are monotonic seconds.

Two proofs of the contrary: nothing came since we ourselves said something (Discord tells a bot of its own messages),
and a history that holds messages no event told of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

TOP = 10
"""So many of the most lively channels are looked at in turn."""
TRANSIT = 5.0
"""Seconds that an event may be on its way when its message stands in the history already."""


@dataclass(slots=True)
class Ears:
    """``echo``: how long an event of our own message may take. ``audit``: silence before a history is looked at."""

    echo: float
    audit: float
    told_at: float
    looking_at: str | None = None
    """The channel whose history is being looked at."""
    _due: float | None = field(default=None)
    _looks: int = field(default=0)

    def said(self, now: float) -> None:
        """We made a message."""
        if self._due is None:
            self._due = now + self.echo

    def told(self, now: float) -> None:
        """An event came."""
        self._due, self.told_at = None, now

    def deaf(self, now: float) -> bool:
        """Whether our own message was not told of in time; said once."""
        if self._due is None or now < self._due:
            return False
        self._due = None
        return True

    def look(self, now: float, most_lively: Callable[[int], list[str]]) -> str | None:
        """The channel to look at now, of the most lively ones; None while it is too early."""
        if now - self.told_at < self.audit:
            return None
        self.told_at, lively = now, most_lively(TOP)
        if not lively:
            return None
        self.looking_at = lively[self._looks % len(lively)]
        self._looks += 1
        return self.looking_at

    def missed(self, channel: str, now: float, made: list[float]) -> bool:
        """Whether a look at ``channel`` found messages (made then, unix seconds like ``now``) never told of."""
        if channel != self.looking_at:
            return False
        self.looking_at = None
        return any(now - at > TRANSIT for at in made)
