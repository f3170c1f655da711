"""Words for a platform's link: its state and what can happen to it (DESIGN §5 "Links").

`hermes.policy.reconnect.step` moves a `Link`; the shell that obeys is `gateway.links`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hermes.core.delivery import DeliveryReason, DeliveryVerdict


class LinkState(StrEnum):
    """How well a platform can be heard."""

    STARTING = "starting"
    """No cycle has completed yet, none has failed."""
    UP = "up"
    RETRYING = "retrying"
    """A few cycles in a row failed; tried again soon, on the same link."""
    LOST = "lost"
    """Reconnecting with a fresh client, with growing pauses."""
    CONFLICT = "conflict"
    """Somebody else receives with our token."""
    PARKED = "parked"
    """The attempts are used up: probed slowly, for ever."""
    REFUSED = "refused"
    """Only a person can mend it (token, intent, scope): probed slowly, for ever."""


@dataclass(frozen=True, slots=True)
class Link:
    """One platform's link. Times are unix seconds.

    `since`: up since then, or not heard since then. `next_try_at`: when the shell tries next.
    `rebuild_client`: that try needs a fresh client. `notice` is true only in the step after which the owner
    is to be told, once; `told` are the states they were told of since the last completed cycle; `conflict_at`
    is the last conflict's time, which outlives it. `failures` counts failed cycles in a row, `attempts` the
    reconnections that failed since the link was lost. `note` is what the platform itself said, where only a person can
    mend it (which scope is missing).
    """

    platform: str
    state: LinkState
    since: float
    next_try_at: float
    failures: int = 0
    attempts: int = 0
    rebuild_client: bool = False
    notice: bool = False
    told: frozenset[LinkState] = frozenset()
    conflict_at: float | None = None
    reason: DeliveryReason | None = None
    detail: str | None = None
    note: str = ""
    last_cycle_at: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether sends are worth trying: nothing says that the link is down."""
        return self.state in (LinkState.STARTING, LinkState.UP, LinkState.RETRYING)


@dataclass(frozen=True, slots=True)
class Connected:
    """The client says it is connected. No proof: only a completed cycle heals."""


@dataclass(frozen=True, slots=True)
class CycleCompleted:
    """A receive cycle completed, with or without updates (a poll that answered, a heartbeat acknowledged)."""


@dataclass(frozen=True, slots=True)
class CycleFailed:
    """Connecting or a receive cycle failed; ``said`` are the platform's own words, without secrets."""

    verdict: DeliveryVerdict
    said: str = ""


@dataclass(frozen=True, slots=True)
class ReconnectNow:
    """The owner asked (``/platform``, a new token): try at once with a fresh client, whatever the pause."""


LinkEvent = Connected | CycleCompleted | CycleFailed | ReconnectNow
