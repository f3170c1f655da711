"""Live events of running turns: bounded, never stored, never in the way of the turn.

A reader that is too slow loses pieces of text (the page then reads the stored line); STORED, the one
event that tells it to do so, is never lost: it is kept as a flag, not as an entry.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hermes.core.door import LiveEvent, LiveKind

QUEUE_EVENTS: Final = 256


class Subscription:
    """One reader of one chat."""

    def __init__(self, chat_id: str) -> None:
        self.chat_id = chat_id
        self._events: deque[LiveEvent] = deque(maxlen=QUEUE_EVENTS)
        self._stored = False
        self._wake = asyncio.Event()

    def put(self, event: LiveEvent) -> None:
        """Never blocks; the oldest event goes when the reader is too slow."""
        if event.kind is LiveKind.STORED:
            self._stored = True
        else:
            self._events.append(event)
        self._wake.set()

    async def next(self) -> LiveEvent:
        """The next event; live pieces first, then the word that something is stored."""
        while True:
            if self._events:
                return self._events.popleft()
            if self._stored:
                self._stored = False
                return LiveEvent(LiveKind.STORED, self.chat_id)
            self._wake.clear()
            await self._wake.wait()


class LiveBus:
    """Hands events to the readers of their chat; costs nothing for a chat nobody looks at."""

    def __init__(self) -> None:
        self._readers: dict[str, set[Subscription]] = {}

    def watched(self, chat_id: str) -> bool:
        """Whether anybody looks at this chat."""
        return chat_id in self._readers

    def publish(self, event: LiveEvent) -> None:
        """To all readers of the event's chat."""
        for reader in self._readers.get(event.chat_id, ()):
            reader.put(event)

    def broadcast(self, kind: LiveKind, text: str = "") -> None:
        """To every reader, each under its own chat."""
        for chat_id, readers in self._readers.items():
            for reader in readers:
                reader.put(LiveEvent(kind, chat_id, text))

    @asynccontextmanager
    async def subscribe(self, chat_id: str) -> AsyncIterator[Subscription]:
        """Events of a chat from now on."""
        reader = Subscription(chat_id)
        self._readers.setdefault(chat_id, set()).add(reader)
        try:
            yield reader
        finally:
            readers = self._readers[chat_id]
            readers.discard(reader)
            if not readers:
                del self._readers[chat_id]
