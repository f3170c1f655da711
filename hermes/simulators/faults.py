"""What a simulator does wrong on order: the kinds of fault, and the queue that decides whom one hits."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "ApiError",
    "CutStream",
    "Delay",
    "Drip",
    "Fault",
    "FaultQueue",
    "GarbageStream",
    "HalfToolCall",
    "Overflow",
    "Reply",
    "Reset",
    "Rule",
    "Stall",
    "StallStream",
    "StreamError",
    "WholeAnswer",
    "conflict",
    "empty_object",
    "flood",
    "garbage_json",
    "html_page",
    "read_fault",
    "read_rule",
]


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection ends in RST, or in FIN with `fin`: the client finds an EOF instead of an answer.

    `delivered`: only after the call was carried out.
    """

    delivered: bool = False
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """No answer for `seconds`, then RST; `after_headers` sends the head of a 200 first."""

    seconds: float = 3600.0
    after_headers: bool = False
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """Exactly these bytes under this status: a proxy's page, `{}`, half a JSON document.

    `delivered`: the call is carried out all the same (a 502 of a proxy whose upstream succeeded).
    """

    status: int = 200
    body: str = ""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error in the service's own words and shape.

    `kind` and `code` are the type and code of the LLM services; `parameters` are Telegram's. `in_200` sends
    the body of the error under status 200. `delivered` as in Reply.
    """

    status: int
    message: str = ""
    kind: str = ""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    in_200: bool = False
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """The right answer, `seconds` late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drip:
    """The right answer, `size` bytes at a time with `gap` seconds between."""

    gap: float = 0.05
    size: int = 8


@dataclass(frozen=True, slots=True)
class CutStream:
    """A stream that ends after `after` content pieces: by RST, or `clean` by EOF, without terminator."""

    after: int = 1
    clean: bool = False


