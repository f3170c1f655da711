"""Files of the page: one POST brings one file's bytes, a message then names the files that go with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from aiohttp import web

from hermes.core.events import AttachmentRef

MOST_FILES = 10
"""Files of one message."""
UPLOAD_SECONDS = 120.0
"""Longest time for one file to arrive."""
_HASH = re.compile(r"[0-9a-f]{64}")
_MIME = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,80}")
_NAME_LENGTH = 200


async def receive(request: web.Request, limit: int) -> bytes:
    """The body's bytes. Raises HTTPException for nothing, too much or too slow."""
    found = bytearray()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            async for piece in request.content.iter_any():
                found += piece
                if len(found) > limit:
                    raise web.HTTPRequestEntityTooLarge(limit, len(found))
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="the file did not arrive in time") from None
    if not found:
        raise web.HTTPBadRequest(reason="the file is empty")
    return bytes(found)


def described(request: web.Request, sha256: str, size: int) -> AttachmentRef:
    """The uploaded file, as a message will name it."""
    stated = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    mime = stated if _MIME.fullmatch(stated) else "application/octet-stream"
    name = request.query.get("name", "")[:_NAME_LENGTH]
    return AttachmentRef(_kind(mime), sha256, name or None, mime, size)


def file_dict(file: AttachmentRef) -> dict[str, object]:
    """For the page."""
    return {"ref": file.ref, "name": file.name, "mime": file.mime, "size": file.size}


def files_of(body: Mapping[str, object]) -> tuple[AttachmentRef, ...]:
    """The files that a message names. Raises HTTPException for what no upload answered."""
    listed = body.get("files", [])
    if not isinstance(listed, list) or len(listed) > MOST_FILES:
        raise web.HTTPBadRequest(reason=f"files: a list of at most {MOST_FILES} is needed")
    return tuple(_file(one) for one in listed)


def _file(one: object) -> AttachmentRef:
    if not isinstance(one, Mapping):
        raise web.HTTPBadRequest(reason="files: an object that an upload answered is needed")
    ref, name, mime, size = (one.get(key) for key in ("ref", "name", "mime", "size"))
    if not isinstance(ref, str) or _HASH.fullmatch(ref) is None:
        raise web.HTTPBadRequest(reason="files: a ref that an upload answered is needed")
    if not isinstance(mime, str) or _MIME.fullmatch(mime) is None:
        raise web.HTTPBadRequest(reason="files: the mime that an upload answered is needed")
    named = name[:_NAME_LENGTH] if isinstance(name, str) and name else None
    counted = size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None
    return AttachmentRef(_kind(mime), ref, named, mime, counted)


def _kind(mime: str) -> str:
    head = mime.partition("/")[0]
    return {"image": "photo", "audio": "audio", "video": "video"}.get(head, "document")
