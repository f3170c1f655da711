"""When an upstream says we may come again, in every dress it says so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from hermes.policy.embedded import embedded
from hermes.policy.signals import lower_headers

MAX_WAIT = 31 * 86_400.0
"""Longest believable wait in seconds: monthly quotas exist; anything beyond is clamped to this."""

EARLIEST_EPOCH = 1_000_000_000.0
"""Numbers from here on (2001) are epoch seconds, not waits; from 1e11 on epoch milliseconds."""

_UNITS = {
    "ms": 0.001, "millisecond": 0.001, "milliseconds": 0.001, "msec": 0.001,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0, "w": 604800.0, "week": 604800.0, "weeks": 604800.0,
}  # fmt: skip
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{0,12})?"
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_PART = rf"{_NUMBER}\s*(?:{_UNIT})(?![a-z])|{_NUMBER}(?:{_UNIT})(?=\d)"
_PARTS = re.compile(rf"({_NUMBER})\s*({_UNIT})(?![a-z])", re.I)
_DURATION = re.compile(rf"\s*[+]?(?:(?:{_PART})[\s,]*(?:and\s+)?){{1,5}}", re.I)
_SENTENCE = re.compile(
    r"(?:(?:try|call|wait|retry|come|available|request)\w*\s+(?:again\s+|back\s+|back\s+again\s+)?(?:in"
    r"|after|for)|"
    r"retry[- _]?after|resets?\s+(?:in|after)|reset\s+after|please\s+wait|wait\s+(?:at\s+least|for|about)?|"
    r"will\s+reset\s+(?:in|after))\s*:?\s*(?:another\s+|about\s+|approximately\s+|~\s*)?"
    rf"(?P<wait>(?:{_NUMBER}\s*(?:{_UNIT})(?![a-z])[\s,]*(?:and\s+)?|{_NUMBER}(?:{_UNIT})(?=\d)){{1,5}}"
    rf"|{_NUMBER}(?![\w.-]|\s+[a-z]))",
    re.I,
)
_DATE_SENTENCE = re.compile(
    r"(?:reset|resets|again|access|available|until|after)\s*(?:again\s+)?(?:at|on|by)?\s*:?\s*"
    r"(\d{4}-\d{2}-\d{2})(?:[T ]+(?:at\s+)?(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?))?\s*(Z|UTC"
    r"|[+-]\d{2}:?\d{2})?",
    re.I,
)
_EPOCH_SUFFIX = re.compile(r"\b(?:limit|reached|resets?)[^\n]{0,20}\|([12][0-9]{9})\b", re.I)
_WAIT_FIELDS = frozenset(
    {
        "retry_after",
        "retryafter",
        "retry-after",
        "resets_in_seconds",
        "reset_in_seconds",
        "retrydelay",
        "retry_delay",
        "retry_after_seconds",
        "resets_in",
        "wait_seconds",
        "retry_in",
        "cooldown_seconds",
        "reset_after",
        "reset_after_seconds",
        "reset_seconds",
    }
)
_WAIT_MS_FIELDS = frozenset(
    {"retry_after_ms", "retryafterms", "retry-after-ms", "retry_in_ms", "resets_in_ms"}
)
_RESET_FIELDS = frozenset(
    {
        "resets_at",
        "reset_at",
        "resetsat",
        "resetat",
        "reset_time",
        "resettime",
        "retry_at",
        "quotaresettimestamp",
        "reset",
        "x-ratelimit-reset",
        "limit_reset",
    }
)


@dataclass(frozen=True, slots=True)
class Waits:
    """`retry_after`: seconds from now, >= 0, finite, at most MAX_WAIT. `reset_at`: UTC epoch seconds. None =
    unsaid."""

    retry_after: float | None = None
    reset_at: float | None = None


def parse_waits(headers: object, body: object, message: str, *, now: float | None) -> Waits:
    """The wait an upstream states. Never raises; values below 0 read 0, above MAX_WAIT read MAX_WAIT.

    Precedence: `retry-after-ms`, `retry-after`, the reset headers of an exhausted limit, body fields, headers
    quoted in the body, then sentences. `now` (UTC epoch seconds) turns dates into waits; without it they give
    `reset_at` only.
    """
    clock = now if now is not None and math.isfinite(now) else None
    for source in (_from_headers(lower_headers(headers), clock), _from_body(body, clock)):
        if source is not None:
            return source
    return _from_text(message, clock) or Waits()


def clamp(seconds: float) -> float | None:
    """A believable wait: None for NaN, else within 0 … MAX_WAIT."""
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), MAX_WAIT)


def parse_duration(text: str) -> float | None:
    """`6m0s`, `1.5s`, `20ms`, `1h2m`, `2 minutes`, `PT15S`-free; a bare number is seconds. None if it is
    neither."""
    text = text.strip()
    if re.fullmatch(rf"[+-]?{_NUMBER}(?:e[+-]?\d{{1,3}})?|[+-]?(?:inf|infinity)", text, re.I):
        return clamp(float(text))
    if not text or not _DURATION.fullmatch(text):
        return None
    loose = re.sub(r"([a-z])(\d)", r"\1 \2", text, flags=re.I)
    return clamp(sum(float(number) * _UNITS[unit.lower()] for number, unit in _PARTS.findall(loose)))


def parse_moment(text: str) -> float | None:
    """An HTTP-date, an RFC 3339 date or an epoch in seconds or milliseconds, as UTC epoch seconds."""
    text = text.strip()
    if re.fullmatch(_NUMBER, text):
        number = float(text)
        if number >= 1e11:
            number /= 1000.0
        return number if EARLIEST_EPOCH <= number < 1e10 else None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    try:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None


def _until(moment: float, now: float | None) -> Waits:
    if now is None:
        return Waits(None, moment)
    wait = clamp(moment - now)
    return Waits(wait, moment if wait is None or moment - now <= MAX_WAIT else now + MAX_WAIT)


def _read(value: object, now: float | None, *, scale: float = 1.0) -> Waits | None:
    """A wait or a moment from one header or field value."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return Waits(MAX_WAIT if value > 0 else 0.0)
        if not math.isfinite(number):
            return None
        value = repr(number)
    if not isinstance(value, str) or len(value) > 100:
        return None
    if scale == 1.0:
        moment = parse_moment(value)
        if moment is not None:
            return _until(moment, now)
    seconds = parse_duration(value)
    if seconds is None:
        return None
    scaled = clamp(seconds * scale)
    return None if scaled is None else Waits(scaled)


