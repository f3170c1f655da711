"""What was learned about one model of one provider, and who keeps it (R16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Learned:
    """One fact, e.g. key ``max_output``, value ``"4096"``. Times are UTC epoch seconds."""

    provider: str
    model: str
    key: str
    value: str
    learned_at: float
    expires_at: float


class LearnedStore(Protocol):
    """Keeps facts across restarts. Raises StoreUnavailable."""

    async def all(self, now: float) -> list[Learned]:
        """What has not expired."""

    async def keep(self, learned: Learned) -> None:
        """Adds or replaces one."""

    async def clear(self, provider: str = "", model: str = "") -> int:
        """Forgets all of one model of a provider, or simply all; returns how many."""


class LearnedFacts(Protocol):
    """What is known now, as the owner may see and clear it."""

    def all(self) -> list[Learned]:
        """Everything that has not expired."""

    async def clear(self, target: str = "") -> int:
        """Forgets what was learned about ``provider/model``, or all; returns how many. Raises StoreUnavailable."""
