"""What both dialects share in reading an answer: its shape, its end, and what is wrong with it."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from hermes.core.failures import FaultKind, Phase
from hermes.core.transcript import FinishReason, ImageData, ModelReply, ToolCall, without_lone_surrogates
from hermes.providers.limits import CallClock
from hermes.providers.sse import EventTooLong, SseEvent, SseReader

if TYPE_CHECKING:
    import httpx2

SHOWN_LIMIT = 4_000
"""Characters of a wrong answer that its facts keep."""

USAGE_WAIT = 2.0
"""Seconds that a finished answer waits for its usage and terminator."""

CLOSE_WAIT = 0.05
"""Seconds that a terminated answer waits for the connection's clean end, so that it can be reused."""


KEEPALIVES = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
"""Kinds of events that say nothing, whatever their data."""


class WrongAnswer(Exception):
    """The upstream answered, and the answer is none. ``body`` is what it said, bounded."""

    def __init__(
        self, kind: FaultKind, message: str, body: object = None, phase: Phase = Phase.RESPONSE
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.body = body
        self.phase = phase


class Fold(Protocol):
    """A dialect's answer under construction."""

    @property
    def finished(self) -> bool:
        """The model has said why it stopped: nothing of the answer is missing."""

    @property
    def done(self) -> bool:
        """The terminator came: nothing more of interest follows."""

    @property
    def tokens_seen(self) -> bool:
        """Some output had arrived."""

    def event(self, event: SseEvent) -> bool:
        """Takes one event; True when the answer moved on. Raises WrongAnswer."""

    def whole(self, body: Mapping[str, object]) -> None:
        """Takes an answer that is one JSON document. Raises WrongAnswer."""

    def reply(self) -> ModelReply:
        """The complete answer. Raises WrongAnswer."""


class Visible:
    """Hands pieces of text on, never half a surrogate pair (a model's tokens may split an emoji)."""

    __slots__ = ("_held", "_on_text", "parts")

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.parts: list[str] = []
        self._on_text = on_text
        self._held = ""

    def add(self, piece: str) -> None:
        """One piece as it came."""
        self.parts.append(piece)
        piece, self._held = self._held + piece, ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self._held = piece[:-1], piece[-1]
        if piece:
            self._on_text(without_lone_surrogates(piece))

    def whole(self) -> str:
        """All of it, fit to be stored and sent."""
        return without_lone_surrogates("".join(self.parts))


class _Shape(Enum):
    EVENTS = "events"
    JSON = "json"


def _shape(head: bytes, content_type: str) -> _Shape | None:
    """What the body is, by its first bytes; None while there are too few. Raises WrongAnswer."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not start:
        return None
    if start in b"{[":
        return _Shape.JSON
    if start == b"<":
        raise WrongAnswer(FaultKind.WRONG_TYPE, f"a page instead of an answer ({content_type})", _shown(head))
    if "json" in content_type and start not in b":de":
        return _Shape.JSON
    return _Shape.EVENTS


def _shown(raw: bytes) -> str:
    return raw[:SHOWN_LIMIT].decode("utf-8", "replace")


async def read_answer(response: httpx2.Response, fold: Fold, clock: CallClock, limit: int) -> None:
    """Feeds the whole body, ``limit`` bytes at most, to ``fold``. Raises WrongAnswer and the
    transport's errors.

    A connection that is lost after the answer is finished has lost nothing of it: that is no failure.
    """
    import httpx2

    try:
        await _read(response, fold, clock, limit)
    except httpx2.HTTPError:
        if not fold.finished:
            raise


async def _read(response: httpx2.Response, fold: Fold, clock: CallClock, limit: int) -> None:
    reader = SseReader(limit)
    content_type = response.headers.get("content-type", "")
    head, shape, size = b"", None, 0
    document: list[bytes] = []
    async for chunk in response.aiter_bytes():
        if fold.done:
            continue
        size += len(chunk)
        if size > limit:
            raise WrongAnswer(FaultKind.WRONG_TYPE, f"an answer of more than {limit} bytes")
        if shape is None:
            head += chunk
            shape, chunk = _shape(head, content_type), head
        if shape is _Shape.EVENTS:
            _take(reader, chunk, fold, clock)
        elif shape is _Shape.JSON:
            document.append(chunk)
            clock.progress()
    if document:
        _take_document(b"".join(document), fold)


def _take(reader: SseReader, chunk: bytes, fold: Fold, clock: CallClock) -> None:
    moved = False
    try:
        for event in reader.feed(chunk):
            moved = fold.event(event) or moved
    except EventTooLong as error:
        raise WrongAnswer(FaultKind.BAD_JSON, str(error), phase=Phase.STREAM) from error
    if fold.done:
        clock.wind_down(CLOSE_WAIT)
    elif fold.finished:
        clock.wind_down(USAGE_WAIT)
    elif moved:
        clock.progress()


def _take_document(raw: bytes, fold: Fold) -> None:
    body = parsed(raw)
    if not isinstance(body, Mapping):
        raise WrongAnswer(FaultKind.WRONG_TYPE, "JSON that is no answer", body)
    if error := error_in(body):
        raise WrongAnswer(FaultKind.ERROR_IN_200, message_of(error), body)
    fold.whole(body)


def parsed(raw: bytes | str, phase: Phase = Phase.RESPONSE) -> object:
    """``raw`` as JSON. Raises WrongAnswer."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        text = _shown(raw) if isinstance(raw, bytes) else raw[:SHOWN_LIMIT]
        raise WrongAnswer(FaultKind.BAD_JSON, f"not JSON: {error}", text, phase) from error


def error_in(body: Mapping[str, object]) -> object:
    """The error that a body carries, or None: ``{"error": …}``, FastAPI's ``{"detail": …}``,
    the ``{"message": "…"}`` of Mistral and of gateways in between."""
    if error := body.get("error"):
        return error
    if body.get("object") == "error" or body.get("type") == "error":
        return body
    if "choices" not in body and "content" not in body:
        said = body.get("message")
        return body.get("detail") or body.get("errors") or (body if isinstance(said, str) and said else None)
    return None


def message_of(error: object) -> str:
    """What an error object says, in words."""
    if isinstance(error, Mapping):
        for key in ("message", "msg", "detail", "error"):
            if isinstance(text := error.get(key), str) and text:
                return text[:SHOWN_LIMIT]
    return error[:SHOWN_LIMIT] if isinstance(error, str) else json.dumps(error, default=str)[:SHOWN_LIMIT]


def checked_arguments(arguments: str, complete: bool) -> str:
    """A tool call's arguments, fit to be handed on. Raises WrongAnswer when they are half (promise 7).

    Arguments that are wrong in their middle are the model's own mistake: it reads the tool's refusal
    and can mend it. Arguments that stop short may be anybody's, and are never returned.
    """
    text = arguments.strip()
    if not text and complete:
        return "{}"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not complete or _stops_short(text, error):
            raise WrongAnswer(
                FaultKind.TRUNCATED_TOOL_CALL, "the answer ended inside a tool call's arguments"
            ) from error
    except RecursionError as error:
        raise WrongAnswer(FaultKind.BAD_JSON, "a tool call's arguments are nested too deeply") from error
    return without_lone_surrogates(arguments)


def distinct(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """``calls`` with an id of its own for each that has none or another's."""
    out: dict[str, ToolCall] = {}
    for call in calls:
        call_id = call.call_id
        if not call_id or call_id in out:
            call_id = f"call_{uuid.uuid4().hex[:24]}"
        out[call_id] = replace(call, call_id=call_id)
    return tuple(out.values())


def settled(
    finish: FinishReason, calls: tuple[ToolCall, ...]
) -> tuple[FinishReason, tuple[ToolCall, ...]]:
    """The reason that fits the calls: servers say ``stop`` after a call and ``tool_calls`` after none.

    Calls of an answer that a filter ended are dropped: nobody knows what was to follow them.
    """
    if finish is FinishReason.CONTENT_FILTER:
        return finish, ()
    return (FinishReason.TOOL_CALLS if calls else FinishReason.STOP), calls


def _stops_short(text: str, error: json.JSONDecodeError) -> bool:
    """True when more text could have made it JSON."""
    rest = text[error.pos :]
    if not rest or error.msg.startswith("Unterminated"):
        return True
    if error.msg.startswith("Invalid \\u"):
        return len(rest) < len("\\u0000")
    return any(word.startswith(rest) for word in ("true", "false", "null", "-0"))


def base64_of(data: ImageData) -> str:
    """A picture as both dialects carry it."""
    return base64.b64encode(data.data).decode("ascii")


def whole_number(value: object) -> int:
    """A token count as reported; 0 for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
