"""Being called instead of calling: the platform's request is answered when what it brought is on disk (R1).

HTTP route ─► put(update) ──── waits ────► True: it is on disk · False: it is to come again
                    │ queue, bounded           ▲
                    ▼                          │
link: receive ─► take ─► T1 ─► confirm ────────┘
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

WAITING = 100  # updates in the queue; the platform is told to come again with any more
TAKE_LIMIT = 30.0  # seconds a request waits for its T1; Telegram gives up after about a minute


@dataclass(slots=True, eq=False)
class Delivery:
    """One update that the platform brought, and the request that waits for it."""

    update: object
    stored: asyncio.Future[bool]


@dataclass(slots=True)
class Mailbox:
    """Updates between the HTTP route and the link. All on one loop."""

    waiting: deque[Delivery] = field(default_factory=deque)
    handed_out: list[Delivery] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def put(self, update: object, limit: float = TAKE_LIMIT) -> bool:
        """True once the update is on disk; False when there is no room, no time, or T1 failed."""
        if len(self.waiting) >= WAITING:
            return False
        delivery = Delivery(update, asyncio.get_running_loop().create_future())
        self.waiting.append(delivery)
        self.arrived.set()
        try:
            async with asyncio.timeout(limit):
                return await delivery.stored
        except TimeoutError:
            return False
        finally:
            if delivery in self.waiting:
                self.waiting.remove(delivery)

    async def take(self, limit: float) -> tuple[Delivery, ...]:
        """What has arrived, empty after ``limit`` seconds. What was handed out and not confirmed is void."""
        self.give_back()
        try:
            async with asyncio.timeout(limit):
                while not self.waiting:
                    self.arrived.clear()
                    await self.arrived.wait()
        except TimeoutError:
            return ()
        self.handed_out = list(self.waiting)
        self.waiting.clear()
        return tuple(self.handed_out)

    def confirm(self, deliveries: tuple[Delivery, ...]) -> None:
        """These are on disk: their requests may be answered."""
        for delivery in deliveries:
            if not delivery.stored.done():
                delivery.stored.set_result(True)
        self.handed_out.clear()

    def give_back(self) -> None:
        """Their T1 failed, or nobody asks any more: the platform is to bring them again."""
        for delivery in self.handed_out:
            if not delivery.stored.done():
                delivery.stored.set_result(False)
        self.handed_out.clear()
