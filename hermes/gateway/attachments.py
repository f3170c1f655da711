"""What people attach, from the platform into the turn (R22).

    turn's rows ─► known from an earlier attempt? ─► platform.download ─► media store ─┬─► picture ─► the model sees it
                                                                                       ├─► document ─► its text
                                                                                       └─► recording ─► transcribed

Runs inside the turn's own task, after T1 and before its first step: what is slow here delays this chat and no other,
/stop and the turn's deadline end it, and a message is never lost with its file. What failed is one line to the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from hermes.core.attachments import (
    Described,
    Fetched,
    Kept,
    MediaStore,
    NotFetched,
    NotHeard,
    Picture,
    ReadText,
    Received,
    Transcriber,
)
from hermes.core.clock import Clock
from hermes.core.delivery import DeliveryReason, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, AttachmentRef, MessageEvent
from hermes.core.ids import InboxId
from hermes.core.ports import TurnInput
from hermes.gateway.platform_book import PlatformBook
from hermes.policy.attachments import is_recording, mime_of, too_large
from hermes.policy.delivery import classify_delivery
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.documents import document_text
from hermes.runtime.logs import get_logger
from hermes.runtime.offload import Offload

log = get_logger(__name__)

ATTEMPTS = 3
"""Tries of one download, all within ``timeout``."""
PAUSE = 1.0
"""Seconds before the second try; doubles."""
_AGAIN = frozenset({
    DeliveryReason.NETWORK_RETRYABLE, DeliveryReason.TIMEOUT_AMBIGUOUS, DeliveryReason.FLOOD_WAIT,
    DeliveryReason.UNKNOWN,
})  # fmt: skip
NOBODY_LISTENS = (
    "I cannot listen to voice messages here: no transcription is configured. Please write it, or ask the owner to set "
    "`transcription:`."
)
_UNHEARD = "it cannot be listened to: no transcription is configured (the owner can set `transcription:`)"


@dataclass(frozen=True, slots=True)
class AttachmentSettings:
    """``gateway.media_*``: bytes of a file, seconds for one, files fetched at once, characters of text shown."""

    max_bytes: int = 20 * 2**20
    timeout: float = 60.0
    at_once: int = 8
    text_chars: int = 20_000


async def tell_nobody(address: Address, text: str) -> None:
    """No notices are sent."""


class Attachments:
    """Makes each input of a turn complete: ``TurnInput.received``."""

    def __init__(
        self,
        platforms: PlatformBook,
        media: MediaStore,
        offload: Offload,
        clock: Clock,
        settings: AttachmentSettings,
        *,
        transcriber: Transcriber | None = None,
        tell: Callable[[Address, str], Awaitable[None]] = tell_nobody,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self._checkpoints = checkpoints if checkpoints is not None else Checkpoints(None)
        self._platforms = platforms
        self._media = media
        self._offload = offload
        self._clock = clock
        self.settings = settings
        self.transcriber = transcriber
        self._tell = tell
        self._at_once = asyncio.Semaphore(settings.at_once)

    async def receive(self, inputs: Sequence[TurnInput]) -> tuple[TurnInput, ...]:
        """The same inputs with what their attachments came to. Raises StoreUnavailable, and nothing for a file."""
        wanted = [i.row.id for i in inputs if _attached(i)]
        if not wanted:
            return tuple(inputs)
        known = await self._media.known(wanted)
        room = _Room(4 * self.settings.text_chars, self.settings.text_chars)
        # one chat takes at most half of what may be fetched at once: the others find room
        own = asyncio.Semaphore(max(1, self.settings.at_once // 2))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    (i.row.id, a.ref): group.create_task(self._fetched(i, a, known.get((i.row.id, a.ref)), own))
                    for i in inputs
                    for a in _attached(i)
                }
        except ExceptionGroup as failed:  # the store's refusal, as whoever runs the turn knows it
            raise failed.exceptions[0] from failed
        found = {key: task.result() for key, task in tasks.items()}
        complete = []
        for i in inputs:
            received = [await self._read(a, found[i.row.id, a.ref], room) for a in _attached(i)]
            complete.append(replace(i, received=tuple(received)))
        if self.transcriber is None:
            await self._tell_if_unheard(complete, known)
        return tuple(complete)

    # ---- fetching ----

    async def _fetched(
        self, source: TurnInput, attachment: AttachmentRef, known: Fetched | None, own: asyncio.Semaphore
    ) -> Fetched:
        if known is not None:
            return known
        row, limit = source.row.id, self.settings.max_bytes
        if attachment.size is not None and attachment.size > limit:
            return await self._give_up(row, attachment, too_large(limit))
        try:
            async with own, self._at_once, asyncio.timeout(self.settings.timeout):
                content = await self._download(source, attachment, limit)
        except TimeoutError:
            return await self._give_up(row, attachment, f"it took longer than {self.settings.timeout:g} s")
        except PlatformFailure as failure:
            log.warning("attachment_not_fetched", row=row, kind=attachment.kind, error=failure.facts.exception)
            return await self._give_up(row, attachment, "the platform did not give it out")
        if len(content) > limit:
            return await self._give_up(row, attachment, too_large(limit))
        self._checkpoints.reach("after_download")
        try:
            kept = await self._media.keep(row, attachment, content, self._clock.now())
        except OSError as error:
            log.error("attachment_not_kept", row=row, error=error.strerror)
            return Fetched(None, "it could not be stored here")
        self._checkpoints.reach("after_attachment")
        return Fetched(kept)

    async def _download(self, source: TurnInput, attachment: AttachmentRef, limit: int) -> bytes:
        """Tried again while time may help. Raises PlatformFailure."""
        platform = self._platforms.get(source.row.update.platform)
        for attempt in range(1, ATTEMPTS):
            try:
                return await platform.download(attachment, limit)
            except PlatformFailure as failure:
                verdict = classify_delivery(failure.facts)
                refused = verdict.reason is DeliveryReason.UNKNOWN and failure.facts.sent is Sent.REFUSED
                if verdict.reason not in _AGAIN or refused:
                    raise
                wait = max(PAUSE * 2.0 ** (attempt - 1), verdict.retry_after or 0.0)
            await self._clock.sleep(wait)
        return await platform.download(attachment, limit)

    async def _give_up(self, row: InboxId, attachment: AttachmentRef, why: str) -> Fetched:
        await self._media.failed(row, attachment, why, self._clock.now())
        return Fetched(None, why)

    # ---- reading ----

    async def _read(self, attachment: AttachmentRef, fetched: Fetched, room: _Room) -> Received:
        kept = fetched.kept
        if kept is None:
            return NotFetched(attachment, fetched.error or "it could not be fetched")
        if kept.image is not None:
            return Picture(attachment, kept.image)
        content = await self._media.read(kept.sha256)
        if content is None:
            return NotFetched(attachment, "it is no longer kept here")
        if is_recording(attachment, kept.mime):
            return await self._heard(attachment, kept, content, room)
        name, mime = attachment.name or "", mime_of(attachment, kept.mime)
        text = await document_text(self._offload, content, name, mime, self.settings.timeout)
        if text is None:
            return Described(attachment, kept)
        shown, more = room.take(text)
        return ReadText(attachment, kept, shown, more)

    async def _heard(self, attachment: AttachmentRef, kept: Kept, content: bytes, room: _Room) -> Received:
        if self.transcriber is None:
            return Described(attachment, kept, _UNHEARD)
        name = attachment.name or f"{attachment.kind}.ogg"
        said = await self.transcriber.transcribe(content, name, mime_of(attachment, kept.mime))
        if isinstance(said, NotHeard):
            return Described(attachment, kept, said.why)
        shown, more = room.take(said)
        return ReadText(attachment, kept, shown, more, spoken=True)

    async def _tell_if_unheard(self, inputs: Sequence[TurnInput], known: object) -> None:
        """Once, when the recording came: a turn that is resumed knows its files already."""
        for i in inputs:
            unheard = any(isinstance(r, Described) and r.why == _UNHEARD for r in i.received)
            if unheard and not known and isinstance(i.event, MessageEvent):
                await self._tell(i.event.address, NOBODY_LISTENS)
                return


class _Room:
    """Characters of text that one turn's attachments may add, and one of them."""

    def __init__(self, whole: int, each: int) -> None:
        self._left = whole
        self._each = each

    def take(self, text: str) -> tuple[str, int]:
        """What is shown of a text, and how many characters are left out."""
        shown = text[: min(self._each, self._left)]
        self._left -= len(shown)
        return shown, len(text) - len(shown)


def _attached(source: TurnInput) -> tuple[AttachmentRef, ...]:
    return source.event.attachments if isinstance(source.event, MessageEvent) else ()
