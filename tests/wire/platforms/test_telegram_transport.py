"""The transport's edge: what counts as "no byte left", and that no text of ours holds the token."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from hermes.core.delivery import DeliveryFacts, DeliveryReason, Sent
from hermes.core.errors import PlatformFailure
from hermes.platforms.telegram.adapter import TelegramPlatform
from hermes.platforms.telegram.failures import FailureReader
from hermes.platforms.telegram.transport import without_url
from hermes.policy.delivery import classify_delivery
from hermes.simulators.telegram import TelegramSimulator

pytestmark = pytest.mark.wire

TOKEN = "424242:AAbbCCddEEffGGhhIIjj"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """A server that says ``answer`` to every request and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def facts_of(base_url: str, **more: str) -> DeliveryFacts:
    platform = TelegramPlatform(TOKEN, base_url=base_url, connect_timeout=2, read_timeout=2, **more)  # type: ignore[arg-type]
    with pytest.raises(PlatformFailure) as caught:
        await platform.connect()
    await platform.aclose()
    assert TOKEN not in repr(caught.value.facts)
    assert not platform.failures.unmapped
    return caught.value.facts


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"", None),
        (b"nonsense\r\n\r\n", None),
        (OK + b'Content-Length: 100\r\n\r\n{"ok": tr', None),
        (OK + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"ok"', None),
        (OK + b"Content-Length: 2\r\n\r\n\xff\xfe", 200),
        (OK + b"Content-Length: 4\r\n\r\nnull", 200),
        (OK + b'Content-Length: 25\r\n\r\n{"ok":true,"result":true}', 200),
    ],
    ids=["hung up", "no HTTP", "cut body", "cut chunk", "no UTF-8", "null", "no user"],
)
async def test_an_answer_that_is_none_may_follow_a_call_that_was_carried_out(
    answer: bytes, status: int | None
) -> None:
    async with answering(answer) as url:
        facts = await facts_of(url)
    assert (facts.sent, facts.status) == (Sent.MAYBE_SENT, status)


async def test_a_failed_tls_handshake_is_not_sent(sim: TelegramSimulator) -> None:
    facts = await facts_of(sim.url.replace("http:", "https:"))
    assert (facts.sent, facts.code) == (Sent.NOT_SENT, "tls")


async def test_a_proxy_that_is_gone_or_refuses_is_not_sent(sim: TelegramSimulator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    gone = await facts_of(sim.url, proxy=f"http://127.0.0.1:{port}")
    assert (gone.sent, gone.code) == (Sent.NOT_SENT, "refused")
    async with answering(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n") as url:
        refused = await facts_of("https://api.invalid", proxy=url)
    assert (refused.sent, refused.code) == (Sent.NOT_SENT, "proxy")


@pytest.mark.parametrize("address", ["ftp://example.org", "nonsense", "http://[::1"])
async def test_an_address_that_is_none_is_not_sent(address: str) -> None:
    facts = await facts_of(address)
    assert facts.sent is Sent.NOT_SENT


def test_a_certificate_that_cannot_be_verified_is_a_matter_of_settings() -> None:
    key = ConnectionKey("api.example.org", 443, True, True, None, None, None)
    refused = ssl.SSLCertVerificationError("self-signed certificate")
    error = without_url(aiohttp.ClientConnectorCertificateError(key, refused))
    facts = FailureReader("telegram", TOKEN).read(error)
    assert (facts.sent, facts.code) == (Sent.NOT_SENT, "certificate")
    assert classify_delivery(facts).reason is DeliveryReason.FATAL_CONFIG