@dataclass(frozen=True, slots=True)
class StallStream:
    """A stream that goes silent for `seconds` after `after` content pieces, then ends in RST."""

    after: int = 1
    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error event after `after` content pieces of a stream that began with 200."""

    after: int = 1
    kind: str = ""
    message: str = ""
    code: str | None = None


@dataclass(frozen=True, slots=True)
class GarbageStream:
    """A data line that is no JSON after `after` content pieces."""

    after: int = 1


@dataclass(frozen=True, slots=True)
class HalfToolCall:
    """A tool call whose arguments stop in the middle.

    `cut` ends the stream by RST there; otherwise the call is closed properly around broken JSON
    (`finish`: what the stop reason then says; empty for the dialect's word for a finished tool call).
    """

    name: str = "tool"
    arguments: str = '{"path": "/et'
    cut: bool = False
    finish: str = ""


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """One plain JSON document although stream=true was asked for."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The dialect's own refusal of a prompt that is too long, whatever the prompt's size."""

    tokens: int = 9000
    limit: int = 8192


Answering: TypeAlias = Reset | Stall | Reply | ApiError | Delay | Drip
"""Faults that any endpoint knows."""
Streaming: TypeAlias = CutStream | StallStream | StreamError | GarbageStream
"""Faults in the middle of an answer of a model."""
Fault: TypeAlias = Answering | Streaming | HalfToolCall | WholeAnswer | Overflow


def html_page(status: int = 502) -> Reply:
    """What a proxy in between answers, with 200 as well as with an error status."""
    head = f"<html><head><title>{status} Bad Gateway</title></head>"
    return Reply(
        status, f"{head}<body><center><h1>{status} Bad Gateway</h1></center></body></html>", "text/html"
    )


def empty_object() -> Reply:
    """200 with `{}`."""
    return Reply(200, "{}")


def garbage_json() -> Reply:
    """200, labelled JSON, and no JSON."""
    return Reply(200, '{"ok": tru')


def flood(retry_after: int, *, delivered: bool = False) -> ApiError:
    """Telegram's 429."""
    return ApiError(
        429,
        f"Too Many Requests: retry after {retry_after}",
        parameters={"retry_after": retry_after},
        delivered=delivered,
    )


def conflict() -> ApiError:
    """Telegram's 409 of a second poller."""
    return ApiError(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    )


@dataclass(slots=True)
class Rule:
    """One fault and the calls that it hits.

    `endpoint`: a method or path, compared without regard to case, empty for all. `contains`: text that must
    stand in the call. `after`: so many matching calls pass first. `times`: so many are hit, None for all.
    `until`: monotonic second at which the rule ends.
    """

    fault: Fault
    endpoint: str = ""
    contains: str = ""
    after: int = 0
    times: int | None = 1
    until: float | None = None
    hits: int = 0

    def matches(self, endpoint: str, text: str) -> bool:
        """Whether the call is one that this rule counts."""
        return self.endpoint.lower() in ("", endpoint.lower()) and self.contains in text

    def spent(self, now: float) -> bool:
        """Whether the rule can hit nothing any more."""
        return (self.times is not None and self.hits >= self.times) or (
            self.until is not None and now >= self.until
        )


class FaultQueue:
    """Rules in order of their arrival; the first one that is due for a call is used up by it."""

    def __init__(self, on_add: Callable[[], None] | None = None) -> None:
        self.rules: list[Rule] = []
        self.revision = 0
        """Grows with every rule: a long poll that sleeps sees by it that there is something new."""
        self._on_add = on_add

    def add(
        self,
        fault: Fault,
        *,
        endpoint: str = "",
        contains: str = "",
        after: int = 0,
        times: int | None = 1,
        seconds: float | None = None,
    ) -> Rule:
        """Orders a fault; see Rule. With `seconds` it hits every matching call until they have passed."""
        until = None if seconds is None else time.monotonic() + seconds
        rule = Rule(fault, endpoint, contains, after, times if seconds is None else None, until)
        self.rules.append(rule)
        self.revision += 1
        if self._on_add is not None:
            self._on_add()
        return rule

    def pick(self, endpoint: str, text: str = "") -> Fault | None:
        """The fault for this call, or None; counts the call for every rule that it passes."""
        now = time.monotonic()
        self.rules = [rule for rule in self.rules if not rule.spent(now)]
        for rule in self.rules:
            if not rule.matches(endpoint, text):
                continue
            if rule.after > 0:
                rule.after -= 1
                continue
            rule.hits += 1
            return rule.fault
        return None

    def clear(self) -> None:
        """Forgets every rule."""
        self.rules.clear()


_KINDS: dict[str, type[Any]] = {
    "reset": Reset,
    "stall": Stall,
    "reply": Reply,
    "error": ApiError,
    "delay": Delay,
    "drip": Drip,
    "cut_stream": CutStream,
    "stall_stream": StallStream,
    "stream_error": StreamError,
    "garbage_stream": GarbageStream,
    "half_tool_call": HalfToolCall,
    "whole_answer": WholeAnswer,
    "overflow": Overflow,
}
_READY = {
    "html": html_page,
    "empty_object": empty_object,
    "garbage_json": garbage_json,
    "flood": flood,
    "conflict": conflict,
}
_MATCHERS = ("endpoint", "contains", "after_calls", "times", "seconds_active")


def read_fault(order: Mapping[str, Any]) -> Fault:
    """A fault from JSON: `{"kind": "stall", "seconds": 2}`. Raises ValueError that names what is wrong."""
    rest = {key: value for key, value in order.items() if key != "kind" and key not in _MATCHERS}
    kind = str(order.get("kind", ""))
    if kind in _READY:
        try:
            ready: Fault = _READY[kind](**rest)  # type: ignore[operator]
        except TypeError as error:
            raise ValueError(f"fault {kind!r}: {error}") from None
        return ready
    if kind not in _KINDS:
        raise ValueError(f"no fault {kind!r}; known are {', '.join(sorted([*_KINDS, *_READY]))}")
    known = {item.name for item in dataclasses.fields(_KINDS[kind])}
    if unknown := sorted(set(rest) - known):
        raise ValueError(f"fault {kind!r} has no {', '.join(unknown)}; it takes {', '.join(sorted(known))}")
    try:
        fault: Fault = _KINDS[kind](**rest)
    except TypeError as error:
        raise ValueError(f"fault {kind!r}: {error}") from None
    return fault


def read_rule(queue: FaultQueue, order: Mapping[str, Any]) -> Rule:
    """Adds a rule from JSON: the fault's keys, and `endpoint`, `contains`, `after_calls`, `times` (null for
    all), `seconds_active`. Raises ValueError."""
    return queue.add(
        read_fault(order),
        endpoint=str(order.get("endpoint", "")),
        contains=str(order.get("contains", "")),
        after=int(order.get("after_calls", 0)),
        times=None if order.get("times", 1) is None else int(order.get("times", 1)),
        seconds=None if order.get("seconds_active") is None else float(order["seconds_active"]),
    )
