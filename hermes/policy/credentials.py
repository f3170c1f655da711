"""Which key of a pool is taken, and how long one that failed rests. Pure; times are UTC epoch seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hermes.core.failures import Reason, Verdict

LONGEST_REST = 24 * 3600.0
"""A persisted rest beyond this is clamped at load: clocks jump, and no key is lost for good by one (R41)."""
BILLING_REST = 3600.0
AUTH_REST = 600.0
LIMIT_REST = 60.0


class KeyState(StrEnum):
    """What a pool knows about one of its keys."""

    LIVE = "live"
    RESTING = "resting"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class KeyHealth:
    """``until``: when a resting key is tried again. ``uses`` counts takes since the start."""

    state: KeyState = KeyState.LIVE
    until: float = 0.0
    uses: int = 0

    def usable(self, now: float) -> bool:
        """Live, or rested."""
        return self.state is KeyState.LIVE or (self.state is KeyState.RESTING and self.until <= now)


class Strategy(StrEnum):
    """`pool_strategy` of the configuration."""

    FILL_FIRST = "fill_first"
    ROUND_ROBIN = "round_robin"
    LEAST_USED = "least_used"


def choose(keys: Sequence[KeyHealth], strategy: Strategy, turn: int, now: float) -> int:
    """The index of the key to take; ``turn`` counts the takes before. ``keys`` must not be empty.

    Where none is usable, the one whose rest ends first is taken, a dead one last: the upstream decides, and
    its answer is told, rather than a guess of ours.
    """
    usable = [i for i, key in enumerate(keys) if key.usable(now)]
    if not usable:
        return min(range(len(keys)), key=lambda i: (keys[i].state is KeyState.DEAD, keys[i].until, i))
    match strategy:
        case Strategy.FILL_FIRST:
            return usable[0]
        case Strategy.ROUND_ROBIN:
            return min(usable, key=lambda i: (i - turn) % len(keys))
        case Strategy.LEAST_USED:
            return min(usable, key=lambda i: (keys[i].uses, i))


def judged(health: KeyHealth, verdict: Verdict, now: float) -> KeyHealth:
    """The health of the key with which a call failed so; unchanged where the key is not to blame."""
    stated = verdict.retry_after
    match verdict.reason:
        case Reason.AUTH_PERMANENT:
            return KeyHealth(KeyState.DEAD, 0.0, health.uses)
        case Reason.AUTH:
            rest = AUTH_REST
        case Reason.BILLING:
            rest = BILLING_REST if stated is None else stated
        case Reason.RATE_LIMIT:
            rest = LIMIT_REST if stated is None else stated
        case _:
            return health
    if health.state is KeyState.DEAD:
        return health
    return KeyHealth(KeyState.RESTING, now + min(max(rest, 1.0), LONGEST_REST), health.uses)


def restored(stored: Mapping[str, object], now: float) -> KeyHealth:
    """A persisted health, re-clamped; anything unreadable is live."""
    until = stored.get("until")
    match stored.get("state"):
        case KeyState.DEAD.value:
            return KeyHealth(KeyState.DEAD)
        case KeyState.RESTING.value if isinstance(until, int | float) and math.isfinite(until) and until > now:
            return KeyHealth(KeyState.RESTING, min(float(until), now + LONGEST_REST))
    return KeyHealth()
