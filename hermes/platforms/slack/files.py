"""A file to Slack: an address to upload to, the bytes, and the word that they are complete.

Slack keeps no metadata with a file, so one that may have arrived cannot be found again: it goes with the mark.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hermes.core.delivery import MARK_PREFIX
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address
from hermes.core.ports import Receipt
from hermes.platforms.outfiles import OutFile
from hermes.platforms.slack.calls import thread_of
from hermes.platforms.slack.failures import FailureReader

Form = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def send_file(
    file: OutFile, address: Address, marked: bool, form: Form, upload: Callable[[str, bytes], Awaitable[None]],
    failures: FailureReader,
) -> Receipt:  # fmt: skip
    """``form`` calls a method with a form, ``upload`` posts bytes. Raises PlatformFailure."""
    place = await form("files.getUploadURLExternal", {"filename": file.name, "length": len(file.content)})
    url, name = place.get("upload_url"), place.get("file_id")
    if not isinstance(url, str) or not isinstance(name, str):
        raise PlatformFailure(failures.garbage("files.getUploadURLExternal"))
    await upload(url, file.content)
    told = json.dumps([{"id": name, "title": file.name}])
    done: dict[str, Any] = {"files": told, "channel_id": address.chat_id, **thread_of(address)}
    if marked:
        done["initial_comment"] = MARK_PREFIX.strip()
    await form("files.completeUploadExternal", done)
    return Receipt(f"{address.chat_id}:{name}")
