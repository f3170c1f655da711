"""One governor for all who call models: who may call which upstream, and when (R29, R30, R33).

    enter ─► admit (policy.admission) ─┬─► Grant: call, then succeeded | failed | abandon
                                       ├─► a place in the queue, until something changes
                                       └─► Refused: the planner takes another target, or the turn is parked

With nothing known and nobody waiting, `enter` never suspends. Everything here runs on one loop; a grant is a
context manager and a lease, so that whoever is cancelled or dies leaves nothing stuck.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from hermes.agent.upstream import Grant, Upstream, Waiter
from hermes.core.clock import Clock
from hermes.core.failures import Reason, Verdict
from hermes.core.governor import CallRequest, Circuit, Guard, Refused, StoredUpstream, UpstreamView
from hermes.policy import breaker, rate_limit
from hermes.policy.admission import Admission, Go, Refuse, Waiting, WaitUntil, admit, most_urgent
from hermes.policy.breaker import Breaker, BreakerPolicy
from hermes.policy.rate_limit import Limits, Rate, weighed
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

LEASE = 1800.0
"""Seconds after which a grant that nobody settled no longer counts."""

ALIVE = frozenset(Reason) - breaker.COUNTED - {Reason.UNKNOWN, Reason.RATE_LIMIT}
"""Failures that only an upstream that is there can give."""


class Governor:
    """Implements ``core.governor.Admissions``. ``limits`` answers what is configured for a target."""

    def __init__(
        self,
        clock: Clock,
        random: Callable[[], float],
        *,
        limits: Callable[[str], Limits] = lambda target: Limits(),
        policy: BreakerPolicy | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._random = random
        self.limits = limits
        self.policy = policy or BreakerPolicy()
        self.on_change = on_change
        self._targets: dict[str, Upstream] = {}
        self._numbers = itertools.count(1)

    def load(self, rows: Iterable[StoredUpstream]) -> None:
        """What an earlier process knew."""
        mono, unix = self._clock.monotonic(), self._clock.now()
        for row in rows:
            self._target(row.target).restore(row, mono, unix)

    async def enter(
        self, request: CallRequest, on_wait: Callable[[str], None] = lambda guard: None
    ) -> Grant | Refused:
        """Permission for one call, or why not. Waits at most ``request.wait`` seconds; cancelling gives it back."""
        target = self._targets.get(request.target) or self._target(request.target)
        now = self._clock.monotonic()
        if not target.queue:
            match self._decide(target, request, now):
                case Go(probe):
                    return self._grant(target, request, now, probe)
                case Refuse(at, guard):
                    return self._refused(target, at, guard, now)
                case WaitUntil(_, guard):
                    on_wait(guard.value)
                case other:
                    assert_never(other)
        return await self._wait(target, request, now)

    def outage(self, name: str, verdict: Verdict, since: float) -> str | None:
        """A call's whole recovery, begun at ``since``, found no way: what is waited for, by the same name for all
        callers. None: the upstream answered meanwhile, so it is this call that it does not take."""
        target, now = self._target(name), self._clock.monotonic()
        if breaker.counts(verdict) and target.breaker.opened == 0:
            if target.answered_at >= since:
                return None
            self._fail(target, verdict, now, established=True)
            self._changed(target)
        return breaker.in_outage(target.breaker) or self._block(target, now)

    def open_circuit(self, name: str) -> Refused | None:
        """The refusal that any call would meet now; None while the circuit is not open."""
        target, now = self._target(name), self._clock.monotonic()
        if breaker.circuit(target.breaker, now) is not Circuit.OPEN:
            return None
        return self._refused(target, target.breaker.until, Guard.CIRCUIT, now)

    # ---- what others may see ----

    def room(self, targets: Sequence[str]) -> int:
        now = self._clock.monotonic()
        return max((self._room(self._target(name), now) for name in targets), default=0)

    def look_again(self, targets: Sequence[str]) -> float | None:
        now = self._clock.monotonic()
        ends = []
        for name in targets:
            match self._decide(self._target(name), CallRequest(name), now):
                case Go():
                    return None
                case WaitUntil(at, _) | Refuse(at, _):
                    ends.append(at - now)
        return min(ends, default=None)

    def unsaved(self) -> list[StoredUpstream]:
        mono, unix = self._clock.monotonic(), self._clock.now()
        found = [t for t in self._targets.values() if t.unsaved]
        for target in found:
            target.unsaved = False
        return [t.dump(mono, unix) for t in found]

    def views(self) -> dict[str, UpstreamView]:
        now = self._clock.monotonic()
        return {
            name: UpstreamView(
                name, breaker.circuit(t.breaker, now), max(0.0, t.breaker.until - now) if t.breaker.opened else 0.0,
                max(0.0, t.rate.blocked_until - now), rate_limit.calls_limit(t.rate, t.limits),
                int(min(t.concurrency, t.limits.max_concurrency)), len(t.grants), len(t.queue),
                breaker.in_outage(t.breaker),
            )
            for name, t in self._targets.items()
        }  # fmt: skip

    def refresh_limits(self) -> None:
        """The configuration changed."""
        for target in self._targets.values():
            target.limits = self.limits(target.name)
            self._pump(target)

    def forget(self, provider: str) -> None:
        """The provider is another one now: what its targets' failures and refusals taught is about the old one."""
        for target in self._targets.values():
            if target.name.partition("/")[0] == provider:
                target.breaker, target.rate, target.last, target.weight = Breaker(), Rate(), None, 1.0
                target.concurrency = float(target.limits.max_concurrency)
                self._changed(target)
                self._pump(target)

    # ---- what a grant reports ----

    def taken(self, target: Upstream, grant: Grant) -> None:
        """The first sign of an answer."""
        now = self._clock.monotonic()
        was = target.breaker.opened
        target.answered_at = now
        target.breaker = breaker.succeeded(target.breaker, now)
        before = target.rate
        target.rate = rate_limit.accepted(before, now, grant.started, target.silent)
        if was:
            log.info("circuit_closed", target=target.name)
        if was or before.learned != target.rate.learned:
            self._changed(target)
        if target.queue:
            self._pump(target)

    def finished(self, target: Upstream, grant: Grant, headers: Mapping[str, str] | None, used: int) -> None:
        """A complete answer; what it took beyond the estimate counts too."""
        if used > 0 and grant.estimate > 0:
            target.weight = weighed(target.weight, used / grant.estimate)
        if used > grant.tokens:
            more = rate_limit.used_more(target.rate.window, grant.started, used - grant.tokens)
            target.rate = replace(target.rate, window=more)
        if target.concurrency < target.limits.max_concurrency:
            target.concurrency += 1.0 / target.concurrency
        self.heard(target, headers)
        if target.queue:
            self._pump(target)

    def heard(self, target: Upstream, headers: Mapping[str, str] | None) -> None:
        """What an answer's headers state."""
        if headers:
            before = target.rate
            target.rate = rate_limit.stated(
                before, headers, now=self._clock.monotonic(), unix=self._clock.now()
            )
            said = (before.stated_calls, before.stated_tokens, before.spacing)
            now_said = (target.rate.stated_calls, target.rate.stated_tokens, target.rate.spacing)
            target.unsaved = target.unsaved or said != now_said

    def judged(self, target: Upstream, grant: Grant, verdict: Verdict, rotated: bool, crowd: int) -> None:
        """A failure, and what it says about the upstream."""
        now = self._clock.monotonic()
        if rotated:
            target.rate = replace(
                target.rate, window=rate_limit.taken_back(target.rate.window, grant.started, grant.tokens)
            )
            self._give_back(target, grant)
        elif verdict.reason is Reason.RATE_LIMIT:
            self._lower(target, grant, crowd, now)
            self._limit(target, grant, verdict, now)
        elif breaker.counts(verdict):
            if verdict.reason is Reason.OVERLOADED:
                self._lower(target, grant, crowd, now)
            self._fail(target, verdict, now)
        elif verdict.reason in ALIVE:
            target.breaker = breaker.succeeded(target.breaker, now)
            target.rate = rate_limit.accepted(target.rate, now, grant.started, target.silent)
        else:
            self._give_back(target, grant)
        if not rotated and (verdict.reason is Reason.RATE_LIMIT or breaker.counts(verdict)):
            target.last = verdict
        self._changed(target)
        self._pump(target)

    def returned(self, target: Upstream, grant: Grant) -> None:
        """Nothing was learned."""
        self._give_back(target, grant)
        if grant.probe:
            self.on_change()
        self._pump(target)

    # ---- inside ----

    def _target(self, name: str) -> Upstream:
        found = self._targets.get(name)
        if found is None:
            limits = self.limits(name)
            found = self._targets[name] = Upstream(name, limits, concurrency=float(limits.max_concurrency))
        return found

    def _decide(self, target: Upstream, request: CallRequest, now: float) -> Admission:
        health = target.health(now)
        if health.in_flight >= health.concurrency:
            for grant in [g for g in target.grants.values() if now - g.started > LEASE]:
                target.grants.pop(grant.number)
            health = target.health(now)
        if target.weight > 1.0:
            request = replace(request, tokens=int(request.tokens * target.weight))
        return admit(health, request, now=now)

    def _grant(self, target: Upstream, request: CallRequest, now: float, probe: bool) -> Grant:
        tokens = int(request.tokens * target.weight)
        grant = Grant(self, target, next(self._numbers), now, tokens, probe, request.tokens)
        if probe:
            target.breaker = breaker.probing(target.breaker, self.policy, now)
            log.info("circuit_probe", target=target.name)
        target.rate = rate_limit.sent(target.rate, now, tokens)
        target.grants[grant.number] = grant
        target.fresh.append(grant)
        target.silent += 1
        target.unanswered += 1
        target.served.note(request.urgency, request.principal)
        return grant

    def _refused(self, target: Upstream, at: float, guard: Guard, now: float) -> Refused:
        wait = max(0.0, at - now)
        return Refused(target.name, guard, target.verdict(wait if math.isfinite(wait) else 1.0))

    async def _wait(self, target: Upstream, request: CallRequest, now: float) -> Grant | Refused:
        loop = asyncio.get_running_loop()
        waiter = Waiter(request, Waiting(request.urgency, request.principal, now), loop.create_future())
        target.queue.append(waiter)
        timer = None
        if math.isfinite(request.wait):
            timer = loop.call_later(max(0.0, request.wait), self._too_late, target, waiter)
        self._pump(target)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if waiter.future.done() and not waiter.future.cancelled():
                granted = waiter.future.result()
                if isinstance(granted, Grant):
                    granted.abandon()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in target.queue:
                target.queue.remove(waiter)
                self._pump(target)

    def _too_late(self, target: Upstream, waiter: Waiter) -> None:
        if not waiter.future.done():
            waiter.future.set_result(self._refused(target, math.inf, Guard.RATE, self._clock.monotonic()))

    def _pump(self, target: Upstream) -> None:
        """Serves the queue as far as admission allows, the most urgent first, and sets the next look."""
        if target.timer is not None:
            target.timer.cancel()
            target.timer = None
        now = self._clock.monotonic()
        while target.queue:
            target.queue[:] = [w for w in target.queue if not w.future.done()]
            if not target.queue:
                return
            waiter = target.queue[most_urgent([w.place for w in target.queue], target.served, now)]
            match self._decide(target, waiter.request, now):
                case Go(probe):
                    waiter.future.set_result(self._grant(target, waiter.request, now, probe))
                case Refuse(at, guard):
                    waiter.future.set_result(self._refused(target, at, guard, now))
                case WaitUntil(at, guard):
                    if not self._raise(target, guard, now):
                        self._look_at(target, at, guard, now)
                        return

    def _raise(self, target: Upstream, guard: Guard, now: float) -> bool:
        """Calls wait for a learned rate: whether a little more is tried."""
        if guard is not Guard.RATE:
            return False
        before = target.rate
        target.rate = rate_limit.raised(before, now)
        return target.rate is not before

    def _look_at(self, target: Upstream, at: float, guard: Guard, now: float) -> None:
        """Sets the timer; those with less patience than the most urgent one are let go."""
        if guard is Guard.BLOCKED:
            for waiter in target.queue:
                decision = self._decide(target, waiter.request, now)
                if isinstance(decision, Refuse):
                    waiter.future.set_result(self._refused(target, decision.at, decision.guard, now))
        if guard is Guard.RATE and target.rate.learned is not None and not target.rate.cautious:
            at = min(at, max(now, target.rate.raise_at))
        if math.isfinite(at):
            loop = asyncio.get_running_loop()
            target.timer = loop.call_later(max(0.001, at - now), self._pump, target)

    def _limit(self, target: Upstream, grant: Grant, verdict: Verdict, now: float) -> None:
        target.breaker = breaker.succeeded(target.breaker, now)  # it is there and answers
        if verdict.detail == "in_flight":
            return
        named = verdict.rate
        target.rate = rate_limit.refused(
            target.rate, now=now, launched_at=grant.started, tokens=grant.tokens, unanswered=target.silent,
            stated=verdict.retry_after, learns=target.limits.learns and (named is None or named.calls_by_minute),
        )  # fmt: skip
        if named is not None and target.limits.learns:
            target.rate = rate_limit.told(target.rate, named, now=now)
        log.info("rate_limited", target=target.name, blocked_for=round(target.rate.blocked_until - now, 1),
                 calls_per_minute=target.rate.learned)  # fmt: skip

    def _fail(self, target: Upstream, verdict: Verdict, now: float, *, established: bool = False) -> None:
        before = target.breaker
        name = f"{target.name}@{self._clock.now():.0f}"
        policy = breaker.near(self.policy) if target.limits.near else self.policy
        target.breaker = breaker.failed(
            before, policy, now=now, u=self._random(), name=name, stated=verdict.retry_after,
            established=established, cheap=verdict.detail in breaker.CHEAP,
        )  # fmt: skip
        if target.breaker.opened > before.opened:
            log.warning("circuit_open", target=target.name, seconds=round(target.breaker.until - now, 1),
                        reason=verdict.reason.value, outage=target.breaker.outage)  # fmt: skip

    def _lower(self, target: Upstream, grant: Grant, crowd: int, now: float) -> None:
        """Multiplicative decrease, once for all calls that were under way together."""
        if crowd > 1 and grant.started > target.lowered_at:
            target.concurrency = max(1.0, min(target.concurrency, float(crowd)) / 2.0)
            target.lowered_at = now

    def _block(self, target: Upstream, now: float) -> str:
        """The name of the limit that blocks now; the same until the target was free of it for a while."""
        if target.block is None or now - target.block[1] > breaker.SAME_OUTAGE:
            target.block = (f"{target.name}@{self._clock.now():.0f}", now)
        target.block = (target.block[0], max(now, target.rate.blocked_until))
        return target.block[0]

    def _give_back(self, target: Upstream, grant: Grant) -> None:
        if grant.probe and target.breaker.opened:
            target.breaker = breaker.probe_given_back(target.breaker)

    def _room(self, target: Upstream, now: float) -> int:
        match self._decide(target, CallRequest(target.name, patience=0.0), now):
            case Go(probe=True):
                return 0 if target.queue else 1
            case Go():
                free = rate_limit.unanswered_limit(target.rate, target.limits) - target.unanswered - len(target.queue)
                return max(0, min(free, int(target.concurrency) - len(target.grants)))
            case _:
                return 0

    def _changed(self, target: Upstream) -> None:
        target.unsaved = True
        self.on_change()