def _from_headers(headers: Mapping[str, str], now: float | None) -> Waits | None:
    for name, scale in (
        ("retry-after-ms", 0.001),
        ("x-ms-retry-after-ms", 0.001),
        ("retry-after", 1.0),
        ("x-ratelimit-retry-after", 1.0),
    ):
        found = _read(headers.get(name), now, scale=scale)
        if found is not None:
            return found
    exhausted = [waits for name in headers if (waits := _exhausted_reset(name, headers, now)) is not None]
    return max(exhausted, key=lambda w: (w.retry_after or 0.0, w.reset_at or 0.0), default=None)


def _exhausted_reset(name: str, headers: Mapping[str, str], now: float | None) -> Waits | None:
    """The reset of a limit whose counterpart says nothing remains; a reset alone tells nothing about us."""
    if "reset" not in name or not re.search(r"ratelimit|rate-limit|x-codex", name):
        return None
    used = headers.get(re.sub(r"reset-(?:after-seconds|at)$", "used-percent", name))
    status = headers.get(name.replace("-reset", "-status"))
    remaining = headers.get(re.sub(r"reset(?:-after)?", "remaining", name, count=1))
    spent = (
        (used is not None and name.endswith(("after-seconds", "-at")) and _number(used) >= 100.0)
        or (status is not None and status.strip().lower() in {"rejected", "exceeded"})
        or (remaining is not None and _number(remaining) <= 0.0)
    )
    return _read(headers[name], now) if spent else None


def _number(text: str) -> float:
    """A number, or NaN (which is neither spent nor unspent)."""
    return float(text) if re.fullmatch(rf"\s*-?{_NUMBER}\s*", text) else math.nan


def _from_body(body: object, now: float | None) -> Waits | None:
    waits: list[Waits] = []
    quoted: list[Waits] = []
    for key, value in _fields(body, 0, [400]):
        name = key.lower()
        found: Waits | None = None
        if name in _WAIT_MS_FIELDS:
            found = _read(value, now, scale=0.001)
        elif name in _WAIT_FIELDS:
            found = _read(value, now) if not isinstance(value, Mapping) else _read(value.get("seconds"), now)
        elif name in _RESET_FIELDS:
            found = _read(value, now)
        elif name == "headers":
            inner = _from_headers(lower_headers(value), now)
            if inner is not None:
                quoted.append(inner)
        if found is not None:
            waits.append(found)
    waits = waits or quoted
    if not waits:
        return None
    relative = [w.retry_after for w in waits if w.retry_after is not None]
    moments = [w.reset_at for w in waits if w.reset_at is not None]
    return Waits(max(relative, default=None), max(moments, default=None))


def _fields(node: object, depth: int, budget: list[int]) -> Iterator[tuple[str, object]]:
    """Every key and value of a JSON-like body, JSON inside strings included, within a budget of nodes."""
    budget[0] -= 1
    if depth > 10 or budget[0] <= 0:
        return
    if isinstance(node, Mapping):
        for key, value in list(node.items())[:80]:
            yield str(key), value
            yield from _fields(value, depth + 1, budget)
    elif isinstance(node, str):
        for inner in embedded(node[:40_000]):
            yield from _fields(inner, depth + 1, budget)
    elif isinstance(node, Sequence) and not isinstance(node, bytes | bytearray):
        for item in list(node)[:50]:
            yield from _fields(item, depth + 1, budget)


def _from_text(message: str, now: float | None) -> Waits | None:
    message = message[:40_000]
    match = _SENTENCE.search(message)
    if match is not None:
        seconds = parse_duration(re.sub(r"[\s,]+(?:and\s*)?$", "", match.group("wait")))
        if seconds is not None:
            return Waits(seconds)
    epoch = _EPOCH_SUFFIX.search(message)
    if epoch is not None:
        return _until(float(epoch.group(1)), now)
    dated = _DATE_SENTENCE.search(message)
    if dated is None:
        return None
    zone = (dated.group(3) or "+00:00").upper().replace("UTC", "+00:00").replace("Z", "+00:00")
    moment = parse_moment(f"{dated.group(1)}T{dated.group(2) or '00:00'}{zone}")
    return None if moment is None else _until(moment, now)
