"""One target: permission for a call of it (R29), and what is remembered of it, in memory and as a row."""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol

from hermes.core.failures import Reason, Verdict
from hermes.core.governor import CallRequest, Refused, StoredUpstream
from hermes.policy.admission import Health, Served, Waiting
from hermes.policy.breaker import Breaker
from hermes.policy.rate_limit import TOLD_FOR, Limits, Rate
from hermes.policy.retry_after import MAX_WAIT

GRACE = 1.0
"""Seconds within which an upstream refuses if it refuses: a call that got no sign by then counts as taken."""
CAUTIOUS_GRACE = 15.0
"""The same for the one call that tries again after a refusal."""


class Ledger(Protocol):
    """The governor, as a grant reports to it."""

    def taken(self, target: Upstream, grant: Grant) -> None: ...

    def finished(
        self, target: Upstream, grant: Grant, headers: Mapping[str, str] | None, used: int
    ) -> None: ...

    def heard(self, target: Upstream, headers: Mapping[str, str] | None) -> None: ...

    def judged(
        self, target: Upstream, grant: Grant, verdict: Verdict, rotated: bool, crowd: int
    ) -> None: ...

    def returned(self, target: Upstream, grant: Grant) -> None: ...


class Grant:
    """Implements ``core.governor.Granted``."""

    __slots__ = (
        "_governor", "_target", "answered", "done", "estimate", "fresh", "number", "probe", "started", "tokens",
    )  # fmt: skip

    def __init__(
        self, governor: Ledger, target: Upstream, number: int, started: float, tokens: int, probe: bool, estimate: int
    ) -> None:
        self._governor = governor
        self._target = target
        self.number = number
        self.started = started
        self.tokens = tokens
        self.estimate = estimate
        self.probe = probe
        self.answered = False
        self.fresh = True
        self.done = False

    def __enter__(self) -> Grant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.done:
            self.abandon()

    def watch(self, on_text: Callable[[str], None]) -> Callable[[str], None]:
        """``on_text`` that also notices the first token."""

        def watching(text: str) -> None:
            if not self.answered:
                self.sign()
            on_text(text)

        return watching

    def sign(self) -> None:
        """The first sign of an answer: the upstream took the call."""
        if not self.answered and not self.done:
            self._signed()
            self._governor.taken(self._target, self)

    def succeeded(self, headers: Mapping[str, str] | None = None, used: int = 0) -> None:
        """``used``: the tokens that the answer says it took."""
        if not self.done:
            self.sign()
            self._end()
            self._governor.finished(self._target, self, headers, used)

    def failed(
        self, verdict: Verdict, *, rotated: bool = False, headers: Mapping[str, str] | None = None
    ) -> None:
        """``rotated``: another credential takes over, so this one's refusal does not rest the target."""
        if not self.done:
            self._signed()
            crowd = len(self._target.grants)
            self._end()
            self._governor.heard(self._target, headers)
            self._governor.judged(self._target, self, verdict, rotated, crowd)

    def abandon(self) -> None:
        if not self.done:
            self._signed()
            self._end()
            self._governor.returned(self._target, self)

    def stale(self) -> None:
        """No longer counted among the calls lately sent."""
        if self.fresh:
            self.fresh = False
            self._target.unanswered -= 1

    def _signed(self) -> None:
        if not self.answered:
            self.answered = True
            self._target.silent -= 1
        self.stale()

    def _end(self) -> None:
        self.done = True
        self._target.grants.pop(self.number, None)


@dataclass(slots=True, eq=False)
class Waiter:
    """A call in the queue."""

    request: CallRequest
    place: Waiting
    future: asyncio.Future[Grant | Refused]


