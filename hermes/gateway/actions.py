"""What the owner may do from the command line, on a running gateway or on its store alone (R33)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hermes.core.clock import Clock
from hermes.core.errors import TargetUnknown
from hermes.core.events import Address
from hermes.core.ids import DeliveryId, InboxId
from hermes.core.learned import LearnedFacts
from hermes.core.records import InboxRow, OutboxRow
from hermes.core.stores import Inbox, Outbox, Sessions
from hermes.gateway.people import People
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.replies import PlatformReplies
from hermes.gateway.usage import UsageBook

PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True)
class Actions:
    """Each returns plain JSON-like values; raises TargetUnknown for names that do not exist."""

    inbox: Inbox
    outbox: Outbox
    sessions: Sessions
    platforms: PlatformBook
    replies: PlatformReplies
    clock: Clock
    offer: Callable[[Sequence[OutboxRow]], None]
    readmit: Callable[[InboxRow], None]
    learned: LearnedFacts
    usage: UsageBook
    people: People

    async def send(self, target: str, text: str) -> dict[str, object]:
        """``PLATFORM:CHAT`` or ``PLATFORM:CHAT:THREAD``; the message is in the durable outbox when this returns."""
        if not text.strip():
            raise TargetUnknown("the text is empty: say what is to be sent")
        address = await self._address(target)
        delivery = self.replies.reply(address, None, text)
        rows = await self.outbox.enqueue([delivery], self.clock.now())
        self.offer(rows)
        return {"delivery": rows[0].delivery_id, "parts": len(rows), "state": rows[0].state.value}

    async def dead_letters(self) -> list[dict[str, object]]:
        """Deliveries that failed or are held (``out:N``) and messages that could not be read (``in:N``)."""
        found: list[dict[str, object]] = [
            {
                "id": f"out:{row.delivery_id}", "part": row.part, "state": row.state.value,
                "platform": row.address.platform, "chat": row.address.chat_id, "reason": row.reason,
                "at": row.created_at, "preview": row.payload[:PREVIEW_CHARS],
            }
            for row in await self.outbox.dead_letters()
        ]  # fmt: skip
        found += [
            {
                "id": f"in:{row.id}", "part": 0, "state": "dead_letter", "platform": row.update.platform,
                "chat": row.update.chat.chat_id if row.update.chat else None, "reason": row.update.problem,
                "at": row.received_at, "preview": row.update.raw[:PREVIEW_CHARS],
            }
            for row in await self.inbox.dead_letters()
        ]  # fmt: skip
        return found

    async def retry(self, name: str) -> dict[str, object]:
        """Tries a dead letter once more."""
        kind, number = _parse(name)
        if kind == "out":
            rows = await self.outbox.retry(DeliveryId(number), self.clock.now())
            if not rows:
                raise TargetUnknown(f"no dead letter {name}; `hermes dead-letters list` shows them")
            self.offer(rows)
            return {"id": name, "parts": len(rows)}
        row = await self.inbox.revive(InboxId(number))
        if row is None:
            raise TargetUnknown(f"no dead letter {name} can be read again; `hermes dead-letters list` shows them")
        self.readmit(row)
        return {"id": name, "parts": 1}

    async def drop(self, name: str) -> dict[str, object]:
        """Takes a dead letter off the list; its row stays until retention ends."""
        kind, number = _parse(name)
        now = self.clock.now()
        dropped = (
            await self.outbox.drop(DeliveryId(number), now)
            if kind == "out"
            else await self.inbox.drop(InboxId(number), now)
        )
        if not dropped:
            raise TargetUnknown(f"no dead letter {name}; `hermes dead-letters list` shows them")
        return {"id": name, "parts": dropped}

    async def learned_facts(self) -> list[dict[str, object]]:
        """What repairs taught about models, each until it expires; times in unix seconds."""
        return [
            {
                "target": f"{fact.provider}/{fact.model}", "key": fact.key, "value": fact.value,
                "learned_at": fact.learned_at, "expires_at": fact.expires_at,
            }
            for fact in sorted(self.learned.all(), key=lambda fact: (fact.provider, fact.model, fact.key))
        ]  # fmt: skip

    async def forget(self, target: str = "") -> dict[str, object]:
        """Forgets what was learned about one ``provider/model``; "": about all."""
        known = {f"{fact.provider}/{fact.model}" for fact in self.learned.all()}
        if target and target not in known:
            raise TargetUnknown(f"nothing was learned about {target!r}; `hermes learned list` shows what was")
        return {"target": target, "forgotten": await self.learned.clear(target)}

    async def _address(self, target: str) -> Address:
        platform, _, rest = target.partition(":")
        chat, _, thread = rest.partition(":")
        self.platforms.get(platform)
        if not chat:
            raise TargetUnknown(f"{target!r} names no chat: write PLATFORM:CHAT, e.g. telegram:123456")
        known = [c for c in await self.sessions.chats(platform) if c[1] == chat]
        account = known[0][0] if known else self.platforms.get(platform).account
        return Address(platform, account, chat, thread or None)


def _parse(name: str) -> tuple[str, int]:
    kind, _, number = name.partition(":")
    if kind not in ("in", "out") or not (number.isascii() and number.isdigit() and len(number) < 18):
        raise TargetUnknown(f"{name!r} is no dead letter's id: they look like out:12 or in:7")
    return kind, int(number)
