"""Words for admission: who asks to call an upstream, what stands in the way, and what others may see of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hermes.core.failures import Verdict
from hermes.core.ids import SessionId, TurnId
from hermes.core.money import Settlement
from hermes.core.principals import PrincipalId
from hermes.core.records import NewDelivery, OutboxRow
from hermes.core.urgency import Urgency


class Circuit(StrEnum):
    """closed (calls pass) → open (none passes) → half open (one probe) → closed or open."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Guard(StrEnum):
    """What keeps a call from an upstream."""

    CIRCUIT = "circuit"
    PROBE = "probe"
    """Another call is finding out whether the upstream is back."""
    BLOCKED = "blocked"
    """The upstream said when it may be called again, or a refused call is being waited out."""
    RATE = "rate"
    CONCURRENCY = "concurrency"
    UNPROVEN = "unproven"
    """As many calls are on their way unanswered as an upstream may have whose limits are not known for sure."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call that wants to be made. `tokens` is an estimate of what it will use.

    `patience`: the longest stated block (seconds) that is worth waiting for; beyond it the call is refused.
    `wait`: the longest wait of any kind (seconds), after which the call is refused.
    """

    target: str
    tokens: int = 0
    urgency: Urgency = Urgency.INTERACTIVE
    principal: str = ""
    patience: float = 120.0
    wait: float = math.inf


@dataclass(frozen=True, slots=True)
class Refused:
    """No call: what stood in the way, and a verdict to plan with (`retry_after` says how long it may last)."""

    target: str
    guard: Guard
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class UpstreamView:
    """A target as health shows it. Seconds from now; None = unknown or unlimited."""

    target: str
    circuit: Circuit
    opens_in: float
    blocked_for: float
    calls_per_minute: int | None
    concurrency: int
    in_flight: int
    waiting: int
    outage: str | None


@dataclass(frozen=True, slots=True)
class StoredUpstream:
    """What outlives the process. `state` is JSON of the governor's own; times are unix seconds."""

    target: str
    state: str
    blocked_until: float | None
    updated_at: float


class UpstreamStore(Protocol):
    """Where the governor's knowledge is kept."""

    async def load(self) -> list[StoredUpstream]:
        """All targets ever written."""

    async def save(self, upstreams: Sequence[StoredUpstream]) -> None:
        """Replaces the rows of these targets. Raises StoreUnavailable."""


class Granted(Protocol):
    """Permission for one call. Whoever holds it settles it with one of these; the first one counts."""

    def succeeded(self, headers: Mapping[str, str] | None = None) -> None:
        """A complete answer came; `headers` (lower-case names) may state limits."""

    def failed(self, verdict: Verdict) -> None:
        """The call failed."""

    def abandon(self) -> None:
        """Nobody will learn how the call ended (cancelled, gone): the lease goes back."""


class Admissions(Protocol):
    """The governor as parked turns, health and the control socket see it."""

    async def enter(self, request: CallRequest) -> Granted | Refused:
        """Waits for permission, at most `request.wait` seconds. Cancelling gives everything back."""

    def room(self, targets: Sequence[str]) -> int:
        """How many turns may be woken now so that each finds one of the targets ready to be called."""

    def look_again(self, targets: Sequence[str]) -> float | None:
        """Seconds until a guard of one of the targets ends by itself; None: nothing is to be waited for."""

    def unsaved(self) -> list[StoredUpstream]:
        """What changed since the last call and should outlive the process."""

    def views(self) -> dict[str, UpstreamView]:
        """Every known target."""


@dataclass(frozen=True, slots=True)
class ParkedTurn:
    """A turn that waits for an upstream. `outage` is `target@since`; `until` (unix): then it ends unanswered."""

    turn_id: TurnId
    session_id: SessionId
    principal_id: PrincipalId
    outage: str
    until: float


class Parking(Protocol):
    """Turns that wait for an outage to end: one journal row each, no coroutine (R13)."""

    async def park(self, park: Park, notice: NewDelivery, now: float) -> list[OutboxRow]:
        """Suspends a running turn; the notice is said unless this chat or turn was told of the outage before.

        Raises LostFence, also when its end was decided meanwhile.
        """

    async def parked(self) -> list[ParkedTurn]:
        """All of them, oldest first."""

    async def resume(self, turn: TurnId, now: float) -> bool:
        """It may be claimed again; False if it is not parked any more."""

    async def expire(self, turn: TurnId, now: float) -> bool:
        """It has waited too long: its lane ends it with a sentence. False if it is not parked any more."""


@dataclass(frozen=True, slots=True)
class Park:
    """What is parked: `step` was begun and is asked again. `until` (unix) counts from the first time."""

    turn_id: TurnId
    epoch: int
    step: int
    outage: str
    active_seconds: float
    until: float
    charges: tuple[Settlement, ...] = ()  # what the failed calls have cost
