"""Slack's end of Socket Mode and of the Events API: who is told of what, how often, and when it gives up.

An envelope goes to one of the app's sockets; one that is not acknowledged in time comes again with its number of
attempts, on whichever socket there is then. What nobody hears is a failed attempt like any other.
Source: Slack's documentation, "Using Socket Mode" and "The Events API" ("Error handling").
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import WSMsgType, web

from hermes.simulators.slack_world import APP

__all__ = ["Outbound", "Pending", "Socket"]

MOST_SOCKETS = 10


@dataclass(slots=True, eq=False)
class Socket:
    """One connection of the app."""

    ws: web.WebSocketResponse
    pings: int = 0
    acknowledged: int = 0


@dataclass(slots=True, eq=False)
class Pending:
    """An envelope that nobody acknowledged yet. ``attempt``: how often it was tried before."""

    id: str
    kind: str
    payload: dict[str, Any]
    due: float
    attempt: int = 0
    reason: str = ""
    tries: int = 0


@dataclass(slots=True)
class Outbound:
    """Everything on its way to the app. Times in seconds.

    ``mute``: no ping is answered. ``ghost``: sockets are greeted and told nothing, though Slack counts what it sends
    them as heard. ``deaf``: new sockets are opened and never greeted.
    """

    changed: Callable[[], None]
    ack_timeout: float = 3.0
    retries: tuple[float, ...] = (0.0, 60.0, 300.0)
    close_after: float = 0.3
    mute: bool = False
    ghost: bool = False
    deaf: bool = False
    sockets: list[Socket] = field(default_factory=list)
    pending: deque[Pending] = field(default_factory=deque)
    acknowledged: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    tickets: set[str] = field(default_factory=set)
    request_url: str = ""
    signing_secret: str = ""
    http_statuses: list[int] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _turn: int = 0

    def new_ticket(self) -> str:
        """What makes an address for one socket."""
        ticket = f"ticket-{next(self._numbers)}"
        self.tickets.add(ticket)
        return ticket

    def put(self, kind: str, payload: dict[str, Any]) -> str:
        """Something to tell the app of."""
        name = f"env-{next(self._numbers)}-{int(time.time() * 1000)}"
        self.pending.append(Pending(name, kind, json.loads(json.dumps(payload)), time.monotonic()))
        self.changed()
        return name

    async def deliver_due(self) -> float:
        """Sends what is due; returns the seconds until something is due next."""
        now = time.monotonic()
        for one in list(self.pending):
            if one.due <= now and one in self.pending:
                await self._try(one, now)
        return max(0.005, min((one.due for one in self.pending), default=now + 3600.0) - time.monotonic())

    async def _try(self, one: Pending, now: float) -> None:
        if one.tries > len(self.retries):
            self.pending.remove(one)
            self.lost.append(one.id)
            self.changed()
            return
        one.attempt, one.tries = one.tries, one.tries + 1
        wait = self.retries[one.tries - 1] if one.tries <= len(self.retries) else 0.0
        if not self.sockets:
            one.due, one.reason = now + max(wait, 0.01), "connection_failed"
            return
        one.due = now + self.ack_timeout + wait
        self._turn += 1
        socket = self.sockets[self._turn % len(self.sockets)]
        if self.ghost:
            self.pending.remove(one)
            return
        told: dict[str, Any] = {
            "envelope_id": one.id, "type": one.kind, "payload": one.payload,
            "accepts_response_payload": one.kind == "slash_commands",
        }  # fmt: skip
        if one.kind == "events_api":
            told |= {"retry_attempt": one.attempt, "retry_reason": one.reason if one.attempt else ""}
        one.reason = "timeout"
        await self._send(socket, told)
        self.changed()

    async def post_due(self, session: aiohttp.ClientSession) -> float:
        """The same over HTTP, one request after the other."""
        now = time.monotonic()
        for one in list(self.pending):
            if one.due > now or one not in self.pending:
                continue
            if one.tries > len(self.retries):
                self.pending.remove(one)
                self.lost.append(one.id)
                continue
            one.attempt, one.tries = one.tries, one.tries + 1
            wait = self.retries[one.tries - 1] if one.tries <= len(self.retries) else 0.0
            if await self._post(session, one):
                self.pending.remove(one)
                self.acknowledged.append(one.id)
            else:
                one.due = time.monotonic() + max(wait, 0.05)
            self.changed()
        return max(0.005, min((one.due for one in self.pending), default=now + 3600.0) - time.monotonic())

    async def _post(self, session: aiohttp.ClientSession, one: Pending) -> bool:
        kind = "application/json"
        if one.kind == "events_api":
            body = json.dumps(one.payload)
        else:
            kind = "application/x-www-form-urlencoded"
            form = {"payload": json.dumps(one.payload)} if one.kind == "interactive" else one.payload
            body = urlencode(form)
        headers = {"Content-Type": kind, **self.signature(body)}
        if one.attempt:
            headers |= {"X-Slack-Retry-Num": str(one.attempt), "X-Slack-Retry-Reason": one.reason or "http_error"}
        try:
            async with asyncio.timeout(self.ack_timeout):
                async with session.post(self.request_url, data=body, headers=headers) as answer:
                    self.http_statuses.append(answer.status)
                    one.reason = "http_error"
                    return answer.status == 200
        except TimeoutError:
            one.reason = "http_timeout"
        except (aiohttp.ClientError, OSError):
            one.reason = "connection_failed"
        return False

    def signature(self, body: str, at: float | None = None) -> dict[str, str]:
        """The headers that prove a request to be Slack's."""
        stamp = str(int(time.time() if at is None else at))
        digest = hmac.new(self.signing_secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One socket from its greeting to its end."""
        if request.query.get("ticket") not in self.tickets:
            return web.Response(status=403, text="invalid ticket")
        self.tickets.discard(str(request.query.get("ticket")))
        ws = web.WebSocketResponse(autoping=False, max_msg_size=0)
        await ws.prepare(request)
        socket = Socket(ws)
        if len(self.sockets) >= MOST_SOCKETS:
            await self._send(socket, {"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}})
            await ws.close()
            return ws
        if not self.deaf:
            self.sockets.append(socket)
            count = len(self.sockets)
            debug = {"host": "applink-sim", "build_number": 1, "approximate_connection_time": 18060}
            hello = {"type": "hello", "num_connections": count, "debug_info": debug, "connection_info": {"app_id": APP}}
            await self._send(socket, hello)
            self.changed()
        try:
            await self._listen(socket)
        finally:
            if socket in self.sockets:
                self.sockets.remove(socket)
            self.changed()
        return ws

    async def _listen(self, socket: Socket) -> None:
        async for frame in socket.ws:
            if frame.type is WSMsgType.PING:
                socket.pings += 1
                if not self.mute:
                    await socket.ws.pong(frame.data)
            elif frame.type is WSMsgType.TEXT:
                self._heard(socket, json.loads(frame.data))
            self.changed()

    def _heard(self, socket: Socket, told: dict[str, Any]) -> None:
        name = told.get("envelope_id")
        for one in list(self.pending):
            if one.id == name:
                self.pending.remove(one)
                self.acknowledged.append(one.id)
                socket.acknowledged += 1

    async def disconnect_all(self, reason: str, hold: Callable[[float], Awaitable[None]]) -> None:
        """Announces an end on every socket and closes it a moment later; a warning only announces."""
        sockets = list(self.sockets)
        for socket in sockets:
            await self._send(socket, {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-sim"}})
        await hold(self.close_after)
        for socket in sockets:
            if socket in self.sockets:
                self.sockets.remove(socket)
            await socket.ws.close()
        self.changed()

    @staticmethod
    async def _send(socket: Socket, told: dict[str, Any]) -> None:
        try:
            await socket.ws.send_str(json.dumps(told))
        except (ConnectionError, RuntimeError):
            return  # it ended a moment ago: the envelope comes again
