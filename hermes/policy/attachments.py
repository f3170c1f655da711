"""What an attachment is, and the words for it. Pure."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping

from hermes.core.attachments import Described, NotFetched, Picture, ReadText, Received
from hermes.core.events import AttachmentRef

RECORDINGS = frozenset({"voice", "audio", "video_note"})
"""Kinds whose words are what the person says."""
SHORT_ID = 12
"""Digits of a file's hash by which tools name it."""
_UNKNOWN = "application/octet-stream"
_OWN_TYPES: Mapping[str, str] = {
    ".md": "text/markdown", ".yml": "application/yaml", ".yaml": "application/yaml", ".toml": "application/toml",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".opus": "audio/ogg",
    ".oga": "audio/ogg",
}  # fmt: skip


def mime_of(attachment: AttachmentRef, found: str = "") -> str:
    """Its MIME type: what the platform said, else what its name says."""
    stated = (attachment.mime or found or "").partition(";")[0].strip().lower()
    if stated and stated != _UNKNOWN:
        return stated
    ending = f".{(attachment.name or '').rpartition('.')[2].lower()}"
    guessed = _OWN_TYPES.get(ending) or mimetypes.types_map.get(ending)
    return guessed or ("audio/ogg" if attachment.kind == "voice" else _UNKNOWN)


def is_recording(attachment: AttachmentRef, mime: str) -> bool:
    """Whether it is to be listened to."""
    return attachment.kind in RECORDINGS or mime_of(attachment, mime).startswith("audio/")


def short_id(sha256: str) -> str:
    """The name by which a tool finds the file again."""
    return sha256[:SHORT_ID]


def size_text(size: int) -> str:
    """A file's size for a reader."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def too_large(limit: int) -> str:
    """Why a file is not fetched."""
    return f"it is larger than {size_text(limit)}, the most that is fetched"


def told(received: Received) -> str:
    """The lines of a turn's input for one attachment; a picture itself goes with the item."""
    what = named(received.attachment)
    match received:
        case Picture(_, image):
            return f"[{what}, {image.width}×{image.height}, attachment {short_id(image.sha256)}]"
        case ReadText(_, kept, text, more, spoken):
            left = f"\n[… {more} more characters: attachment {short_id(kept.sha256)}]" if more else ""
            if spoken:
                return f"[{what}, transcribed:]\n{text}{left}"
            return f"[{what}, {size_text(kept.size)}:]\n{text}{left}\n[end of {what}]"
        case Described(attachment, kept, why):
            reason = f"; {why}" if why else "; not readable as text"
            mime = mime_of(attachment, kept.mime)
            return f"[{what}, {mime}, {size_text(kept.size)}, kept as attachment {short_id(kept.sha256)}{reason}]"
        case NotFetched(_, why):
            return f"[{what} could not be fetched: {why}]"


def named(attachment: AttachmentRef) -> str:
    """``document report.pdf``, ``voice message``: one line, whatever the name holds."""
    kind = {"voice": "voice message", "video_note": "video message"}.get(attachment.kind, attachment.kind)
    name = "".join(c if c.isprintable() and c not in "[]" else " " for c in attachment.name or "")[:100].strip()
    return f"{kind} {name}".strip()
