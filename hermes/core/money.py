"""What calls cost: prices, caps, what is reserved before a call and written when it has ended (R16).

All money is US dollars; prices are dollars a million tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hermes.core.ids import SessionId, TurnId
from hermes.core.principals import PrincipalId
from hermes.core.transcript import Usage


class Limit(StrEnum):
    """A bound of a turn that was reached."""

    STEPS = "steps"
    TOKENS = "tokens"
    TIME = "time"
    TURN_USD = "turn"
    SESSION_USD = "session"
    PERSON_DAY_USD = "person_day"
    DAY_USD = "day"


class Purpose(StrEnum):
    """What a call is made for."""

    TURN = "turn"
    CLOSING = "closing"
    SUMMARY = "summary"
    JUDGE = "judge"


class Charge(StrEnum):
    """How a ledger row stands. ``open``: the call is under way, or was when the process died."""

    OPEN = "open"
    SETTLED = "settled"  # the provider told what was used
    CHARGED = "charged"  # nobody told: what was seen of it, else the whole reservation
    RELEASED = "released"  # certainly not billed


@dataclass(frozen=True, slots=True)
class Price:
    """Of one model. ``cached``: prompt tokens read from the provider's cache; ``written``: put into it."""

    input: float
    output: float
    cached: float
    written: float


@dataclass(frozen=True, slots=True)
class Caps:
    """Most that may be spent; 0 = no cap."""

    turn: float = 0.0
    session: float = 0.0
    person_day: float = 0.0
    day: float = 0.0

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return any((self.turn, self.session, self.person_day, self.day))


@dataclass(frozen=True, slots=True)
class Totals:
    """What was spent or is reserved, in the scopes that caps have."""

    turn: float = 0.0
    session: float = 0.0
    person_day: float = 0.0
    day: float = 0.0


@dataclass(frozen=True, slots=True)
class Quote:
    """A call about to be made: what it may cost at most, and for whom. ``day``: ISO date of the owner's zone.

    ``output`` is the most tokens it may answer with; with little money left it is granted fewer, but never
    less than ``least``. Without a price nothing is reserved and no cap applies.
    """

    turn_id: TurnId
    purpose: Purpose
    provider: str
    model: str
    day: str
    price: Price | None = None
    tokens_in: int = 0
    output: int = 0
    least: int = 0
    caps: Caps = field(default_factory=Caps)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A ledger row that is open. ``output``: most tokens the call may answer with; None = as asked for."""

    id: int
    provider: str
    model: str
    usd: float = 0.0
    output: int | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """No call: the cap that stands in the way, what is left of it, and what the call would have reserved."""

    limit: Limit
    cap: float
    left: float
    needed: float


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a ledger row is closed with. ``usd`` None: the whole reservation. ``calls``: attempts it stands for."""

    id: int
    state: Charge
    usage: Usage = field(default_factory=Usage)
    usd: float | None = 0.0
    provider: str = ""
    model: str = ""
    calls: int = 1


@dataclass(frozen=True, slots=True)
class UsageLine:
    """Calls of one model, or of one day, added up. ``unpriced``: calls whose price is not known."""

    name: str
    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0


@dataclass(frozen=True, slots=True)
class UsageReport:
    """For /usage: this conversation, this person today by model, this person's last days, everybody today."""

    day: str
    session: UsageLine
    today: UsageLine
    models: tuple[UsageLine, ...]
    days: tuple[UsageLine, ...]
    everybody: UsageLine


class Ledger(Protocol):
    """The book of calls."""

    async def reserve(
        self, quote: Quote, closing: Sequence[Settlement], now: float
    ) -> Reservation | Refusal:
        """Closes rows and opens one, in one transaction; a refusal opens none. Raises StoreUnavailable."""

    async def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        """Closes rows; those that are closed already stay as they are."""

    async def usage(
        self, session: SessionId | None, principal: PrincipalId | None, day: str, days: int
    ) -> UsageReport:
        """Added up; a principal None stands for everybody."""
