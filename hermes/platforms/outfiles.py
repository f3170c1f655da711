"""Files that go out: the payload is the same for each platform, the bytes come from the spool with each attempt."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hermes.core.errors import Poison
from hermes.core.ports import Outgoing
from hermes.core.records import OutgoingPart
from hermes.core.transcript import FileRef

SLOWEST = 50_000.0
"""Bytes a second that an upload is given time for, beyond what any send is given."""


@dataclass(frozen=True, slots=True)
class OutFile:
    """What is to be sent under which name."""

    name: str
    mime: str
    content: bytes


def file_part(file: FileRef) -> OutgoingPart:
    """A part that is this file."""
    told = {"name": file.name, "mime": file.mime, "size": file.size}
    return OutgoingPart(json.dumps({"text": "", "file": told}, ensure_ascii=False), file.sha256)


def file_of(outgoing: Outgoing) -> OutFile | None:
    """The file that a part is; None for a part of text. Raises Poison for a payload that is not ours."""
    if outgoing.content is None:
        return None
    try:
        told = json.loads(outgoing.payload)["file"]
        return OutFile(str(told["name"])[:200], str(told["mime"])[:200], outgoing.content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Poison(f"not the payload of a file: {type(error).__name__}") from None


def upload_seconds(outgoing: Outgoing) -> float:
    """Seconds that a send may take longer for what it carries."""
    return len(outgoing.content or b"") / SLOWEST
