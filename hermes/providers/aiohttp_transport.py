"""An httpx2 transport over one aiohttp session: the LLM SDKs' client with a cheaper HTTP stack.

The SDKs keep their own request building, headers and status handling; only bytes travel differently.
Unlike the SDKs' stock aiohttp client, each aiohttp error becomes the httpx2 error that says the same:
refused is not a time-out, and a cut body is not a clean end.
"""

from __future__ import annotations

import asyncio
import functools
import io
import math
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import aiohttp
import httpx2
from aiohttp import hdrs
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict
from yarl import URL

PIECEWISE = 64 * 1024
"""Bytes of a request beyond which it is written piece by piece, so that the loop turns in between."""

ERROR_LIMIT = 256 * 1024
"""Bytes of an error's body that are read; the SDKs would read an endless one."""

DISTRUST_SECONDS = 600.0
"""How long no connection is kept after a server closed a kept one under a request."""


@contextmanager
def _as_httpx2_errors(request: httpx2.Request, *, answered: bool) -> Iterator[None]:
    """Raises the httpx2 error that matches an aiohttp one, with the original as its cause."""
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise translated(error, request, answered) from error


def translated(error: Exception, request: httpx2.Request, answered: bool) -> httpx2.TransportError:
    """The httpx2 error that says what ``error`` says; ``answered``: the answer's head had come."""
    text = str(error) or type(error).__name__
    match error:
        case aiohttp.ConnectionTimeoutError():
            return httpx2.ConnectTimeout(text, request=request)
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return httpx2.ReadTimeout(text, request=request)
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return httpx2.ProxyError(text, request=request)
        case aiohttp.ClientConnectorError() | aiohttp.ClientSSLError():
            return httpx2.ConnectError(text, request=request)
        case aiohttp.InvalidURL():
            return httpx2.UnsupportedProtocol(text, request=request)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return httpx2.RemoteProtocolError(text, request=request)
        case aiohttp.ClientError() | OSError():
            return httpx2.ReadError(text, request=request)
        case _:
            kind = httpx2.RemoteProtocolError if answered else httpx2.LocalProtocolError
            return kind(text, request=request)


def _was_closing(error: aiohttp.ClientError) -> bool:
    """Whether the connection was closed before the request was written to it."""
    found = aiohttp.ClientConnectionResetError
    return isinstance(error, found) or isinstance(error.__cause__, found)


def _payload(raw: bytes) -> bytes | io.BytesIO | None:
    if len(raw) > PIECEWISE:
        return io.BytesIO(raw)
    return raw or None


class _Body(httpx2.AsyncByteStream):
    """The body of one answer; closing it before its end closes the connection at once."""

    def __init__(
        self, response: aiohttp.ClientResponse, request: httpx2.Request, keep: Callable[[], bool]
    ) -> None:
        self._response = response
        self._request = request
        self._keep = keep

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = ERROR_LIMIT if self._response.status >= 400 else math.inf
        with _as_httpx2_errors(self._request, answered=True):
            while left > 0 and (chunk := await self._response.content.readany()):
                yield chunk
                left -= len(chunk)

    async def aclose(self) -> None:
        if self._response.content.at_eof() and self._keep():
            self._response.release()
        else:
            self._response.close()


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends httpx2 requests through one aiohttp session, opened at the first request.

    ``connections`` bounds open connections (0 = no bound). ``resolver`` does the DNS look-ups;
    without one aiohttp's own is used, which runs in asyncio's default executor.
    Raises httpx2.TransportError and its children only.
    """

    def __init__(
        self, *, connections: int = 0, resolver: AbstractResolver | None = None, proxy: str | None = None
    ) -> None:
        self._connections = connections
        self._resolver = resolver
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._distrusted_until = -math.inf

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends ``request`` and returns when the answer's headers are there."""
        if self._closed:
            raise httpx2.LocalProtocolError("the transport is closed", request=request)
        session = self._session or self._open()
        limits = request.extensions.get("timeout") or {}
        headers = CIMultiDict((name, value) for name, value in request.headers.multi_items())
        timeout = aiohttp.ClientTimeout(
            total=None, connect=limits.get("connect"), sock_read=limits.get("read"), ceil_threshold=math.inf
        )
        raw = await request.aread()

        async def send() -> aiohttp.ClientResponse:
            return await session.request(
                request.method, URL(str(request.url), encoded=True), data=_payload(raw), headers=headers,
                allow_redirects=False, proxy=self._proxy, timeout=timeout,
            )  # fmt: skip

        with _as_httpx2_errors(request, answered=False):
            response = await self._over_a_live_connection(send, repeatable=len(raw) <= PIECEWISE)
        body = _Body(response, request, self._keeps)
        return httpx2.Response(response.status, headers=response.raw_headers, stream=body)

    async def _over_a_live_connection(
        self, send: Callable[[], Awaitable[aiohttp.ClientResponse]], *, repeatable: bool
    ) -> aiohttp.ClientResponse:
        """``send``, once more where the kept connection was found closed before a byte was written.

        Some servers (llama.cpp) close after each answer without saying so: who asks again at once meets a
        connection that is just being closed. Then none is kept for a while.
        """
        try:
            return await send()
        except (aiohttp.ClientOSError, aiohttp.ClientConnectionResetError) as error:
            if not _was_closing(error):
                raise
            self._distrust()
            if not repeatable:
                raise
        except aiohttp.ServerDisconnectedError:
            self._distrust()
            raise
        return await send()

    def _distrust(self) -> None:
        self._distrusted_until = asyncio.get_running_loop().time() + DISTRUST_SECONDS

    def _keeps(self) -> bool:
        return asyncio.get_running_loop().time() >= self._distrusted_until

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=self._connections, resolver=self._resolver, ssl=trust())
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=(hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE),
        )
        return self._session

    async def aclose(self) -> None:
        """Closes all connections. Idempotent."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def has_certificates(paths: ssl.DefaultVerifyPaths) -> bool:
    """True when the system keeps a store of certificates (a slim container may have none)."""
    return paths.cafile is not None or bool(paths.capath and os.listdir(paths.capath))


@functools.cache
def trust() -> ssl.SSLContext | Literal[True]:
    """What TLS is checked against: aiohttp's own context, which holds the system's store and was loaded
    with it, or certifi's where the system has none."""
    if has_certificates(ssl.get_default_verify_paths()):
        return True
    import certifi

    context = ssl.create_default_context(cafile=certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context
