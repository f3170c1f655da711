"""Slack's Web API, one attempt a call: slack_sdk's client with its retries off, over a pool of ours.

slack_sdk opens a session of its own when it is given a closed one, and reads proxies from the environment: neither
may happen here, so a closed client refuses and the proxy is the configuration's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from slack_sdk.web.async_client import AsyncWebClient

from hermes.platforms.slack.wire import Closed, Refused, TooLarge
from hermes.platforms.wire import abrupt_socket

API_ADDRESS = "https://slack.com/api/"
KEEP_ALIVE_SECONDS = 15.0  # shorter than servers keep it: a reused dead connection is an ambiguous send
SOCKET_CLOSE_SECONDS = 1.0
FILE_HOSTS = ("slack.com", "slack-files.com", "slack-edge.com")
"""Only there may the token go with a request for a file."""
logging.getLogger("slack_sdk").setLevel(logging.WARNING)  # at DEBUG it logs what people say


class WebApi:
    """One pool of connections. Times in seconds."""

    def __init__(
        self,
        bot_token: str,
        *,
        base_url: str = "",
        connections: int = 32,
        connect_timeout: float = 10.0,
        read_timeout: float = 30.0,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
    ) -> None:
        self._token = bot_token
        self._address = f"{(base_url or API_ADDRESS).rstrip('/')}/"
        self._connections = connections
        self._resolver = resolver
        self._proxy = proxy
        self._timeouts = aiohttp.ClientTimeout(
            total=None, connect=2 * connect_timeout, sock_connect=connect_timeout, sock_read=read_timeout
        )
        self._session: aiohttp.ClientSession | None = None
        self._client: AsyncWebClient | None = None

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
            self._client = AsyncWebClient(
                token=self._token, base_url=self._address, session=self._session, retry_handlers=[]
            )
            self._client.proxy = self._proxy

    async def close(self) -> None:
        """Closes every connection. Idempotent."""
        session, self._session = self._session, None
        self._client = None
        if session is not None:
            await session.close()

    async def call(
        self, method: str, *, form: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """The answer and its headers. ``form`` or ``body`` (as JSON); a ``token`` in either replaces the bot's.

        Raises Closed and whatever slack_sdk and aiohttp raise.
        """
        client = self._client
        if client is None:
            raise Closed
        if body is not None:
            answer = await client.api_call(method, json=dict(body))
        else:
            headers, given = {}, dict(form or {})
            if "token" in given:
                headers["Authorization"] = f"Bearer {given.pop('token')}"
            answer = await client.api_call(method, data=given, headers=headers)
        data: object = answer.data
        return data if isinstance(data, dict) else {}, answer.headers

    async def fetch(self, address: str, limit: int) -> bytes:
        """A file, with our token if it is Slack's to see. Raises Refused, TooLarge, Closed, aiohttp's exceptions."""
        session = self._open_session()
        if not self._is_slacks(address):
            raise Refused(400, "the file is not kept at Slack", {})
        headers = {"Authorization": f"Bearer {self._token}"}
        async with session.get(address, headers=headers) as response:
            if response.status != 200:
                raise Refused(response.status, "the file was not given", {})
            if str(response.url.path).startswith("/signin") or response.url.host != urlsplit(address).hostname:
                raise Refused(403, "Slack asks to sign in: the app lacks the scope files:read", {})
            return await _read(response, limit)

    async def upload(self, address: str, content: bytes) -> None:
        """The bytes to the address that files.getUploadURLExternal named. Raises like ``fetch``."""
        if not self._is_slacks(address):
            raise Refused(400, "the address for the upload is not Slack's", {})
        async with self._open_session().post(address, data=content) as response:
            if response.status != 200:
                raise Refused(response.status, "the file was not taken", {})

    async def socket(self, address: str) -> aiohttp.ClientWebSocketResponse:
        """An open WebSocket whose pings are ours to answer. Raises Closed or an exception of aiohttp's."""
        return await self._open_session().ws_connect(
            address,
            timeout=aiohttp.ClientWSTimeout(ws_close=SOCKET_CLOSE_SECONDS),
            autoping=False,
            autoclose=False,
            max_msg_size=0,
        )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            raise Closed
        return self._session

    def _is_slacks(self, address: str) -> bool:
        host, ours = urlsplit(address).hostname or "", urlsplit(self._address).hostname
        return host == ours or any(host == known or host.endswith(f".{known}") for known in FILE_HOSTS)


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
