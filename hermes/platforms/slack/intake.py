"""What Slack brings, by either of its ways, as one stream of envelopes that are acknowledged when they are on disk.

Socket Mode: we hold a socket, and tell Slack on it. HTTP: Slack's request waits, and is answered with 200.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hermes.core.door import CallAnswer, Called
from hermes.platforms.mailbox import Delivery, Mailbox
from hermes.platforms.slack.requests import Brought, Challenge, Forged, Requests
from hermes.platforms.slack.socket import Envelope, SocketMode

TAKE_LIMIT = 25.0  # seconds a request waits for its T1; Slack counts it as failed after three, and comes again


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """One thing that Slack brought: ``kind`` is events_api, interactive or slash_commands."""

    kind: str
    payload: Any
    origin: Envelope | Delivery


class Intake(Protocol):
    """One of Slack's two ways."""

    @property
    def gaps(self) -> int:
        """How often something may have been missed so far."""

    async def open(self) -> None:
        """Raises PlatformFailure."""

    async def take(self, *, wait: bool) -> list[Arrived]:
        """What has come; empty for a completed cycle without anything. Raises PlatformFailure."""

    async def acknowledge(self, arrived: list[Arrived]) -> None:
        """These are on disk."""

    def give_back(self) -> None:
        """What was taken and not acknowledged is to come again."""

    async def close(self) -> None:
        """Ends every connection. Idempotent."""


class BySocket:
    """Socket Mode."""

    def __init__(self, socket: SocketMode) -> None:
        self.socket = socket

    @property
    def gaps(self) -> int:
        return self.socket.opened

    async def open(self) -> None:
        await self.socket.open()

    async def take(self, *, wait: bool) -> list[Arrived]:
        return [Arrived(one.kind, one.payload, one) for one in await self.socket.take(wait=wait)]

    async def acknowledge(self, arrived: list[Arrived]) -> None:
        await self.socket.acknowledge([one.origin for one in arrived if isinstance(one.origin, Envelope)])

    def give_back(self) -> None:
        """Slack brings again by itself what was not acknowledged."""

    async def close(self) -> None:
        await self.socket.drop()


class ByRequest:
    """Events over HTTP: the web server hands each request to ``called``. A cycle lasts at most ``cycle`` seconds."""

    def __init__(self, signing_secret: str, wall: Callable[[], float], cycle: float) -> None:
        self._requests = Requests(signing_secret, wall)
        self._mailbox = Mailbox()
        self._cycle = cycle
        self.gaps = 0
        self.refused: Counter[str] = Counter()

    async def open(self) -> None:
        self.gaps += 1

    async def take(self, *, wait: bool) -> list[Arrived]:
        found = await self._mailbox.take(self._cycle if wait else 0.001)
        arrived = []
        for delivery in found:
            brought = delivery.update
            if isinstance(brought, Brought):
                arrived.append(Arrived(brought.kind, brought.payload, delivery))
        return arrived

    async def acknowledge(self, arrived: list[Arrived]) -> None:
        self.stored(arrived)

    def stored(self, arrived: list[Arrived]) -> None:
        """These are on disk: their requests are answered at once."""
        self._mailbox.confirm(tuple(one.origin for one in arrived if isinstance(one.origin, Delivery)))

    def give_back(self) -> None:
        self._mailbox.give_back()

    async def close(self) -> None:
        self._mailbox.give_back()

    async def called(self, request: Called) -> CallAnswer:
        """A request to our address: 200 only when what it brought is on disk. A forged one is counted and refused."""
        match self._requests.read(request.headers, request.body):
            case Forged(why):
                self.refused[why] += 1
                return CallAnswer(401)
            case Challenge(text):
                return CallAnswer(200, text)
            case Brought() as brought:
                return CallAnswer(200 if await self._mailbox.put(brought, TAKE_LIMIT) else 503)
