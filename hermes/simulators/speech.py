"""``/audio/transcriptions`` as OpenAI's service answers it: strict about the form, a script for what is heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import PurePath

from aiohttp import BodyPartReader, web

from hermes.simulators.faults import ApiError

HEARD = frozenset({".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"})
LARGEST = 25 * 2**20
"""Bytes of a recording (https://platform.openai.com/docs/guides/speech-to-text)."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One request: the model, the file's name and bytes, the key."""

    model: str
    name: str
    content: bytes
    key: str


@dataclass(slots=True)
class Ears:
    """What was sent to be transcribed, and what is answered: the next of ``script``, else how many bytes came."""

    recordings: list[Recording] = field(default_factory=list)
    script: deque[str | ApiError] = field(default_factory=deque)

    async def hear(self, request: web.Request, key: str, refuse: Callable[[ApiError], web.Response]) -> web.Response:
        """Serves one request."""
        form, content, name = await _form(request)
        model = form.get("model", "")
        self.recordings.append(Recording(model, name, content, key))
        answer = self.script.popleft() if self.script else f"{len(content)} bytes"
        wrong = _wrong(model, name, content)
        if wrong is not None:
            return refuse(wrong)
        return refuse(answer) if isinstance(answer, ApiError) else web.json_response({"text": answer})


async def _form(request: web.Request) -> tuple[dict[str, str], bytes, str]:
    found: dict[str, str] = {}
    content, name = b"", ""
    read: Callable[[], Awaitable[object]] = (await request.multipart()).next
    while isinstance(part := await read(), BodyPartReader):
        if part.name == "file":
            content, name = bytes(await part.read()), part.filename or ""
        elif part.name is not None:
            found[part.name] = await part.text()
    return found, content, name


def _wrong(model: str, name: str, content: bytes) -> ApiError | None:
    if not model:
        return ApiError(400, "you must provide a model parameter", "invalid_request_error")
    if PurePath(name.lower()).suffix not in HEARD:
        formats = sorted(ending[1:] for ending in HEARD)
        return ApiError(400, f"Invalid file format. Supported formats: {formats}", "invalid_request_error")
    if len(content) > LARGEST:
        told = f"Maximum content size limit ({LARGEST}) exceeded ({len(content)} bytes read)"
        return ApiError(413, told, "server_error")
    return None
