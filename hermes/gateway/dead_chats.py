"""Chats that cannot be written to any more: no part, draft or typing goes there until somebody writes from there.

A bot that goes on calling chats which have blocked it is punished for it, and each such call is one that a living
chat waits for. What was to be sent is a dead letter with the chat's reason; ``hermes dead-letters retry`` and an
inbound message try again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermes.core.clock import Clock
from hermes.core.delivery import DeliveryReason, DeliveryVerdict, Operation
from hermes.core.errors import StoreUnavailable
from hermes.core.events import Address
from hermes.core.records import InboxRow
from hermes.core.stores import Outbox
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

ChatKey = tuple[str, str, str]


class DeadChats:
    """Known chats that are closed to us, each with the platform's reason; kept on disk."""

    def __init__(self, outbox: Outbox, clock: Clock, supervisor: Supervisor) -> None:
        self._outbox = outbox
        self._clock = clock
        self._supervisor = supervisor
        self._reasons: dict[ChatKey, str] = {}

    async def load(self) -> None:
        """What earlier processes found."""
        self._reasons = await self._outbox.dead_chats()

    @property
    def reasons(self) -> Mapping[ChatKey, str]:
        """Each retired chat and why."""
        return self._reasons

    def reason(self, key: ChatKey) -> str | None:
        """Why nothing is sent to a chat; None: it is open."""
        return self._reasons.get(key)

    async def judge(self, address: Address, operation: Operation, verdict: DeliveryVerdict, told: str) -> None:
        """A send was refused for good: the chat retires if it is the chat that refused, not one message or thread."""
        of_chat = (
            verdict.reason is DeliveryReason.PERMANENT_TARGET
            and verdict.detail is None
            and operation is Operation.CREATE
            and address.thread_id is None
        )
        key = (address.platform, address.account, address.chat_id)
        if not of_chat or key in self._reasons:
            return
        self._reasons[key] = told[:300]
        log.warning("chat_retired", platform=address.platform, chat=address.chat_id, reason=told[:300])
        await self._outbox.retire_chat(address, told[:300], self._clock.now())

    def heard(self, rows: Iterable[InboxRow]) -> None:
        """Somebody wrote: their chats are open again."""
        if not self._reasons:
            return
        for row in rows:
            chat = row.update.chat
            key = (chat.platform, chat.account, chat.chat_id) if chat is not None else None
            if key is not None and self._reasons.pop(key, None) is not None:
                log.info("chat_is_back", platform=key[0], chat=key[2])
                self._supervisor.spawn(self._heal(Address(*key)), "dead_chats.heal")

    async def _heal(self, address: Address) -> None:
        try:
            await self._outbox.heal_chat(address)
        except StoreUnavailable as error:
            log.warning("chat_stays_retired_on_disk", chat=address.chat_id, error=str(error))
