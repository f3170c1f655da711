"""A circuit breaker for one upstream: closed, open, half open with one probe.

M. Nygard, "Release It!", 2nd ed. 2018, ch. 5. Two additions: the probe is a lease, so that a prober that
is cancelled or dies leaves nothing stuck (R29), and the first token of any answer closes the circuit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hermes.core.failures import Reason, Verdict
from hermes.core.governor import Circuit

COUNTED = frozenset({Reason.OVERLOADED, Reason.SERVER_ERROR, Reason.TIMEOUT})
"""Failures that may be an outage of the upstream. A 429 is a rate, not an outage: it blocks (rate_limit)."""

SAME_OUTAGE = 120.0
"""Seconds: a circuit that opens again so soon after it closed is still the same outage to the person."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """`failures` in a row open it, for `base` seconds doubling to `cap`, plus up to `jitter` of that.

    `lease`: seconds after which a probe that said nothing is given up and another call may try. `cheap`: the
    longest pause where a probe shows at once and costs nothing (None: `base`).
    """

    failures: int = 5
    base: float = 10.0
    cap: float = 60.0
    jitter: float = 0.2
    lease: float = 180.0
    cheap: float | None = None


def policy_for(*, retries: int, base: float, cap: float) -> BreakerPolicy:
    """The circuit that goes with a call's own bounds: one call alone uses its retries up before it opens, and
    the first pause is twice the first wait between retries."""
    return BreakerPolicy(failures=max(5, retries + 2), base=2.0 * base, cap=max(cap, 2.0 * base))


NEAR_BASE, NEAR_CHEAP = 1.0, 3.0
"""Seconds of the first pause, and of the longest while nobody listens, for a server on this machine: it restarts in
a moment, and a probe costs nobody else anything."""


def near(policy: BreakerPolicy) -> BreakerPolicy:
    """The same for a server on this machine."""
    return replace(policy, base=min(policy.base, NEAR_BASE), cheap=min(policy.base, NEAR_CHEAP))


CHEAP = frozenset({"refused", "dns"})
"""Timeouts that show at once and cost nothing: their probes stay frequent."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """Where one upstream's circuit stands; make it with the functions below. Times on their caller's clock.

    `failures` in a row, over all callers; `opened`: how often in a row (0 = closed); `until`: no call before;
    `probe_until`: end of the probe's lease (0 = nobody probes); `outage` names what it is open for.
    """

    failures: int = 0
    opened: int = 0
    until: float = 0.0
    probe_until: float = 0.0
    outage: str | None = None
    closed_at: float = -math.inf


def counts(verdict: Verdict) -> bool:
    """Whether a failure says something about the upstream as a whole."""
    return verdict.reason in COUNTED and verdict.retryable


def circuit(breaker: Breaker, now: float) -> Circuit:
    """The state as a word."""
    if breaker.opened == 0:
        return Circuit.CLOSED
    return Circuit.OPEN if now < breaker.until else Circuit.HALF_OPEN


def probe_is_free(breaker: Breaker, now: float) -> bool:
    """Half open: whether the next call may be the probe."""
    return now >= breaker.probe_until


def probing(breaker: Breaker, policy: BreakerPolicy, now: float) -> Breaker:
    """A call goes out as the probe."""
    return replace(breaker, probe_until=now + policy.lease)


def probe_given_back(breaker: Breaker) -> Breaker:
    """The probe ended without an answer (cancelled): the next call may probe at once."""
    return replace(breaker, probe_until=0.0)


def succeeded(breaker: Breaker, now: float) -> Breaker:
    """An answer came, or began to: closed."""
    if breaker.opened == 0:
        return replace(breaker, failures=0) if breaker.failures else breaker
    return Breaker(outage=breaker.outage, closed_at=now)


def failed(
    breaker: Breaker, policy: BreakerPolicy, *, now: float, u: float, name: str, stated: float | None = None,
    established: bool = False, cheap: bool = False,
) -> Breaker:  # fmt: skip
    """A counted failure. `stated`: the wait the upstream asks for; `name` is the outage's if one begins here.

    `established`: a call's whole recovery found no way: open it whatever the count. `cheap`: the pause does
    not grow. `u` in [0, 1).
    """
    failures = breaker.failures + 1
    state = circuit(breaker, now)
    wait = stated if stated is not None and math.isfinite(stated) else 0.0
    if state is Circuit.OPEN:
        return replace(breaker, failures=failures, until=max(breaker.until, now + min(wait, policy.cap)))
    if state is Circuit.CLOSED and failures < policy.failures and not established:
        return replace(breaker, failures=failures)
    opened = breaker.opened + 1
    cool = min(policy.cap, policy.base * 2.0 ** min(opened - 1, 30))
    if cheap:
        cool = min(cool, policy.base if policy.cheap is None else policy.cheap)
    cool = max(cool * (1.0 + policy.jitter * min(max(u, 0.0), 1.0)), min(wait, policy.cap))
    same = breaker.outage is not None and (opened > 1 or now - breaker.closed_at < SAME_OUTAGE)
    return Breaker(failures, opened, now + cool, 0.0, breaker.outage if same else name)


def in_outage(breaker: Breaker) -> str | None:
    """The outage's name while the circuit is not closed."""
    return breaker.outage if breaker.opened else None
