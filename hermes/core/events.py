"""From the wire to a word: ``RawUpdate`` (as stored by T1) and ``Event`` (after normalising).

An adapter's ``envelope`` makes a RawUpdate out of what its SDK gave it, reading only what
authorisation, deduplication and ordering need; ``normalise`` reads the rest, later, from ``raw``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hermes.core.principals import ChatRef, Identity
from hermes.core.urgency import Urgency


@dataclass(frozen=True, slots=True)
class RawUpdate:
    """One update as the platform sent it.

    ``dedup_key`` names the thing, not the event (R2). ``identity`` and ``chat`` are None when the
    envelope could not be read: such a row becomes a dead letter (R1). ``raw`` is ASCII-only JSON
    and never holds a URL with a token. ``sent_at`` is the platform's clock, unix seconds.
    """

    platform: str
    account: str
    dedup_key: str
    raw: str
    identity: Identity | None
    chat: ChatRef | None
    message_ref: str | None = None
    sent_at: float | None = None
    merge_key: str | None = None  # parts of an album or of a client-split paste share one (R7)
    problem: str | None = None  # why the envelope could not be read
    urgency: Urgency = Urgency.INTERACTIVE  # whether somebody waits for what comes of it (R29)
    addressed: bool = True  # in a group: it names the bot, or replies to it (group policy decides what that means)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one completed receive cycle brought; ``token`` is the adapter's own note for ``confirm``.

    ``cursors`` are watermarks by channel, written with the updates in T1 (R4): everything up to them is on disk.
    """

    updates: tuple[RawUpdate, ...]
    token: object = None
    cursors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Address:
    """Where an answer goes. Immutable, thread included: never a silent fallback to another thread."""

    platform: str
    account: str
    chat_id: str
    thread_id: str | None = None
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class AttachmentRef:
    """A re-resolvable reference to an inbound file (R22); ``size`` in bytes where known."""

    kind: str
    ref: str
    name: str | None = None
    mime: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A person said something."""

    identity: Identity
    chat: ChatRef
    address: Address
    text: str
    message_ref: str
    sent_at: float
    edited: bool = False
    quoted: str | None = None
    attachments: tuple[AttachmentRef, ...] = field(default=())
    addressed: bool = True  # as in RawUpdate


@dataclass(frozen=True, slots=True)
class ButtonEvent:
    """A person pressed a button; ``data`` is what we put on it."""

    identity: Identity
    chat: ChatRef
    address: Address
    data: str
    message_ref: str
    sent_at: float


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """An update that is understood and needs no answer; the row ends as ``ignored(reason)``."""

    reason: str


Event = MessageEvent | ButtonEvent | NothingToDo
