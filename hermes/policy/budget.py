"""Bounds of a turn and of money: what is left, what a call may cost, what a failed one has cost. Pure.

    grant(caps, spent, …) ─► Granted(output, usd) | Refusal      decided inside the reserving transaction
    billing(facts, …)     ─► released · for what came · in full   a failed call's money
    used_up(budget, spent) ─► Limit | None                        steps, tokens, active time
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.money import Caps, Limit, Price, Refusal, Totals
from hermes.core.transcript import Usage

LEAST_OUTPUT = 256
"""Answer tokens below which a call is not worth its prompt: then the money counts as used up."""
DEFAULT_OUTPUT = 8_192
"""Answer tokens that are reserved for where neither model nor request names a limit."""
_MILLION = 1_000_000
_TINY = 1e-9
"""Dollars that sums of floats may be off by."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a turn and everything it starts may use together. Tokens: 0 = no cap. Time in active seconds."""

    steps: int
    seconds: float
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used of a Budget so far. A failed provider call is no step."""

    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, *, steps: int = 0, seconds: float = 0.0, tokens: int = 0, usd: float = 0.0) -> Spent:
        """With more used."""
        return Spent(self.steps + steps, self.seconds + seconds, self.tokens + tokens, self.usd + usd)


def used_up(budget: Budget, spent: Spent) -> Limit | None:
    """The bound that forbids a further step. Time ends a little early, so that a closing call fits in."""
    if spent.steps >= budget.steps:
        return Limit.STEPS
    if budget.tokens and spent.tokens >= budget.tokens:
        return Limit.TOKENS
    if spent.seconds >= budget.seconds - closing_seconds(budget):
        return Limit.TIME
    return None


def closing_seconds(budget: Budget) -> float:
    """Active time that is kept for the closing call: a twentieth, at most half a minute."""
    return min(30.0, budget.seconds / 20)


# ---- money ------------------------------------------------------------------------------------------


def cost(price: Price, usage: Usage) -> float:
    """Dollars for what the provider says was used. Cached and written tokens are part of the prompt's."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    written = min(usage.written_tokens, usage.input_tokens - cached)
    fresh = usage.input_tokens - cached - written
    prompt = fresh * price.input + cached * price.cached + written * price.written
    return (prompt + usage.output_tokens * price.output) / _MILLION


def at_most(price: Price, tokens_in: int, output: int) -> float:
    """Dollars a call can cost: its whole prompt at the dearest rate, and all of the answer it may give."""
    return (tokens_in * max(price.input, price.written, price.cached) + output * price.output) / _MILLION


@dataclass(frozen=True, slots=True)
class Granted:
    """The call may be made, with at most ``output`` answer tokens, for at most ``usd``."""

    output: int
    usd: float


def grant(
    caps: Caps, spent: Totals, price: Price, *, tokens_in: int, output: int, least: int
) -> Granted | Refusal:
    """No cap is passed: the answer is bounded to what the tightest one leaves, or the call is refused.

    ``spent`` holds what is settled and what is reserved. A call that costs nothing is always granted.
    """
    wanted = at_most(price, tokens_in, output)
    limit, cap, left = _tightest(caps, spent)
    if limit is None or wanted <= left + _TINY or wanted <= 0.0:
        return Granted(output, wanted)
    least = min(least, output)
    needed = at_most(price, tokens_in, least)
    if needed > left + _TINY:
        return Refusal(limit, cap, max(0.0, left), needed)
    prompt = at_most(price, tokens_in, 0)
    fits = output if price.output <= 0 else max(least, int((left - prompt) * _MILLION / price.output))
    fits = min(fits, output)
    return Granted(fits, at_most(price, tokens_in, fits))


def _tightest(caps: Caps, spent: Totals) -> tuple[Limit | None, float, float]:
    """The cap with the least left, the cap itself, and how much that is."""
    scopes = (
        (Limit.TURN_USD, caps.turn, spent.turn),
        (Limit.SESSION_USD, caps.session, spent.session),
        (Limit.PERSON_DAY_USD, caps.person_day, spent.person_day),
        (Limit.DAY_USD, caps.day, spent.day),
    )
    bounded = [(limit, cap, cap - used) for limit, cap, used in scopes if cap > 0]
    return min(bounded, key=lambda scope: scope[2], default=(None, 0.0, 0.0))


class Bill(StrEnum):
    """What a failed call is taken to have cost."""

    NOTHING = "nothing"
    WHAT_CAME = "what_came"
    ALL = "all"


_NEVER_SENT = frozenset({
    FaultKind.REFUSED, FaultKind.DNS, FaultKind.CONNECT_TIMEOUT, FaultKind.POOL_TIMEOUT, FaultKind.CERTIFICATE,
    FaultKind.PROXY, FaultKind.REQUEST_INVALID,
})  # fmt: skip
_BROKEN_OFF = frozenset({FaultKind.STALLED, FaultKind.CUT, FaultKind.ENDED_EARLY, FaultKind.TOTAL_TIMEOUT,
                         FaultKind.ERROR_EVENT})  # fmt: skip
_MAY_HAVE_RUN = frozenset({408, 499, 504, 522, 524, 598, 599})
"""Statuses by which somebody in between says that it did not wait for the answer."""


def billing(facts: FailureFacts) -> Bill:
    """What is certain is not charged: a call never sent, one refused with a status. A stream that broke off
    costs what came; where nothing is known, all that was reserved."""
    kind = facts.kind
    if kind in _NEVER_SENT or facts.phase is Phase.CONNECT:
        return Bill.NOTHING
    if kind is FaultKind.HTTP_STATUS:
        return Bill.ALL if facts.status in _MAY_HAVE_RUN else Bill.NOTHING
    if kind is FaultKind.ERROR_IN_200 or (kind is FaultKind.ERROR_EVENT and not facts.tokens_seen):
        return Bill.NOTHING
    if kind in _BROKEN_OFF:
        return Bill.WHAT_CAME
    return Bill.ALL


def cost_of_failure(
    bill: Bill, price: Price | None, reserved: float, tokens_in: int, tokens_out: int
) -> float | None:
    """Dollars of a failed call; None: the whole reservation. A stream of which no visible word came may have
    been all thought, so it costs all."""
    if price is None or bill is Bill.NOTHING:
        return 0.0
    if bill is Bill.ALL or tokens_out <= 0:
        return None
    return min(reserved, at_most(price, tokens_in, tokens_out))


def plus_usage(one: Usage, other: Usage) -> Usage:
    """Two calls' tokens."""
    return replace(
        one,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        written_tokens=one.written_tokens + other.written_tokens,
    )


def dollars(usd: float) -> str:
    """``$1.25``; small sums with as many places as they need."""
    if usd == 0 or usd >= 0.1:
        return f"${usd:.2f}"
    return f"${usd:.4f}" if usd >= 0.001 else f"${usd:.6f}"
