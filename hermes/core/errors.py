"""The error tree: one class for each reaction a caller can take.

HermesError
├── ProviderFailure      a model call failed; ``facts`` go to ``policy.classify``
├── PlatformFailure      a platform's connect, receive or send failed; ``facts`` go to ``policy.delivery``
├── Poison               this one update or row can never be understood or rendered (R1)
├── LostFence            somebody newer owns this turn: stop, write nothing (R10)
├── LostOwnership        another process owns the home: leave at once (R32)
├── StoreUnavailable     the disk refuses: stop intake, wait, try again
│   └── StoreDamaged     the file is damaged: no further write, escalate to the root (R26)
├── ForeignHome          the home belongs to another program or a newer schema (R34)
├── HomeInUse            another gateway holds the lock of this home (R32)
├── TargetUnknown        a name (chat, platform, session) that does not exist
└── ToolError            a tool refuses its arguments or cannot do what was asked; text is for the model
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.delivery import DeliveryFacts
    from hermes.core.failures import FailureFacts


class HermesError(Exception):
    """Root of all errors that are ours."""


class ProviderFailure(HermesError):
    """A model call failed. ``facts`` is everything a decision needs."""

    def __init__(self, facts: FailureFacts) -> None:
        super().__init__(f"{facts.provider}: {facts.kind.value}")
        self.facts = facts


class PlatformFailure(HermesError):
    """A platform's connect, receive or send failed. ``facts`` is everything a decision needs."""

    def __init__(self, facts: DeliveryFacts) -> None:
        super().__init__(f"{facts.platform}: {facts.exception or facts.message}")
        self.facts = facts


class Poison(HermesError):
    """One update or row that cannot be understood or rendered; the reason is for the owner."""


class LostFence(HermesError):
    """The turn's epoch moved on: whoever sees this stops and writes nothing."""


class LostOwnership(HermesError):
    """The owner's generation moved on: another process owns the home."""


class StoreUnavailable(HermesError):
    """The store refuses to write (disk full, I/O error, corruption)."""


class StoreDamaged(StoreUnavailable):
    """The file itself is damaged: writing stops, the process leaves, the owner is told (DESIGN §6)."""


class ForeignHome(HermesError):
    """The home or its files belong to another program, or to a newer Hermes."""


class HomeInUse(HermesError):
    """Another gateway process holds this home."""


class TargetUnknown(HermesError):
    """A chat, platform or session of that name does not exist."""


class ToolError(HermesError):
    """A tool cannot do what was asked; the text is the result the model reads."""