@dataclass(slots=True, eq=False)
class Upstream:
    """One target. `silent`: calls under way without a sign; `unanswered`: those of them lately sent; `weight`: how
    many tokens its calls take for each that was estimated."""

    name: str
    limits: Limits
    breaker: Breaker = field(default_factory=Breaker)
    rate: Rate = field(default_factory=Rate)
    concurrency: float = 256.0
    lowered_at: float = -math.inf
    answered_at: float = -math.inf
    weight: float = 1.0
    silent: int = 0
    unanswered: int = 0
    fresh: deque[Grant] = field(default_factory=deque)
    grants: dict[int, Grant] = field(default_factory=dict)
    queue: list[Waiter] = field(default_factory=list)
    served: Served = field(default_factory=Served)
    timer: asyncio.TimerHandle | None = None
    last: Verdict | None = None
    block: tuple[str, float] | None = None  # the name of the limit that blocks, and when it was last met
    unsaved: bool = False

    def health(self, now: float) -> Health:
        """As admission sees it now."""
        grace = CAUTIOUS_GRACE if self.rate.cautious == 1 else GRACE
        fresh = self.fresh
        while fresh and (not fresh[0].fresh or now - fresh[0].started >= grace):
            fresh.popleft().stale()
        return Health(
            self.breaker, self.rate, self.limits, min(self.concurrency, self.limits.max_concurrency),
            len(self.grants), self.unanswered, fresh[0].started + grace if fresh else math.inf,
        )  # fmt: skip

    def verdict(self, wait: float) -> Verdict:
        """What a call that was not made is planned with: the last failure's meaning, this guard's wait."""
        found = self.last or Verdict(Reason.RATE_LIMIT, "guarded", retryable=True)
        return replace(found, rule="guarded", retryable=True, retry_after=wait, limit=None, requested=None)

    def dump(self, mono: float, unix: float) -> StoredUpstream:
        """The row; times become unix seconds."""
        b, r, shift = self.breaker, self.rate, unix - mono
        until = max(b.until if b.opened else 0.0, r.blocked_until)
        body = {
            "opened": b.opened, "failures": b.failures, "until": b.until + shift, "outage": b.outage,
            "blocked": r.blocked_until + shift, "learned": r.learned, "calls": r.stated_calls,
            "tokens": r.stated_tokens, "spacing": r.spacing, "proven": r.proven, "concurrency": self.concurrency,
            "reason": self.last.reason.value if self.last is not None else None,
            "detail": self.last.detail if self.last is not None else None,
        }  # fmt: skip
        return StoredUpstream(self.name, json.dumps(body), until + shift if until > mono else None, unix)

    def restore(self, row: StoredUpstream, mono: float, unix: float) -> None:
        """Takes a row over; waits are clamped to what they were when written (R41). Ignores a broken row."""
        try:
            body = json.loads(row.state)
            number = _reader(body)
            opened = int(number("opened", 0.0))
            reason = body.get("reason")
            last = Verdict(Reason(reason), "remembered", body.get("detail"), retryable=True) if reason else None
        except (ValueError, TypeError, AttributeError):
            return

        def moment(key: str) -> float:
            at = number(key, 0.0)
            return mono + min(max(0.0, min(at - unix, at - row.updated_at)), MAX_WAIT)

        outage = body.get("outage")
        self.breaker = Breaker(
            int(number("failures", 0.0)), opened, moment("until") if opened else 0.0, 0.0,
            str(outage) if outage else None,
        )  # fmt: skip

        def whole(key: str) -> int | None:
            return int(number(key, 0.0)) or None

        self.rate = Rate(
            learned=whole("learned"), stated_calls=whole("calls"), stated_tokens=whole("tokens"),
            proven=whole("proven") or 0, blocked_until=moment("blocked"), spacing=min(60.0, number("spacing", 0.0)),
            told_until=mono + TOLD_FOR,
        )  # fmt: skip
        self.concurrency = max(1.0, number("concurrency", self.concurrency))
        self.last = last


def _reader(body: dict[str, Any]) -> Callable[[str, float], float]:
    def number(key: str, default: float) -> float:
        value = body.get(key)
        if value is None:
            return default
        found = float(value)
        if not 0.0 <= found < 1e12:
            raise ValueError(f"{key} is out of range")
        return found

    return number
