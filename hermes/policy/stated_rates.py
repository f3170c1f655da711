"""How many calls or tokens in what time an upstream allows, as its headers and its refusals say so. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermes.core.failures import StatedRate

_SPANS = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hr": 3600.0,
    "hour": 3600.0, "d": 86_400.0, "day": 86_400.0,
}  # fmt: skip
_SPAN = r"(?:sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|days?|[smhd])(?![a-z])"
_N = r"[0-9][0-9,_]{0,14}"
_UNIT = r"(?:(?:input|output|prompt|completion|total) )?(?P<unit>requests?|reqs?|calls?|queries|tokens?|messages?)"
_TEXTS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        # 10 requests per second; 50,000 input tokens per minute; 1 request every 3 seconds
        rf"(?<![\w.,])(?P<n>{_N}) ?{_UNIT} ?(?:per|a|an|/|every|each|in) ?(?P<count>\d{{1,4}} ?)?(?P<span>{_SPAN})",
        # requests per min. Limit: 3 / min; tokens per min (TPM): Limit 30000, Used 29000
        rf"(?<![\w.,]){_UNIT} ?(?:per|/) ?(?P<span>{_SPAN})[^\n]{{0,40}}?limit:? ?(?P<n>{_N})(?P<count>)",
        # 10 RPS, 40,000 TPM
        rf"(?<![\w.,])(?P<n>{_N}) ?(?P<short>[rqt]p[smhd])\b(?P<count>)",
    )
)
_NAME = re.compile(
    r"(?:x-|anthropic-)?ratelimit-(?:limit-(?P<a>requests?|reqs?|tokens?)|(?P<b>requests|tokens)-limit|limit)"
    rf"(?:-(?P<span>{_SPAN}))?"
)
_POLICY = re.compile(r"(?:x-)?ratelimit-(?:policy|limit)")
_ITEM = re.compile(rf'(?:"[^"]{{0,80}}"|(?P<n>{_N}))(?P<more>(?:\s*;\s*[\w-]+=[^;,]{{1,80}})+)')
_WHOLE = re.compile(r"[0-9]{1,12}")
LONGEST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class HeaderLimit:
    """One limit of an answer's headers. `seconds`: its window, None where the header does not say; `remaining`
    and `reset` are its siblings' texts, "" where there are none."""

    tokens: bool
    amount: int
    seconds: float | None
    remaining: str = ""
    reset: str = ""


def stated_rate(text: str) -> StatedRate | None:
    """The first rate that a refusal's text names; None if it names none."""
    for pattern in _TEXTS:
        found = pattern.search(text[:LONGEST_TEXT])
        if found is None:
            continue
        parts = found.groupdict()
        short = parts.get("short")
        unit, span = (short[0], short[2]) if short else (parts["unit"], parts["span"])
        amount = int(parts["n"].replace(",", "").replace("_", ""))
        seconds = (int(parts["count"] or 1) or 1) * _span(span)
        if amount > 0:
            return StatedRate(amount, seconds, tokens=unit.lower().startswith("t"))
    return None


def header_limits(headers: Mapping[str, str]) -> Iterator[HeaderLimit]:
    """The limits of calls and tokens that headers (names in lower case) state; what cannot be read is left out."""
    for name, value in headers.items():
        if _POLICY.fullmatch(name) and "=" in value:
            yield from _policy(value)
            continue
        found = _NAME.fullmatch(name)
        if found is None or not _WHOLE.fullmatch(value.strip()) or int(value) <= 0:
            continue
        kind, span = found["a"] or found["b"], found["span"]
        if kind is None and span is None:
            continue  # a bare limit says neither of what nor in what time
        yield HeaderLimit(
            (kind or "requests").startswith("token"), int(value), _span(span) if span else None,
            headers.get(_sibling(name, "remaining"), "").strip(), headers.get(_sibling(name, "reset"), ""),
        )  # fmt: skip


def _policy(value: str) -> Iterator[HeaderLimit]:
    """``10;w=1, 500;w=60`` and ``"burst";q=10;w=1`` (drafts of the RateLimit header fields for HTTP)."""
    for item in _ITEM.finditer(value[:1000]):
        more = dict(re.findall(r'([\w-]+)="?([^;,"]+)', item["more"]))
        amount, window = (item["n"] or more.get("q", "")).replace(",", ""), more.get("w", "").strip()
        unit = more.get("qu", "requests")
        whole = _WHOLE.fullmatch(amount) and _WHOLE.fullmatch(window) and int(amount) > 0 and int(window) > 0
        if whole and unit in ("requests", "tokens"):
            yield HeaderLimit(unit == "tokens", int(amount), float(window))


def _span(word: str) -> float:
    plain = word.lower()
    return _SPANS.get(plain) or _SPANS.get(plain.removesuffix("s")) or 60.0


def _sibling(name: str, what: str) -> str:
    """``x-ratelimit-limit-tokens`` → ``x-ratelimit-reset-tokens``; the other order likewise."""
    head, _, tail = name.partition("ratelimit-")
    return f"{head}ratelimit-{tail.replace('limit', what)}"
