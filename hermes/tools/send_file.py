"""``send_file``: a file goes to the person together with the answer (R22)."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from hermes.core.errors import ToolError
from hermes.core.ports import ToolOutput, ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import FileRef, ToolSpec, without_lone_surrogates
from hermes.runtime.offload import Offload
from hermes.tools import searching
from hermes.tools.files import FileAccess

Put = Callable[[str, str, bytes], Awaitable[FileRef]]


class SendFile:
    """Copies the file as it is now; it is delivered with the turn's answer, once, however often it is asked for."""

    effect = ToolEffect.IDEMPOTENT
    spec = ToolSpec(
        "send_file",
        "Send a file (document, picture, audio) to the person, together with your answer.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "name": {"type": "string", "description": "the name it is shown under; else its own"},
            },
            "required": ["path"],
        },
    )

    def __init__(self, access: FileAccess, offload: Offload, put: Put, limit: Callable[[], int]) -> None:
        self._access = access
        self._offload = offload
        self._put = put
        self._limit = limit

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> ToolOutput:
        named = arguments.get("path")
        if not isinstance(named, str) or not named:
            raise ToolError("path is missing: a text.")
        path = self._access.resolve(named)
        content = await self._offload.run("files", self._read, path)
        name = _shown_name(arguments.get("name"), path)
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        try:
            file = await self._put(name, mime, content)
        except OSError as error:
            raise ToolError(f"{path.name} cannot be kept for sending: {error.strerror}.") from error
        return ToolOutput(f"{name} ({file.size} bytes) goes out with your answer.", files=(file,))

    def _read(self, path: Path) -> bytes:
        limit = self._limit()
        try:
            content, more = searching.read_regular(str(path), limit)
        except OSError as error:
            raise ToolError(f"{path.name} cannot be read: {error.strerror}.") from error
        if more:
            raise ToolError(f"{path.name} is larger than the {limit} bytes that may be sent.")
        if not content:
            raise ToolError(f"{path.name} is empty; there is nothing to send.")
        return content


def _shown_name(wanted: object, path: Path) -> str:
    """A name of one line without folders; with the file's own ending where it has none."""
    name = wanted if isinstance(wanted, str) and wanted.strip() else path.name
    name = "".join(c for c in without_lone_surrogates(name) if c.isprintable()).replace("\\", "/")
    name = name.rpartition("/")[2].strip() or path.name
    return (name if Path(name).suffix else name + path.suffix)[-120:]
