"""The front door: lines of the page and of the CLI go the same durable path as any platform's (DESIGN §4)."""

from __future__ import annotations

import heapq
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from hermes.core.attachments import Kept
from hermes.core.clock import Clock
from hermes.core.door import ChatLine, Health, LiveEvent, LiveKind, LiveReader, Said, Speaker
from hermes.core.errors import HermesError, Poison, StoreUnavailable
from hermes.core.events import AttachmentRef, MessageEvent, RawUpdate
from hermes.core.ports import Platform
from hermes.core.records import InboxRow, OutboxRow, Priority
from hermes.core.stores import Sessions
from hermes.gateway.health import HealthBook
from hermes.gateway.ingest import Ingest
from hermes.gateway.live import LiveBus

WEB = "web"


class MakeUpdate(Protocol):
    """The raw update of a line typed on the page."""

    def __call__(
        self, chat_id: str, user_id: str, message_uuid: str, text: str, sent_at: float, *,
        files: Sequence[AttachmentRef] = (),
    ) -> RawUpdate: ...  # fmt: skip


class StoppedIntake(HermesError):
    """The gateway is shutting down and accepts no more; the page tries again after the restart."""


@dataclass(slots=True)
class Door:
    """Implements ``door.FrontDoor``."""

    ingest: Ingest
    sessions: Sessions
    platform: Platform
    make_update: MakeUpdate
    bus: LiveBus
    clock: Clock
    health_book: HealthBook
    render_metrics: Callable[[], bytes]
    open: bool = True
    keep: Callable[[bytes, str], Awaitable[Kept]] | None = None

    def _take_in(self) -> None:
        if not self.open:
            raise StoppedIntake("the gateway is shutting down; your line was not taken, send it again in a moment")
        if not self.health_book.has_room():
            raise StoreUnavailable("the disk is nearly full: nothing new is taken in (gateway.disk_floor)")

    async def keep_file(self, content: bytes, mime: str) -> str:
        self._take_in()
        if self.keep is None:
            raise StoreUnavailable("no files are kept here")
        try:
            return (await self.keep(content, mime)).sha256
        except OSError as error:
            raise StoreUnavailable(f"the file could not be stored: {error.strerror}") from error

    async def say(
        self, chat_id: str, key: str, text: str, files: Sequence[AttachmentRef] = ()
    ) -> Said:
        self._take_in()
        update = self.make_update(chat_id, "owner", key, text, self.clock.now(), files=files)
        [accepted] = await self.ingest.accept([update])
        self.bus.publish(LiveEvent(LiveKind.STORED, chat_id))
        return Said(accepted.row.id, accepted.duplicate)

    async def lines(self, chat_id: str, after: str, limit: int) -> list[ChatLine]:
        seq, inbox_id = parse_position(after)
        said = await self.sessions.said(WEB, chat_id, inbox_id, limit)
        sent = await self.sessions.deliveries(WEB, chat_id, seq, limit)
        persons: list[tuple[tuple[float, int, int], InboxRow | OutboxRow]] = [
            ((row.received_at, 0, row.id), row) for row in said
        ]
        agents: list[tuple[tuple[float, int, int], InboxRow | OutboxRow]] = [
            ((row.created_at, 1, row.seq), row) for row in sent
        ]
        lines: list[ChatLine] = []
        for _, row in heapq.merge(persons, agents, key=lambda entry: entry[0]):
            if isinstance(row, InboxRow):
                inbox_id = max(inbox_id, row.id)
                line = self._person(row, f"{seq}.{inbox_id}")
            else:
                seq = max(seq, row.seq)
                line = _agent(row, f"{seq}.{inbox_id}")
            if line is not None:
                lines.append(line)
        return lines[:limit]

    async def recent(self, chat_id: str, limit: int) -> list[ChatLine]:
        seq, inbox_id = await self.sessions.recent_positions(WEB, chat_id, limit)
        return (await self.lines(chat_id, f"{seq}.{inbox_id}", 2 * limit))[-limit:]

    def subscribe(self, chat_id: str) -> AbstractAsyncContextManager[LiveReader]:
        return self.bus.subscribe(chat_id)

    async def health(self) -> Health:
        return await self.health_book.health()

    def alive(self) -> bool:
        return True

    def metrics(self) -> bytes:
        return self.render_metrics()

    def close(self) -> None:
        """No further line is taken; those who look on are told that the gateway goes."""
        self.open = False
        self.bus.broadcast(LiveKind.CLOSING)

    def delivered(self, row: OutboxRow) -> None:
        """A part for the page was committed: those who look on are told to read it."""
        if row.address.platform == WEB:
            self.bus.publish(LiveEvent(LiveKind.STORED, row.address.chat_id))

    def _person(self, row: InboxRow, position: str) -> ChatLine | None:
        try:
            event = self.platform.normalise(row.update.raw)
        except Poison:
            return None  # one row that cannot be read does not hide the others
        if not isinstance(event, MessageEvent):
            return None
        said = "\n".join(filter(None, (event.text, *(f"📎 {file.name or 'file'}" for file in event.attachments))))
        return ChatLine(position, Speaker.PERSON, said, "", row.received_at, row.update.dedup_key)


def _agent(row: OutboxRow, position: str) -> ChatLine:
    payload = json.loads(row.payload)
    beside = row.priority is Priority.NOTICE and row.turn_id is None
    return ChatLine(position, Speaker.AGENT, payload["markdown"], payload["html"], row.created_at, notice=beside)


def parse_position(text: str) -> tuple[int, int]:
    """``"<outbox seq>.<inbox id>"``; anything else means the beginning."""
    seq, _, inbox_id = text.partition(".")
    if seq.isascii() and seq.isdigit() and inbox_id.isascii() and inbox_id.isdigit() and len(text) < 40:
        return int(seq), int(inbox_id)
    return 0, 0
