"""When a chat may be written to: open at first, learning only from what the platform says (R20)."""

from __future__ import annotations

import asyncio

from hermes.core.clock import Clock
from hermes.core.events import Address
from hermes.core.stores import Outbox

ChatKey = tuple[str, str, str]


class Pacer:
    """Flood bans by chat, kept on disk, honoured by every sender; fixed rates only where configured.

    ``intervals`` maps a platform to (seconds between two sends to one chat, sends a second overall);
    0 means open.
    """

    def __init__(
        self, outbox: Outbox, clock: Clock, intervals: dict[str, tuple[float, float]] | None = None
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._intervals = intervals or {}
        self._bans: dict[ChatKey, float] = {}
        self._next_chat: dict[ChatKey, float] = {}
        self._next_global: dict[str, float] = {}

    async def load(self) -> None:
        """Bans that an earlier process was told of; re-clamped by the store's own bound (R41)."""
        self._bans = await self._outbox.bans(self._clock.now())

    def blocked_until(self, key: ChatKey) -> float:
        """Unix seconds; 0 when the chat is open."""
        until = self._bans.get(key, 0.0)
        if until and until <= self._clock.now():
            del self._bans[key]
            return 0.0
        return until

    async def ban(self, address: Address, until: float) -> None:
        """The platform asked us to be quiet in this chat."""
        key = (address.platform, address.account, address.chat_id)
        self._bans[key] = max(until, self._bans.get(key, 0.0))
        await self._outbox.ban(address, until, self._clock.now())

    async def grant(self, key: ChatKey) -> None:
        """Waits for the configured rates; returns at once where there are none."""
        per_chat, per_second = self._intervals.get(key[0], (0.0, 0.0))
        if not per_chat and not per_second:
            return
        now = self._clock.monotonic()
        at = now
        if per_chat:
            at = max(at, self._next_chat.get(key, 0.0))
            self._next_chat[key] = at + per_chat
            if len(self._next_chat) > 10_000:
                self._next_chat = {k: t for k, t in self._next_chat.items() if t > now}
        if per_second:
            at = max(at, self._next_global.get(key[0], 0.0))
            self._next_global[key[0]] = at + 1.0 / per_second
        if at > now:
            await asyncio.sleep(at - now)
