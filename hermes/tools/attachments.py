"""``read_attachment``: a file that this person sent, once more: its text from any place on, or the picture (R37)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hermes.core.attachments import MediaStore
from hermes.core.errors import ToolError
from hermes.core.ports import ToolOutput, ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolSpec
from hermes.policy.attachments import mime_of, named, size_text
from hermes.runtime.documents import document_text
from hermes.runtime.offload import Offload

READ_CHARS = 20_000
"""Characters of one answer; the toolbox bounds them further."""


class ReadAttachment:
    """Finds only what the caller's own principal sent."""

    effect = ToolEffect.PURE
    spec = ToolSpec(
        "read_attachment",
        "Read a file that the person sent, by the id shown with it: text from first_char on, or the picture.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "e.g. 1f0c22ab90de"},
                "first_char": {"type": "integer", "description": "from 0"},
            },
            "required": ["id"],
        },
    )

    def __init__(self, media: MediaStore, offload: Offload, seconds: Callable[[], float]) -> None:
        self._media = media
        self._offload = offload
        self._seconds = seconds

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str | ToolOutput:
        wanted, start = arguments.get("id"), arguments.get("first_char", 0)
        if not isinstance(wanted, str) or not wanted:
            raise ToolError("The argument 'id' is missing or is not a text.")
        first = start if isinstance(start, int) and not isinstance(start, bool) and start > 0 else 0
        found = await self._media.find(context.principal_id, wanted.strip())
        if found is None:
            raise ToolError(f"There is no attachment {wanted[:80]!r}: it was not sent here, or is no longer kept.")
        attachment, kept = found
        what = f"{named(attachment)}, {size_text(kept.size)}"
        if kept.image is not None:
            return ToolOutput(f"{what}, {kept.image.width}×{kept.image.height}", (kept.image,))
        content = await self._media.read(kept.sha256)
        mime = mime_of(attachment, kept.mime)
        text = None
        if content is not None:
            text = await document_text(self._offload, content, attachment.name or "", mime, self._seconds())
        if text is None:
            raise ToolError(f"{what}, {mime}: not readable as text.")
        shown = text[first : first + READ_CHARS]
        left = len(text) - first - len(shown)
        return f"{shown}\n[{left} more characters: first_char {first + len(shown)}]" if left > 0 else shown or "(empty)"
