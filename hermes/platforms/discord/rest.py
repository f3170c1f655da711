"""Discord's REST API, one attempt a call, over aiohttp.

discord.py's own client repeats a 429 up to five times and a 5xx for 25 s inside one call, and waits without a
bound; its retries cannot be switched off. Retrying, pacing and remembering bans are the gateway's (R19, R20), so
requests are made here and only the gateway protocol is discord.py's.

What a limit's headers announce is kept: a call that would certainly be refused is refused here, without being
made, in the same words (a request during a ban makes the ban longer).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver

from hermes.platforms.wire import abrupt_socket

MAX_ANSWER_BYTES = 32 * 2**20
KEEP_ALIVE_SECONDS = 15.0  # shorter than servers keep it: a reused dead connection is an ambiguous send
SOCKET_CLOSE_SECONDS = 1.0
KEPT_LIMITS = 4096
AGENT = "DiscordBot (https://github.com/Rapptz/discord.py, hermes) aiohttp"


class Refused(Exception):
    """An answer that is no success. ``body`` is its JSON, or its text; ``headers`` have lower-case names."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}")
        self.status, self.body, self.headers = status, body, headers


class Closed(Exception):
    """The client was closed: nothing was sent."""


class TooLarge(Exception):
    """A file with more bytes than were wanted."""


@dataclass(slots=True)
class Limits:
    """Until when (monotonic seconds) a route in a channel, or everything, is closed to us."""

    everything: float = 0.0
    routes: dict[tuple[str, str], float] = field(default_factory=dict)

    def left(self, route: tuple[str, str], now: float) -> float:
        """Seconds to wait before a call."""
        return max(0.0, self.everything - now, self.routes.get(route, 0.0) - now)

    def learn(
        self, route: tuple[str, str], status: int, headers: Mapping[str, str], body: object, now: float
    ) -> None:
        """Takes note of an answer. Source: Discord's documentation, "Rate Limits"."""
        after = _number(headers.get("x-ratelimit-reset-after"))
        if status == 429:
            told = body.get("retry_after") if isinstance(body, dict) else headers.get("retry-after")
            wait = _number(told) or 1.0
            if isinstance(body, dict) and body.get("global") is True:
                self.everything = max(self.everything, now + wait)
            else:
                self._close(route, now + wait, now)
        elif headers.get("x-ratelimit-remaining") == "0" and after is not None:
            self._close(route, now + after, now)

    def _close(self, route: tuple[str, str], until: float, now: float) -> None:
        self.routes[route] = until
        if len(self.routes) > KEPT_LIMITS:
            self.routes = {name: end for name, end in self.routes.items() if end > now}


class Rest:
    """One pool of connections. Times in seconds."""

    def __init__(
        self,
        token: str,
        address: str,
        *,
        connections: int,
        connect_timeout: float,
        read_timeout: float,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
    ) -> None:
        self._head = {"Authorization": f"Bot {token}", "User-Agent": AGENT}
        self._address = address
        self._connections = connections
        self._resolver = resolver
        self._proxy = proxy
        self._timeouts = aiohttp.ClientTimeout(
            total=None, connect=2 * connect_timeout, sock_connect=connect_timeout, sock_read=read_timeout
        )
        self._session: aiohttp.ClientSession | None = None
        self.limits = Limits()

    async def open(self) -> None:
        """Opens the pool; no connection is made yet."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._connections, keepalive_timeout=KEEP_ALIVE_SECONDS, resolver=self._resolver,
                socket_factory=abrupt_socket,
            )  # fmt: skip
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), proxy=self._proxy, timeout=self._timeouts
            )

    async def close(self) -> None:
        """Closes every connection. Idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        route: tuple[str, str] = ("", ""),
        authorised: bool = True,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> Any:
        """The answer's JSON, None for an empty one. Raises Refused, Closed or an exception of aiohttp's."""
        now = time.monotonic()
        wait = self.limits.left(route, now)
        if wait > 0:
            everywhere = self.limits.everything > now
            told = {"message": "You are being rate limited.", "code": 0, "retry_after": wait, "global": everywhere}
            raise Refused(429, told, {"x-ratelimit-scope": "global" if everywhere else "user"})
        head = self._head if authorised else {"User-Agent": AGENT}
        async with self._open_session().request(
            method, self._address + path, params=query, headers=head, allow_redirects=False, **_content(body, files)
        ) as response:
            payload = await _read(response, MAX_ANSWER_BYTES)
            headers = {name.lower(): value for name, value in response.headers.items()}
        found = _parsed(payload)
        self.limits.learn(route, response.status, headers, found, time.monotonic())
        if not 200 <= response.status <= 299:
            raise Refused(response.status, found, headers)
        return found

    async def fetch(self, address: str, limit: int) -> bytes:
        """A file, without our token. Raises Refused, TooLarge, Closed or an exception of aiohttp's."""
        async with self._open_session().get(address, headers={"User-Agent": AGENT}) as response:
            if response.status != 200:
                raise Refused(response.status, "the file was not given", {})
            return await _read(response, limit)

    async def socket(self, address: str) -> aiohttp.ClientWebSocketResponse:
        """An open WebSocket. Raises Closed or an exception of aiohttp's."""
        return await self._open_session().ws_connect(
            address,
            timeout=aiohttp.ClientWSTimeout(ws_close=SOCKET_CLOSE_SECONDS),
            autoclose=False,
            max_msg_size=0,
            compress=0,
            headers={"User-Agent": AGENT},
        )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            raise Closed
        return self._session


def segment(text: str) -> str:
    """``text`` as one part of a path."""
    return quote(text, safe="@")


def _content(body: object, files: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    if not files:
        return {} if body is None else {"json": body}
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("payload_json", json.dumps(body), content_type="application/json")
    for at, (name, data) in enumerate(files):
        form.add_field(f"files[{at}]", data, filename=name, content_type="application/octet-stream")
    return {"data": form}


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            response.close()
            raise TooLarge
        chunks.append(chunk)
    return b"".join(chunks)


def _parsed(payload: bytes) -> Any:
    """JSON, or the text of what is none; None for nothing."""
    if not payload:
        return None
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return payload[:2000].decode("utf-8", "replace")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
