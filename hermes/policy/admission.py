"""May this upstream be called now, and whose call is next: pure (DESIGN §5, R29)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from hermes.core.governor import CallRequest, Circuit, Guard
from hermes.core.urgency import Urgency
from hermes.policy.breaker import Breaker, circuit, probe_is_free
from hermes.policy.rate_limit import (
    Limits,
    Rate,
    calls_limit,
    frees_at,
    spaced_until,
    tokens_limit,
    unanswered_limit,
)

AGE = 60.0
"""Seconds of waiting that make a call one class more urgent; none becomes as urgent as one that a person waits for."""

SHARES: Mapping[Urgency, int] = {Urgency.BACKGROUND: 10, Urgency.SCHEDULE: 20}
"""One grant in so many goes to a class that has somebody waiting, however busy the more urgent ones are."""

AGED_SHARE = 4
"""The same for a call that has waited so long that it would be interactive."""


@dataclass(frozen=True, slots=True)
class Health:
    """One upstream as admission sees it. `concurrency` may be a fraction; `in_flight` calls are under way,
    `unanswered` of them, lately sent, without a sign; `oldest_sign_by`: when the oldest of these stops
    counting (inf: none)."""

    breaker: Breaker = field(default_factory=Breaker)
    rate: Rate = field(default_factory=Rate)
    limits: Limits = field(default_factory=Limits)
    concurrency: float = 256.0
    in_flight: int = 0
    unanswered: int = 0
    oldest_sign_by: float = math.inf


@dataclass(frozen=True, slots=True)
class Go:
    """Call it. `probe`: this call finds out for all others whether the upstream is back."""

    probe: bool = False


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Ask again at `at`, or earlier when something changes (inf: only then)."""

    at: float
    guard: Guard


@dataclass(frozen=True, slots=True)
class Refuse:
    """Not within this call's patience: take another target. `at`: when the guard ends."""

    at: float
    guard: Guard


Admission: TypeAlias = Go | WaitUntil | Refuse


def admit(health: Health, request: CallRequest, *, now: float) -> Admission:
    """Whether the call may be made now. An open circuit refuses; all else is waited for within bounds."""
    rate = health.rate
    state = circuit(health.breaker, now)
    if state is Circuit.OPEN:
        return Refuse(health.breaker.until, Guard.CIRCUIT)
    if now < rate.blocked_until:
        return _bounded(rate.blocked_until, Guard.BLOCKED, request, now)
    if state is Circuit.HALF_OPEN:
        if not probe_is_free(health.breaker, now):
            return _bounded(health.breaker.probe_until, Guard.PROBE, request, now, known=False)
        return Go(probe=True)
    if health.in_flight >= max(1, int(health.concurrency)):
        return _bounded(math.inf, Guard.CONCURRENCY, request, now, known=False)
    frees = frees_at(
        rate.window, now, request.tokens, calls_limit(rate, health.limits), tokens_limit(rate, health.limits)
    )
    if frees > now:
        return _bounded(frees, Guard.RATE, request, now, known=False)
    spaced = spaced_until(rate)
    if now < spaced:
        return _bounded(spaced, Guard.UNPROVEN, request, now, known=False)
    if health.unanswered >= unanswered_limit(rate, health.limits):
        return _bounded(health.oldest_sign_by, Guard.UNPROVEN, request, now, known=False)
    return Go()


def _bounded(at: float, guard: Guard, request: CallRequest, now: float, *, known: bool = True) -> WaitUntil | Refuse:
    """`known`: the guard will surely last until `at`, so that waiting beyond the patience is pointless."""
    if request.wait <= 0.0 or (known and at - now > min(request.patience, request.wait)):
        return Refuse(at, guard)
    return WaitUntil(at, guard)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One call in the queue; `since` on the callers' clock."""

    urgency: Urgency
    principal: str
    since: float


@dataclass(slots=True)
class Served:
    """Who was served lately: the numbers of each principal's last grant, grants since each class had one, and how
    many in a row nobody waited for."""

    grants: int = 0
    last: dict[str, int] = field(default_factory=dict)
    passed: dict[Urgency, int] = field(default_factory=dict)
    unattended: int = 0

    LIMIT = 10_000

    def note(self, urgency: Urgency, principal: str) -> None:
        """A grant went to this class and principal."""
        self.grants += 1
        if len(self.last) >= self.LIMIT:
            self.last.clear()
        self.last[principal] = self.grants
        self.unattended = 0 if urgency is Urgency.INTERACTIVE else self.unattended + 1
        for other in SHARES:
            self.passed[other] = 0 if other is urgency else self.passed.get(other, 0) + 1


def most_urgent(queue: Sequence[Waiting], served: Served, now: float) -> int:
    """The index of the call that is next; the queue must not be empty.

    A class whose share is due comes first, but never two grants in a row while a person waits; then the most urgent
    class (waiting raises it, below the interactive), in it the principal that was served longest ago, of its calls
    the oldest.
    """

    def rank(index: int) -> tuple[int, int, float]:
        one = queue[index]
        if one.urgency is Urgency.INTERACTIVE:
            place = 0
        else:
            raised = int(one.urgency) - int(max(0.0, now - one.since) // AGE)
            share = AGED_SHARE if raised <= 0 else SHARES[Urgency(raised)]
            due = served.unattended == 0 and served.passed.get(one.urgency, 0) >= share - 1
            place = -1 if due else max(1, raised)
        return place, served.last.get(one.principal, 0), one.since

    return min(range(len(queue)), key=rank)


T = TypeVar("T")


def in_turn(waiting: Sequence[tuple[str, T]]) -> list[T]:
    """(principal, thing) oldest first → the order in which they are served: one a principal in turn (R30)."""
    by_principal: dict[str, list[T]] = {}
    for principal, thing in waiting:
        by_principal.setdefault(principal, []).append(thing)
    rounds = max((len(things) for things in by_principal.values()), default=0)
    return [things[n] for n in range(rounds) for things in by_principal.values() if n < len(things)]
