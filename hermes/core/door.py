"""The front door: what the page, the probes and the CLI's socket may ask of the gateway.

``gateway`` implements it, ``web`` and the control socket use it; neither knows the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from hermes.core.events import AttachmentRef


@dataclass(frozen=True, slots=True)
class Called:
    """A request to a platform's own address; nothing of it was checked yet. ``headers`` have lower-case names."""

    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What the platform is told: a status, and a plain text."""

    status: int
    text: str = ""


@runtime_checkable
class IsCalled(Protocol):
    """A platform that calls us instead of being called: its requests come in by the web server."""

    async def called(self, request: Called) -> CallAnswer:
        """Checks that the platform made the request; answers 200 only when what it brought is on disk (R1, R38)."""


class LiveKind(StrEnum):
    """What a live event tells about a running turn. None of them is stored."""

    TURN_STARTED = "turn_started"
    TEXT = "text"  # a piece of the answer's text
    RESTARTED = "restarted"  # what was streamed so far is void: another attempt begins
    NOTICE = "notice"  # a retry, fallback or repair, in words
    TOOL = "tool"
    TURN_ENDED = "turn_ended"
    STORED = "stored"  # something new is in the store: read on from your sequence
    LINKS = "links"  # a platform's or model's state changed
    CLOSING = "closing"  # the gateway is shutting down: the stream ends, the browser comes back


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One live event of a chat; ``text`` is a piece of Markdown, a notice, or a tool's name."""

    kind: LiveKind
    chat_id: str
    text: str = ""
    detail: str = ""


class Speaker(StrEnum):
    """Who said a line of a chat."""

    PERSON = "person"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A stored line of a chat as the page shows it.

    ``position`` orders lines and is the browser's ``Last-Event-ID``: ``"<outbox seq>.<inbox id>"``
    up to and including this line. ``html`` is sanitised; ``text`` is the source.
    """

    position: str
    speaker: Speaker
    text: str
    html: str
    at: float
    key: str = ""  # the page's own UUID of a person's line
    notice: bool = False  # said by the gateway beside the turns: no answer


@dataclass(frozen=True, slots=True)
class Said:
    """The durable acknowledgement of a line: it is on disk."""

    inbox_id: int
    duplicate: bool


class Light(StrEnum):
    """A state for the eye. ``UNCHECKED`` is never shown green: no green mark without a proof."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class HealthItem:
    """One line of health: what, its light, a sentence with the cure, and numbers for programs."""

    name: str
    light: Light
    sentence: str
    figures: Mapping[str, float | int | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Health:
    """All lines, and why the gateway is not ready (empty: it is)."""

    items: tuple[HealthItem, ...]
    not_ready: tuple[str, ...] = ()
    started: bool = False
    version: str = ""
    home: str = ""


class LiveReader(Protocol):
    """One reader of a chat's live events."""

    async def next(self) -> LiveEvent:
        """The next event; waiting may be cancelled and begun again without losing one."""


class FrontDoor(Protocol):
    """What the page may do. Every call is for the owner's principal: the caller has proved that (R38)."""

    async def say(
        self, chat_id: str, key: str, text: str, files: Sequence[AttachmentRef] = ()
    ) -> Said:
        """T1 for a line typed on the page; ``key`` is the page's UUID, so a repeated post is one line (R2).

        ``files`` were kept before."""

    async def keep_file(self, content: bytes, mime: str) -> str:
        """A file for a later line is on disk; the hash by which the line names it. Raises StoreUnavailable."""

    async def lines(self, chat_id: str, after: str, limit: int) -> list[ChatLine]:
        """Stored lines after a position ("" = from the beginning), oldest first, at most ``limit``."""

    async def recent(self, chat_id: str, limit: int) -> list[ChatLine]:
        """The last ``limit`` stored lines, oldest first."""

    def subscribe(self, chat_id: str) -> AbstractAsyncContextManager[LiveReader]:
        """Live events of a chat from now on; bounded: a slow reader loses pieces of text, never STORED."""

    async def health(self) -> Health:
        """Measured now; at most a second old."""

    def alive(self) -> bool:
        """The loop turns (for /healthz)."""

    def metrics(self) -> bytes:
        """Prometheus text exposition."""
