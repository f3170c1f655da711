"""How often an upstream may be called: what it stated, what the owner configured, what its refusals taught.

Calls are counted by the second over the last minute. A minute's allowance is never exceeded in *any* sixty
seconds, which is within bounds for fixed windows, sliding windows and token buckets of that rate alike.

What is learned from a 429 without numbers: the calls accepted in the minute before it. A first 429 alone is
not believed (it may be a limit by the second): one call tries again after `FIRST_PAUSE`; if that is refused
too, the estimate stands. It is raised while calls have to wait, by 1, 2, 4 … every `RAISE_EVERY`
seconds, but not before a time that doubles with each raise that was refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hermes.core.failures import StatedRate
from hermes.policy.retry_after import parse_duration, parse_moment
from hermes.policy.stated_rates import header_limits

SPAN = 60.0
MARGIN = 1.0
"""Seconds a call counts beyond the minute: two calls do not take the same time to get there."""
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
MINUTE_LIKE = (5.0, 90.0)
"""A stated wait within these bounds (seconds) speaks of a limit by the minute."""
RAISE_EVERY = 10.0
FREEZES = 4
LEAST_LEARNED = 6
"""Calls a minute below which no refusal is believed to speak of a limit by the minute."""
TOLD_FOR = 3600.0
"""Seconds for which a rate is believed that a refusal named: accounts are upgraded."""
SPACE = 1.1
"""Calls are spaced by so much more than a short limit asks for: they do not take the same time to get there."""
UNPROVEN_CALLS = 8
"""Calls that may be unanswered while nothing is known of an upstream; half of the proven rate if that is more."""


@dataclass(frozen=True, slots=True)
class Window:
    """(second, calls, tokens), oldest first, of calls not known to be refused."""

    seconds: tuple[tuple[int, int, int], ...] = ()


def _alive(second: int, now: float) -> bool:
    return second + 1 + SPAN + MARGIN > now


def launched(window: Window, now: float, tokens: int) -> Window:
    """One more call."""
    at = int(now)
    kept = window.seconds
    if kept and not _alive(kept[0][0], now):
        kept = tuple(s for s in kept if _alive(s[0], now))
    if kept and kept[-1][0] == at:
        last = kept[-1]
        return Window((*kept[:-1], (at, last[1] + 1, last[2] + tokens)))
    return Window((*kept, (at, 1, tokens)))


def weighed(weight: float, ratio: float) -> float:
    """How many tokens a call takes for each estimated one, after a call that took ``ratio``: quick to rise, slow to
    fall, never below 1 (upstreams count the output that was asked for, too)."""
    found = min(max(ratio, 1.0), 10.0)
    return max(found, weight * 0.9 + found * 0.1)


def used_more(window: Window, launched_at: float, tokens: int) -> Window:
    """A call took so many tokens more than was thought."""
    at = int(launched_at)
    return Window(tuple((s, n, used + tokens if s == at else used) for s, n, used in window.seconds))


def taken_back(window: Window, launched_at: float, tokens: int) -> Window:
    """A refused call: the upstream did not take it."""
    at = int(launched_at)
    return Window(
        tuple(
            (s, calls - 1, max(0, used - tokens)) if s == at else (s, calls, used)
            for s, calls, used in window.seconds
            if s != at or calls > 1
        )
    )


def counted(window: Window, now: float) -> tuple[int, int]:
    """Calls and tokens of the last minute."""
    calls = tokens = 0
    for second, made, used in window.seconds:
        if _alive(second, now):
            calls += made
            tokens += used
    return calls, tokens


def frees_at(window: Window, now: float, tokens: int, calls_limit: int | None, tokens_limit: int | None) -> float:
    """The earliest time at which one more call of `tokens` is within both limits; `now` if it is already."""
    calls, used = counted(window, now)
    at = now
    for second, made, spent in window.seconds:
        calls_fit = calls_limit is None or calls < max(1, calls_limit)
        tokens_fit = tokens_limit is None or used == 0 or used + tokens <= tokens_limit
        if calls_fit and tokens_fit:
            break
        if _alive(second, now):
            calls -= made
            used -= spent
            at = second + 1 + SPAN + MARGIN
    return at


@dataclass(frozen=True, slots=True)
class Limits:
    """What the owner configured; 0 = not limited. ``unproven_calls`` may be unanswered before anything is known."""

    max_concurrency: int = 256
    calls_per_minute: int = 0
    tokens_per_minute: int = 0
    unproven_calls: int = UNPROVEN_CALLS
    learns: bool = True
    """Whether refusals teach an allowance; a server on this machine has none, its refusals say "wait" and no more."""

    @property
    def near(self) -> bool:
        """A server on this machine."""
        return not self.learns


@dataclass(frozen=True, slots=True)
class Rate:
    """What is known of an upstream's rate. Times on the callers' clock.

    `learned`: calls a minute by its refusals; `stated_*`: by its headers; `proven`: the most it took in a
    minute; `cautious`: refused lately: how many calls at a time may be unanswered, doubling with each answer
    (0: no caution); `refused_at`: the last refusal that was news; `row`: refusals within a minute of each
    other; `freezes`: raises that were refused; `last_at`: the last call; `levels`: (since, learned) of late;
    `spacing`: seconds between two calls, from a limit by the second; `told_tokens`: a minute's, from a refusal; both
    count until `told_until`.
    """

    window: Window = field(default_factory=Window)
    learned: int | None = None
    stated_calls: int | None = None
    stated_tokens: int | None = None
    proven: int = 0
    blocked_until: float = 0.0
    cautious: int = 0
    refused_at: float = -math.inf
    row: int = 0
    freezes: int = 0
    raise_at: float = 0.0
    step: int = 1
    last_at: float = -math.inf
    levels: tuple[tuple[float, int], ...] = ()
    spacing: float = 0.0
    told_tokens: int | None = None
    told_until: float = 0.0


def calls_limit(rate: Rate, limits: Limits) -> int | None:
    """Calls a minute: the least of all that is known."""
    known = [n for n in (limits.calls_per_minute, rate.stated_calls or 0, rate.learned or 0) if n > 0]
    return min(known, default=None)


def tokens_limit(rate: Rate, limits: Limits) -> int | None:
    """Tokens a minute: the least of all that is known."""
    known = [n for n in (limits.tokens_per_minute, rate.stated_tokens or 0, rate.told_tokens or 0) if n > 0]
    return min(known, default=None)


def unanswered_limit(rate: Rate, limits: Limits) -> int:
    """How many calls may be on their way without a sign that they were taken."""
    learned = rate.learned
    usual = math.ceil(max(1, learned) / 30) if learned is not None else max(limits.unproven_calls, rate.proven // 2)
    return min(usual, rate.cautious) if rate.cautious else usual


def spaced_until(rate: Rate) -> float:
    """A learned allowance is not used in a burst: at most at twice its pace (there may be a limit by the second);
    a known limit by the second is kept by even spacing."""
    space = max(rate.spacing, SPAN / 2.0 / rate.learned if rate.learned else 0.0)
    return rate.last_at + space if space else -math.inf


def sent(rate: Rate, now: float, tokens: int) -> Rate:
    """A call goes out."""
    if rate.told_until and now >= rate.told_until:
        rate = replace(rate, spacing=0.0, told_tokens=None, told_until=0.0)
    return replace(rate, window=launched(rate.window, now, tokens), last_at=now)


def accepted(rate: Rate, now: float, launched_at: float, unanswered: int) -> Rate:
    """A call was taken. `unanswered`: other calls of which nothing is known yet."""
    taken = max(0, counted(rate.window, now)[0] - unanswered)
    learned = rate.learned
    if learned is not None and launched_at <= rate.refused_at:
        learned = max(learned, taken)  # taken before the refusal, known after it
        if learned != rate.learned:
            rate = replace(rate, levels=((rate.refused_at, learned),))
    cautious = rate.cautious
    if cautious and launched_at > rate.refused_at:
        cautious = cautious * 2 if cautious < UNPROVEN_CALLS else 0
    proven = max(rate.proven, taken)
    if (learned, cautious, proven) == (rate.learned, rate.cautious, rate.proven):
        return rate
    return replace(rate, learned=learned, cautious=cautious, proven=proven)


def refused(
    rate: Rate, *, now: float, launched_at: float, tokens: int, unanswered: int, stated: float | None,
    learns: bool = True,
) -> Rate:  # fmt: skip
    """A 429. `stated`: the wait it asks for, None if it gave no number."""
    window = taken_back(rate.window, launched_at, tokens)
    wait = stated if stated is not None and math.isfinite(stated) and stated >= 0.0 else None
    if launched_at <= rate.refused_at:  # it was under way when the first of its kind came: no news
        until = rate.blocked_until if wait is None else max(rate.blocked_until, now + wait)
        return replace(rate, window=window, blocked_until=until)
    if not learns:
        until = max(rate.blocked_until, now + (FIRST_PAUSE if wait is None else wait))
        return replace(rate, window=window, blocked_until=until, refused_at=now)
    again = now - rate.refused_at <= SPAN + MARGIN
    row = rate.row + 1 if again else 0
    estimate = max(LEAST_LEARNED, counted(window, now)[0] - unanswered)
    by_minute = wait is not None and MINUTE_LIKE[0] <= wait <= MINUTE_LIKE[1]
    learned, freezes = rate.learned, rate.freezes
    if learned is not None:
        learned, freezes = max(1, min(_held(rate, now), max(estimate, learned // 2))), freezes + 1
    elif again or by_minute:
        learned = estimate
    pause = wait if wait is not None else min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(row, 10))
    return replace(
        rate, window=window, learned=learned, levels=((now, learned),) if learned is not None else (),
        proven=min(rate.proven, estimate), cautious=1, row=row,
        refused_at=now, blocked_until=max(rate.blocked_until, now + pause), freezes=freezes, step=1,
        raise_at=now + (SPAN + MARGIN) * 2.0 ** min(freezes, FREEZES),
    )  # fmt: skip


def raised(rate: Rate, now: float) -> Rate:
    """Calls wait for a learned allowance that is used up: try a little more, when its time has come."""
    if rate.learned is None or rate.cautious or now < rate.raise_at:
        return rate
    level = rate.learned + rate.step
    old = [at for at, _ in rate.levels if now - at > SPAN + MARGIN]
    levels = tuple(one for one in rate.levels if not old or one[0] >= old[-1])
    return replace(
        rate, learned=level, levels=(*levels, (now, level)), step=rate.step * 2, raise_at=now + RAISE_EVERY
    )


def _held(rate: Rate, now: float) -> int:
    """The allowance that was in force a minute ago: what came later is not proven."""
    held = [level for at, level in rate.levels if now - at > SPAN + MARGIN]
    first = [level for _, level in rate.levels[:1]]
    return (held[-1:] or first or [rate.learned or 1])[0]


def told(rate: Rate, said: StatedRate, *, now: float) -> Rate:
    """A refusal names the allowance. It is believed for TOLD_FOR; calls by the minute are learned, and raised later."""
    if said.seconds > SPAN + MARGIN:
        return rate  # by the hour or the day: the stated wait is all there is to obey
    if said.tokens:
        return replace(rate, told_tokens=_by_minute(said), told_until=now + TOLD_FOR)
    if said.seconds < SPAN:
        return replace(rate, spacing=_spacing(said.amount, said.seconds), told_until=now + TOLD_FOR)
    level = max(1, said.amount)
    return replace(rate, learned=level, levels=((now, level),))


def _by_minute(said: StatedRate) -> int:
    return max(1, int(said.amount * SPAN / said.seconds))


def _spacing(amount: int, seconds: float) -> float:
    """Evenly spaced, calls are within a limit of so many in so short a time, however it is counted."""
    return seconds / amount * SPACE


def stated(rate: Rate, headers: Mapping[str, str], *, now: float, unix: float) -> Rate:
    """What the headers of an answer say of limits (names in lower case).

    A limit whose header names no window is one by the minute, unless its reset is further away than that: then
    only "nothing is left" is taken from it. `unix`: the time that dates in headers are compared with.
    """
    shortest = math.inf
    for limit in header_limits(headers):
        reset = _seconds(limit.reset or None, unix)
        if reset is None and limit.seconds is not None and limit.seconds < SPAN:
            reset = limit.seconds
        if limit.remaining == "0" and reset is not None:
            rate = replace(rate, blocked_until=max(rate.blocked_until, now + reset))
        window = limit.seconds
        if window is None and reset is not None and reset <= SPAN + MARGIN:
            window = SPAN
        if window is None or window > SPAN + MARGIN:
            continue
        if limit.tokens:
            rate = replace(rate, stated_tokens=_by_minute(StatedRate(limit.amount, window)))
        elif window < SPAN:
            space = _spacing(limit.amount, window)
            rate = replace(
                rate, spacing=space if shortest == math.inf else max(rate.spacing, space), told_until=now + TOLD_FOR
            )
            shortest = min(shortest, window)
        else:
            rate = replace(rate, stated_calls=limit.amount)
    return rate


def _seconds(text: str | None, unix: float) -> float | None:
    if text is None:
        return None
    moment = parse_moment(text)
    if moment is not None:
        return max(0.0, moment - unix)
    return parse_duration(text)
