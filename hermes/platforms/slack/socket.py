"""Socket Mode: the WebSockets over which Slack brings envelopes, and what keeps them honest.

slack_sdk's own client is not used: its ``connect`` never raises and never returns with a bad token, it reconnects for
ever and hides why, and it runs a task for each message, so their order is lost. Here nothing runs by itself: ``take``
reads what has come, answers Slack's pings, and fails when our own ping was not answered in time. What Slack asks for
(a refresh) is done at once, the new socket before the old one ends; every other end is told as a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from hermes.core.errors import PlatformFailure
from hermes.platforms.slack.failures import FailureReader
from hermes.platforms.slack.web_api import WebApi
from hermes.platforms.slack.wire import Disconnected

SEND_LIMIT = 5.0
SLICE = 0.05  # seconds given to each of two sockets in turn while one takes over from the other
AT_ONCE = 200  # envelopes that one call of ``take`` returns at most
PONGS_MISSED = 2.0
"""So many ping intervals without the answer to a ping are a dead connection."""
TAKEOVER = 60.0  # seconds for which an old socket is still read
FATAL = frozenset({"link_disabled", "too_many_websockets"})


@dataclass(slots=True, eq=False)
class Socket:
    """One WebSocket that Slack has greeted."""

    ws: aiohttp.ClientWebSocketResponse
    opened_at: float = field(default_factory=time.monotonic)
    pinged_at: float | None = None  # the ping that was not answered yet
    next_ping_at: float = 0.0
    ended: bool = False

    async def frame(self, limit: float) -> Mapping[str, Any] | str | None:
        """The next message, ``pong``, or None when nothing came for ``limit`` seconds. Raises Disconnected."""
        try:
            async with asyncio.timeout(limit):
                while True:
                    found = await self._next()
                    if found is not None:
                        return found
        except TimeoutError:
            return None

    async def _next(self) -> Mapping[str, Any] | str | None:
        frame = await self.ws.receive()
        match frame.type:
            case aiohttp.WSMsgType.TEXT:
                try:
                    found = json.loads(frame.data)
                except (ValueError, RecursionError):
                    return None
                return found if isinstance(found, dict) else None
            case aiohttp.WSMsgType.PING:
                await self.send(self.ws.pong(frame.data))
                return None
            case aiohttp.WSMsgType.PONG:
                self.pinged_at = None
                return "pong"
            case aiohttp.WSMsgType.CLOSE | aiohttp.WSMsgType.CLOSING | aiohttp.WSMsgType.CLOSED:
                self.ended = True
                raise Disconnected(f"connection lost: closed by Slack ({self.ws.close_code})")
            case aiohttp.WSMsgType.ERROR:
                self.ended = True
                raise Disconnected(f"connection lost: {type(frame.data).__name__}")
            case _:
                return None

    async def beat(self, interval: float) -> None:
        """Pings when it is time. Raises Disconnected when the last ping was not answered."""
        now = time.monotonic()
        if self.pinged_at is not None and now - self.pinged_at > PONGS_MISSED * interval:
            raise Disconnected(f"connection lost: no answer to a ping for {now - self.pinged_at:.1f} s")
        if self.pinged_at is None and now >= self.next_ping_at:
            self.pinged_at, self.next_ping_at = now, now + interval
            await self.send(self.ws.ping(b"hermes"))

    async def send(self, sending: Any) -> None:
        """Raises Disconnected when it cannot be sent in time."""
        try:
            async with asyncio.timeout(SEND_LIMIT):
                await sending
        except (TimeoutError, ConnectionError, aiohttp.ClientError, RuntimeError):
            self.ended = True
            raise Disconnected("connection lost: nothing can be sent") from None

    async def close(self) -> None:
        """Ends the connection, without waiting long for Slack to agree."""
        self.ended = True
        await self.ws.close()


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """What Slack brought, and the socket on which it wants to hear that we have it."""

    id: str
    kind: str
    payload: Any
    socket: Socket


class SocketMode:
    """``app_token`` opens sockets. ``connections``: how many Slack counts for this app; ``opened``: how often a socket
    was opened that had to bridge a gap (a refresh does not)."""

    def __init__(
        self, api: WebApi, app_token: str, failures: FailureReader, *, ping_interval: float, open_limit: float
    ) -> None:
        self._api = api
        self._app_token = app_token
        self._failures = failures
        self._ping_interval = ping_interval
        self._open_limit = open_limit
        self._current: Socket | None = None
        self._old: Socket | None = None
        self._queue: deque[Envelope] = deque()
        self.connections = 0
        self.opened = 0

    async def open(self) -> None:
        """A socket that Slack has greeted. Raises PlatformFailure."""
        self._current = await self._failures.guard("Socket Mode", self._greeted(), self._open_limit)
        self.opened += 1

    async def take(self, *, wait: bool) -> list[Envelope]:
        """What has come, in order; empty when an answered ping proved that nothing has. Raises PlatformFailure."""
        if self._current is None:
            await self.open()
            return []
        try:
            await self._failures.guard("Socket Mode", self._read(wait=wait), None)
        except PlatformFailure:
            if not self._queue:
                await self.drop()
                raise
        return [self._queue.popleft() for _ in range(min(AT_ONCE, len(self._queue)))]

    async def acknowledge(self, envelopes: list[Envelope]) -> None:
        """Tells Slack that these are on disk. On a socket that has ended nothing is told: they come again."""
        for one in envelopes:
            if not one.socket.ended:
                told = json.dumps({"envelope_id": one.id})
                try:
                    await one.socket.send(one.socket.ws.send_str(told))
                except Disconnected:
                    continue  # the next ``take`` finds it too, and says so

    async def drop(self) -> None:
        """Both sockets end; what came on them and was not taken comes again."""
        sockets = [s for s in (self._current, self._old) if s is not None]
        self._current = self._old = None
        self._queue.clear()
        for socket in sockets:
            await socket.close()

    # ---- one socket -------------------------------------------------------------------------------

    async def _greeted(self) -> Socket:
        answer, _ = await self._api.call("apps.connections.open", form={"token": self._app_token})
        address = answer.get("url")
        if not isinstance(address, str):
            raise Disconnected("apps.connections.open named no address")
        async with contextlib.AsyncExitStack() as unless_greeted:
            socket = Socket(await self._api.socket(address))
            unless_greeted.push_async_callback(socket.close)
            frame: object = {}
            while not isinstance(frame, Mapping) or frame.get("type") != "hello":
                frame = await socket.frame(self._open_limit)
                if frame is None:
                    raise Disconnected("connection lost: Slack does not greet us")
                if isinstance(frame, Mapping) and frame.get("type") == "disconnect":
                    raise Disconnected(str(frame.get("reason")))
            count = frame.get("num_connections")
            self.connections = count if isinstance(count, int) else 0
            unless_greeted.pop_all()
        return socket

    async def _read(self, *, wait: bool) -> None:
        """Until something has come, or a ping was answered; with ``wait`` false only what is there."""
        while True:
            if self._old is not None:
                await self._read_old()
            current = self._current
            assert current is not None
            limit = 0.0 if self._queue or not wait else SLICE if self._old is not None else self._until_next(current)
            frame = await current.frame(limit)
            if isinstance(frame, Mapping):
                await self._frame(frame, current)
                if len(self._queue) < AT_ONCE:
                    continue
            await current.beat(self._ping_interval)
            if self._queue or not wait or frame == "pong":
                return

    def _until_next(self, socket: Socket) -> float:
        """When the next beat is due."""
        now = time.monotonic()
        if socket.pinged_at is not None:
            return max(0.01, socket.pinged_at + PONGS_MISSED * self._ping_interval - now + 0.01)
        return max(0.01, socket.next_ping_at - now)

    async def _read_old(self) -> None:
        """A socket that Slack is about to close still brings what was on its way."""
        old = self._old
        assert old is not None
        try:
            while len(self._queue) < AT_ONCE:
                frame = await old.frame(SLICE)
                if not isinstance(frame, Mapping):
                    break
                await self._frame(frame, old)
        except Disconnected as ended:
            if ended.reason in FATAL:
                raise
        if old.ended or time.monotonic() - old.opened_at > TAKEOVER:
            self._old = None
            await old.close()

    async def _frame(self, frame: Mapping[str, Any], socket: Socket) -> None:
        name = frame.get("envelope_id")
        if isinstance(name, str):
            self._queue.append(Envelope(name, str(frame.get("type")), frame.get("payload"), socket))
        elif frame.get("type") == "disconnect":
            reason = str(frame.get("reason"))
            if reason in FATAL:
                raise Disconnected(reason)
            if socket is self._current:
                await self._take_over(socket)

    async def _take_over(self, old: Socket) -> None:
        """A new socket before the old one is closed. If there is none, the old one's end tells why."""
        try:
            fresh = await self._failures.guard("Socket Mode", self._greeted(), self._open_limit)
        except PlatformFailure:
            return
        if self._old is not None:
            await self._old.close()
        self._current, self._old = fresh, old
        old.opened_at = time.monotonic()
