"""Server-sent events out of a byte stream, split anywhere.

Rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
(LF, CRLF and CR end a line; one leading BOM is dropped; ``:`` starts a comment; the ``data`` lines of
an event are joined with LF; an event without data is no event; what is unfinished at the end is dropped).
``id`` and ``retry`` serve reconnection, which a model call must not do; they are ignored.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple


class SseEvent(NamedTuple):
    """One dispatched event; ``kind`` is ``message`` where the stream named none."""

    kind: str
    data: str


class EventTooLong(ValueError):
    """One event exceeds the reader's bound."""


class SseReader:
    """Turns bytes into events. ``limit`` bounds the characters of one event.

    ``feed`` raises EventTooLong; invalid UTF-8 becomes U+FFFD, as the rules say.
    """

    __slots__ = ("_data", "_decoder", "_kind", "_limit", "_rest", "_size", "_skip_lf", "_start")

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._limit = limit
        self._rest = ""
        self._start = True
        self._skip_lf = False
        self._kind = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that ``chunk`` completed, in order."""
        text = self._decoder.decode(chunk)
        if not text:
            return []
        if self._start:
            self._start = False
            text = text.removeprefix("\ufeff")
        if self._skip_lf:
            # The LF of a CRLF whose CR ended the previous chunk.
            self._skip_lf = False
            text = text.removeprefix("\n")
        if text.endswith("\r"):
            self._skip_lf = True
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return self._lines(text)

    def _lines(self, text: str) -> list[SseEvent]:
        lines = text.split("\n")
        lines[0] = self._rest + lines[0]
        self._rest = lines.pop()
        events: list[SseEvent] = []
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                events.append(SseEvent(self._kind or "message", "\n".join(self._data)))
                self._clear()
            else:
                self._clear()
        if self._size + len(self._rest) > self._limit:
            raise EventTooLong(f"an event of more than {self._limit} characters")
        return events

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._kind = value

    def _clear(self) -> None:
        self._kind = ""
        self._data = []
        self._size = 0
