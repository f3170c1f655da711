"""What a scripted model says: texts, tool calls and how they end."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = [
    "Answer",
    "Event",
    "EventKind",
    "Finish",
    "ToolCall",
    "answer",
    "pieces_of",
    "read_answer",
    "tool_call",
]

_numbers = itertools.count(1)


class Finish(Enum):
    """Why the model stopped, in no dialect."""

    STOP = "stop"
    TOOLS = "tools"
    LENGTH = "length"
    REFUSED = "refused"


class EventKind(Enum):
    """Where in a stream an event stands."""

    START = "start"
    PIECE = "piece"
    END = "end"


@dataclass(frozen=True, slots=True)
class Event:
    """Bytes of one server-sent event."""

    kind: EventKind
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model writes it: `arguments` is text, and JSON only if the script wants it to be."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model.

    `latency` (seconds before the first byte), `pieces` (content events of a stream) and `gap` (seconds
    between them) default to the simulator's. `usage` is (prompt, completion) tokens,
    counted roughly if not given.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = Finish.STOP
    thinking: str = ""
    latency: float | None = None
    pieces: int | None = None
    gap: float | None = None
    usage: tuple[int, int] | None = None


def answer(
    text: str = "",
    *,
    finish: Finish = Finish.STOP,
    thinking: str = "",
    latency: float | None = None,
    pieces: int | None = None,
    gap: float | None = None,
    usage: tuple[int, int] | None = None,
) -> Answer:
    """A text; an empty one is an empty answer, and `Finish.LENGTH` a truncated one."""
    return Answer(text, (), finish, thinking, latency, pieces, gap, usage)


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    *more: tuple[str, Mapping[str, Any]],
    text: str = "",
    id: str | None = None,
    latency: float | None = None,
) -> Answer:
    """A call of a tool, or several: `tool_call("a", {...}, ("b", {...}))`; a str is sent unchanged."""
    calls = []
    for at, (tool, given) in enumerate([(name, {} if arguments is None else arguments), *more]):
        raw = given if isinstance(given, str) else json.dumps(given)
        calls.append(ToolCall(id if id and at == 0 else f"call_{next(_numbers):06d}", tool, raw))
    return Answer(text, tuple(calls), Finish.TOOLS, latency=latency)


def pieces_of(text: str, count: int) -> list[str]:
    """`text` in at most `count` pieces whose concatenation it is; none for no text."""
    if not text:
        return []
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def read_answer(order: Mapping[str, Any]) -> Answer:
    """An answer from JSON: `{"text": …}` or `{"tool": name, "arguments": {…}}`. Raises ValueError."""
    known = {"text", "finish", "thinking", "latency", "pieces", "gap", "tool", "arguments", "id"}
    if unknown := sorted(set(order) - known):
        raise ValueError(f"an answer has no {', '.join(unknown)}; it takes {', '.join(sorted(known))}")
    if "tool" in order:
        return tool_call(
            str(order["tool"]),
            order.get("arguments"),
            text=str(order.get("text", "")),
            id=order.get("id"),
            latency=order.get("latency"),
        )
    return answer(
        str(order.get("text", "")),
        finish=Finish(order.get("finish", "stop")),
        thinking=str(order.get("thinking", "")),
        latency=order.get("latency"),
        pieces=order.get("pieces"),
        gap=order.get("gap"),
    )
