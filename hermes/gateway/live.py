"""Live events of running turns: bounded, never stored, never in the way of the turn.

A reader that is too slow loses pieces of text (the page then reads the stored line); STORED, the one
event that tells it to do so, is never lost: it is kept as a flag, not as an entry. Who begins to read in
the middle of a turn is told first what it has shown so far.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from hermes.core.door import LiveEvent, LiveKind

QUEUE_EVENTS: Final = 256
SoFar = Callable[[], Sequence[LiveEvent]]
"""What a running turn has shown up to now."""


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
        self._running: dict[str, list[SoFar]] = {}
        self._closing = False

    def begin(self, chat_id: str, so_far: SoFar) -> None:
        """A turn of this chat begins to show itself; ``end`` it."""
        self._running.setdefault(chat_id, []).append(so_far)

    def end(self, chat_id: str, so_far: SoFar) -> None:
        """It shows nothing more. Idempotent."""
        running = self._running.get(chat_id, [])
        if so_far in running:
            running.remove(so_far)
        if not running:
            self._running.pop(chat_id, None)

    def watched(self, chat_id: str) -> bool:
        """Whether anybody looks at this chat."""
        return chat_id in self._readers

    def publish(self, event: LiveEvent) -> None:
        """To all readers of the event's chat."""
        for reader in self._readers.get(event.chat_id, ()):
            reader.put(event)

    def broadcast(self, kind: LiveKind, text: str = "") -> None:
        """To every reader, each under its own chat; CLOSING also to whoever comes later."""
        self._closing |= kind is LiveKind.CLOSING
        for chat_id, readers in self._readers.items():
            for reader in readers:
                reader.put(LiveEvent(kind, chat_id, text))

    @asynccontextmanager
    async def subscribe(self, chat_id: str) -> AsyncIterator[Subscription]:
        """Events of a chat from now on, after what its running turns have shown so far."""
        reader = Subscription(chat_id)
        for so_far in self._running.get(chat_id, ()):
            for event in so_far():
                reader.put(event)
        if self._closing:
            reader.put(LiveEvent(LiveKind.CLOSING, chat_id))
        self._readers.setdefault(chat_id, set()).add(reader)
        try:
            yield reader
        finally:
            readers = self._readers[chat_id]
            readers.discard(reader)
            if not readers:
                del self._readers[chat_id]
