"""The page as a platform: the store is the destination, so nothing is sent (R21).

The page's server makes an update with ``make_update`` and hands it to the gateway's ingest itself; the
answer is delivered at T2 and browsers read it from the store by sequence.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure, Poison
from hermes.core.events import Address, AttachmentRef, Batch, Event, MessageEvent, RawUpdate
from hermes.core.ports import Outgoing, Receipt
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.core.records import OutgoingPart
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.web.render import render

PLATFORM = "web"
ACCOUNT = "local"
_TEXTS = ("chat", "user", "uuid", "text")


def make_update(
    chat_id: str,
    user_id: str,
    message_uuid: str,
    text: str,
    sent_at: float,
    edited: bool = False,
    files: Sequence[AttachmentRef] = (),
) -> RawUpdate:
    """What the page sent. Its key is the UUID the page made, so sending it twice is one message (R2).

    An edit carries a new UUID; ``sent_at`` in unix seconds; ``files`` are named by the hash of their bytes.
    """
    body: dict[str, Any] = {"chat": chat_id, "user": user_id, "uuid": message_uuid, "text": text, "at": sent_at}
    if edited:
        body["edited"] = True
    if files:
        body["files"] = [[file.kind, file.ref, file.name, file.mime, file.size] for file in files]
    return RawUpdate(
        platform=PLATFORM,
        account=ACCOUNT,
        dedup_key=message_uuid,
        raw=json.dumps(body, separators=(",", ":")),
        identity=_identity(user_id),
        chat=_chat(chat_id),
        message_ref=message_uuid,
        sent_at=sent_at,
    )


class WebPlatform:
    """The local page. Always connected; receives through its server, sends through the store."""

    name = PLATFORM
    account = ACCOUNT
    delivers_at_commit = True
    creates_are_safe = True

    def __init__(self) -> None:
        self.read_file: Callable[[str], Awaitable[bytes | None]] = nothing_kept
        """Where the page's files are."""

    async def connect(self) -> None:
        """Nothing to connect to."""

    async def receive(self) -> Batch:
        """Waits until it is cancelled: the page's server hands updates to ingest itself."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a future that nobody holds cannot be done")

    def confirm(self, batch: Batch) -> None:
        """Nothing to tell: the server answers the page after T1."""

    def normalise(self, raw: str) -> Event:
        """A message. Raises Poison for what ``make_update`` did not make."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise Poison(f"not JSON: {type(error).__name__}") from None
        if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in _TEXTS):
            raise Poison("not a message of the page")
        at = body.get("at")
        if isinstance(at, bool) or not isinstance(at, (int, float)) or not abs(at) < 1e15:
            raise Poison("at is not a time")
        chat, text, user, uuid = (without_lone_surrogates(body[n]) for n in ("chat", "text", "user", "uuid"))
        return MessageEvent(
            identity=_identity(user),
            chat=_chat(chat),
            address=Address(PLATFORM, ACCOUNT, chat),
            text=text,
            message_ref=uuid,
            sent_at=float(at),
            edited=body.get("edited") is True,
            attachments=_files(body.get("files", [])),
        )

    def render(self, text: str) -> tuple[OutgoingPart, ...]:
        """See ``render.render``. Raises Poison."""
        return render(text)

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Never called: a part is delivered when it is committed. Raises PlatformFailure."""
        raise PlatformFailure(
            DeliveryFacts(PLATFORM, code="not_a_send", message="the page reads its answers from the store")
        )

    async def typing(self, address: Address) -> None:
        """The page sees the turn itself."""

    async def download(self, attachment: AttachmentRef, limit: int) -> bytes:
        """A file that the page's server has kept already. Raises PlatformFailure."""
        content = await self.read_file(attachment.ref)
        if content is None or len(content) > limit:
            message = "the file is not kept here" if content is None else f"the file is over {limit} bytes"
            raise PlatformFailure(DeliveryFacts(PLATFORM, code="no_file", message=message, sent=Sent.REFUSED))
        return content

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Nothing to close; a waiting ``receive`` ends with its task."""


async def nothing_kept(ref: str) -> bytes | None:
    """No files are kept."""
    return None


def _files(listed: object) -> tuple[AttachmentRef, ...]:
    if not isinstance(listed, list) or not all(_is_file(one) for one in listed):
        raise Poison("not the files of a message of the page")
    return tuple(AttachmentRef(*(_clean(part) for part in one)) for one in listed)


def _is_file(one: object) -> bool:
    if not isinstance(one, list) or len(one) != 5:
        return False
    kind, ref, name, mime, size = one
    texts = isinstance(kind, str) and isinstance(ref, str) and ref.isalnum()
    known = all(part is None or isinstance(part, str) for part in (name, mime))
    return texts and known and (size is None or (isinstance(size, int) and not isinstance(size, bool)))


def _clean(part: Any) -> Any:
    return without_lone_surrogates(part) if isinstance(part, str) else part


def _identity(user_id: str) -> Identity:
    return Identity(PLATFORM, ACCOUNT, user_id)


def _chat(chat_id: str) -> ChatRef:
    return ChatRef(PLATFORM, ACCOUNT, chat_id, None, ChatKind.PRIVATE)
