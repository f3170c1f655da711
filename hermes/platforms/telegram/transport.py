"""How requests reach the Bot API: python-telegram-bot's ``Bot`` over aiohttp instead of httpx.

``AiohttpRequest`` is a ``telegram.request.BaseRequest``; it costs about a quarter of the CPU of the
default one and tells *what was not sent* from *what may have been sent*, which R18 turns on:

- ``NotSent``: refused, DNS, TLS, connect time-out, pool time-out, closed session. No byte of the
  request left, so it may be sent again.
- ``NoAnswer``: written, then no answer within the read time-out. It may have been carried out.
- ``CutOff``: the connection went away after the request may have been written.

The Bot API has its token in the URL. No text made here contains a URL, and aiohttp's own texts
(``Connection timeout to host http://…/bot<token>/…``) never become part of ours.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import math
import ssl
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from telegram import Bot
from telegram._utils.defaultvalue import DefaultValue
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData
from yarl import URL

MAX_ANSWER_BYTES = 64 * 1024 * 1024
KEEP_ALIVE_SECONDS = 15.0  # shorter than servers keep it: a reused dead connection is an ambiguous send
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": BaseRequest.USER_AGENT}
_PLAIN = {"User-Agent": BaseRequest.USER_AGENT}
_SHOWN = 300  # characters of a foreign text that may go on into facts and logs
_SKIPPED_HEADERS = ("Accept", "Accept-Encoding")


class NotSent(NetworkError):
    """No byte of the request left this machine; ``how`` is the kind in one word."""

    def __init__(self, how: str, text: str) -> None:
        super().__init__(text)
        self.how = how


class NoAnswer(TimedOut):
    """The request was written and not answered in time: it may have been carried out."""


class CutOff(NetworkError):
    """The connection ended after the request may have been written."""


class Answered(NetworkError):
    """An answer with a status that says "no" and no error class of PTB's own: 429 bare, 413, 5xx."""

    def __init__(self, status: int, text: str, retry_after: float | None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after


class AiohttpRequest(BaseRequest):
    """One keep-alive pool. Time-outs in seconds; ``connections`` bounds the pool.

    ``resolver`` looks names up; without one aiohttp's own is used, which occupies the loop's default
    executor. ``proxy`` is the URL of an HTTP proxy. ``ssl_context`` replaces the default trust settings.
    """

    __slots__ = ("_connections", "_proxy", "_resolver", "_session", "_ssl", "_timeouts", "_urls")

    def __init__(
        self,
        *,
        connections: int,
        connect_timeout: float = 10.0,
        pool_timeout: float = 5.0,
        read_timeout: float = 20.0,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._connections = connections
        self._resolver = resolver
        self._proxy = proxy
        self._ssl: ssl.SSLContext | bool = ssl_context if ssl_context is not None else True
        self._timeouts = aiohttp.ClientTimeout(
            total=None,
            connect=pool_timeout + connect_timeout,
            sock_connect=connect_timeout,
            sock_read=read_timeout,
        )
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}

    @property
    def read_timeout(self) -> float | None:
        """The default read time-out in seconds."""
        return self._timeouts.sock_read

    async def initialize(self) -> None:
        """Opens the pool; no connection is made yet."""
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(
                limit=self._connections,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                resolver=self._resolver,
                ssl=self._ssl,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._proxy,
                timeout=self._timeouts,
                skip_auto_headers=_SKIPPED_HEADERS,
            )

    async def shutdown(self) -> None:
        """Closes every connection of the pool. Idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """One request. Raises NotSent, NoAnswer or CutOff when there is no whole answer."""
        if self._session is None or self._session.closed:
            raise NotSent("closed", "the connection pool is closed")
        body, headers = _body(request_data)
        timeouts = self._timeouts
        if not isinstance(read_timeout, DefaultValue) and read_timeout != timeouts.sock_read:
            timeouts = aiohttp.ClientTimeout(
                total=None,
                connect=timeouts.connect,
                sock_connect=timeouts.sock_connect,
                sock_read=read_timeout,
            )
        try:
            async with self._session.request(
                method,
                self._url(url, method),
                data=body,
                headers=headers,
                timeout=timeouts,
                allow_redirects=False,
            ) as response:
                payload = await _read(response)
                status, header = response.status, response.headers.get("Retry-After")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise without_url(error) from None
        refusal = _refusal(status, payload, header)
        if refusal is not None:
            raise refusal
        return status, payload

    def _url(self, text: str, method: str) -> URL:
        """API addresses are few and used again and again; file addresses are each used once."""
        if method != "POST":
            return URL(text)
        url = self._urls.get(text)
        if url is None:
            url = self._urls[text] = URL(text)
        return url

    @staticmethod
    def parse_json_payload(payload: bytes) -> Any:
        """The answer as JSON object. Raises TelegramError; logs nothing of what was received."""
        try:
            answer = json.loads(payload.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise TelegramError("Invalid server response") from None
        if "parameters" in answer:
            migrated = _number(answer["parameters"], "migrate_to_chat_id")
            answer["parameters"] = {} if migrated is None else {"migrate_to_chat_id": migrated}
        return answer


class ApiBot(Bot):
    """``telegram.Bot`` with one more method: the raw answer of any API method.

    ``Bot.do_api_request`` does the same for methods that Bot has no name for; for those it has, it
    warns at each call, and it turns a 401 into "endpoint not found" once the bot is initialised.
    """

    __slots__ = ()
    _LOGGER = logging.getLogger("hermes.platforms.telegram.sdk")
    _LOGGER.setLevel(logging.WARNING)  # at DEBUG, Bot logs its address with the token and every text

    async def call(self, endpoint: str, data: dict[str, Any], read_timeout: float | None = None) -> Any:
        """The ``result`` of the answer, as parsed JSON. Raises telegram.error.TelegramError."""
        if read_timeout is None:
            return await self._post(endpoint, data)
        return await self._post(endpoint, data, read_timeout=read_timeout)


def _body(request_data: RequestData | None) -> tuple[Any, dict[str, str]]:
    """What PTB wants to send, as aiohttp takes it: a form, or multipart when there are files."""
    if request_data is None:
        return None, _PLAIN
    if not request_data.contains_files:
        return request_data.url_encoded_parameters().encode("ascii"), _FORM
    form = aiohttp.FormData(quote_fields=False)
    for name, value in request_data.json_parameters.items():
        form.add_field(name, value)
    for name, (filename, content, mime) in request_data.multipart_data.items():
        form.add_field(name, content, filename=filename, content_type=mime)
    return form, _PLAIN


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The whole answer. Raises CutOff when it is larger than any answer of the Bot API may be."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            response.close()
            raise CutOff(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _refusal(status: int, payload: bytes, header: str | None) -> Answered | None:
    """The statuses that PTB turns into a NetworkError without a number, and 429; the others are PTB's.

    429 is ours because PTB's RetryAfter issues a deprecation warning each time it is made or read.
    """
    if 200 <= status <= 299 or status in (400, 401, 403, 404, 409):
        return None
    try:
        answer = json.loads(payload)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    wait = _number(answer.get("parameters"), "retry_after")
    text = str(answer.get("description") or f"HTTP status {status}")[:_SHOWN]
    return Answered(status, text, _seconds(header) if wait is None else float(wait))


def _number(parameters: object, name: str) -> int | None:
    """A whole number out of an error's ``parameters``, None when it is not well-formed."""
    value = parameters.get(name) if isinstance(parameters, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e15:
        return None
    return math.ceil(value)


def _seconds(header: str | None) -> float | None:
    """A Retry-After header that is a plain number of seconds."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None


def without_url(error: Exception) -> TelegramError:
    """The same failure as one of our three classes, in words that hold no address with a token."""
    name = type(error).__name__
    match error:
        case aiohttp.ConnectionTimeoutError():
            return NotSent("connect_timeout", f"{name}: no connection in time")
        case aiohttp.ClientConnectorDNSError():
            return NotSent("dns", f"{name}: {_os_text(error.os_error)}")
        case aiohttp.ClientConnectorCertificateError():
            return NotSent("certificate", f"{name}: certificate verify failed")
        case aiohttp.ClientSSLError():
            return NotSent("tls", f"{name}: the TLS handshake failed")
        case aiohttp.ClientConnectorError():
            return NotSent("refused", f"{name}: {_os_text(error.os_error)}")
        case aiohttp.ClientHttpProxyError():
            return NotSent("proxy", f"{name}: the proxy refused with status {error.status}")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return NotSent("address", f"{name}: the API address is not a URL")
        case TimeoutError():
            return NoAnswer(f"{name}: no answer in time")
        case OSError():
            return CutOff(f"{name}: {_os_text(error)}")
        case aiohttp.ClientError():
            return CutOff(f"{name}: the connection ended before the answer")
        case _:
            return NotSent("request", f"{name}: the request could not be built")


def _os_text(error: OSError) -> str:
    code = errno.errorcode.get(error.errno or 0)
    return " ".join(part for part in (code, error.strerror) if part) or type(error).__name__


async def close_within(request: BaseRequest, limit: float) -> None:
    """Shuts a request object down within ``limit`` seconds, whatever its peer does."""
    try:
        async with asyncio.timeout(limit):
            await request.shutdown()
    except TimeoutError:
        return
