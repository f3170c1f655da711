"""What became of a file that a person sent: the words between gateway, agent and store (R22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes.core.events import AttachmentRef
from hermes.core.ids import InboxId
from hermes.core.principals import PrincipalId
from hermes.core.transcript import ImageData, ImageRef


@dataclass(frozen=True, slots=True)
class Kept:
    """A file in the media store, by the hash of its bytes. ``image`` where it is a picture we can read."""

    sha256: str
    size: int
    mime: str
    image: ImageRef | None = None


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a document or of a recording. ``more``: characters that were left out after ``text``."""

    attachment: AttachmentRef
    kept: Kept
    text: str
    more: int = 0
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a model may look at."""

    attachment: AttachmentRef
    image: ImageRef


@dataclass(frozen=True, slots=True)
class Described:
    """A file that is kept and that nobody here can read; ``why`` is a half sentence or empty."""

    attachment: AttachmentRef
    kept: Kept
    why: str = ""


@dataclass(frozen=True, slots=True)
class NotFetched:
    """No file: ``why`` is half a sentence for the model."""

    attachment: AttachmentRef
    why: str


Received = ReadText | Picture | Described | NotFetched
"""What a turn's input shows for one attachment."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """The most a picture may have; None = no limit is known.

    ``encoded`` counts the bytes of its base64 text, ``side`` the pixels of its longer edge, ``pixels`` all.
    """

    encoded: int | None = None
    side: int | None = None
    pixels: int | None = None


class Pictures(Protocol):
    """Loads pictures for a request."""

    async def load(
        self, images: Sequence[ImageRef], limits: ImageLimits | None = None
    ) -> Mapping[str, ImageData]:
        """The bytes by hash, made smaller where ``limits`` say so; what is gone or unreadable is left out."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One attachment of one inbox row as the store knows it; ``kept`` None: it failed with ``error``."""

    kept: Kept | None
    error: str | None = None


class MediaStore(Protocol):
    """Where files are kept and what is known about each attachment."""

    async def known(self, rows: Sequence[InboxId]) -> Mapping[tuple[InboxId, str], Fetched]:
        """What earlier attempts of (inbox row, attachment's ref) came to; files that are gone count as unknown."""

    async def keep(
        self, row: InboxId, attachment: AttachmentRef, content: bytes, now: float
    ) -> Kept:
        """The file is on disk, named by its hash, and its row says so. Raises OSError, StoreUnavailable."""

    async def put(self, content: bytes, mime: str) -> Kept:
        """A file that no message brought, e.g. a tool's picture. Raises OSError."""

    async def failed(self, row: InboxId, attachment: AttachmentRef, error: str, now: float) -> None:
        """The file could not be had: no later attempt is made for this row."""

    async def read(self, sha256: str) -> bytes | None:
        """A file's bytes; None when it is gone."""

    async def find(self, principal: PrincipalId, sha256: str) -> tuple[AttachmentRef, Kept] | None:
        """A file that this principal sent, by at least eight digits of its hash (R37)."""


@dataclass(frozen=True, slots=True)
class NotHeard:
    """A recording that was not transcribed; ``why`` is half a sentence."""

    why: str


class Transcriber(Protocol):
    """Turns speech into text through a configured model, with its recovery."""

    async def transcribe(self, audio: bytes, name: str, mime: str) -> str | NotHeard:
        """What is said, or why it is not known."""
