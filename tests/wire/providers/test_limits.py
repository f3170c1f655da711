"""The time limits of a call, and the ways a connection cannot be made: each a fault of its own."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.ports import Provider
from hermes.core.transcript import FinishReason
from hermes.providers.anthropic import create as anthropic_kind
from hermes.providers.network import Network
from hermes.providers.openai import create as openai_kind
from tests.wire.providers.dialects import DIALECTS, Dialect, Settings, ask
from tests.wire.providers.upstream import Act, Repeat, Script, Upstream, head, part

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)]


async def failure_of(provider: Provider) -> FailureFacts:
    try:
        with pytest.raises(ProviderFailure) as caught:
            await provider.complete(ask(), lambda text: None)
    finally:
        await provider.aclose()
    return caught.value.facts


async def fails(dialect: Dialect, script: Script, **settings: float) -> FailureFacts:
    async with Upstream(script) as upstream:
        return await failure_of(dialect.provider(upstream.url, **settings))


async def test_a_server_that_never_answers(dialect: Dialect) -> None:
    facts = await fails(dialect, [Act.HANG], first_byte_timeout=0.1)
    assert (facts.kind, facts.phase) == (FaultKind.FIRST_BYTE_TIMEOUT, Phase.FIRST_BYTE)
    assert facts.status is None


async def test_headers_and_keepalives_are_no_first_byte(dialect: Dialect) -> None:
    script = [head(), Repeat(part(dialect.ping()), 0.02)]
    facts = await fails(dialect, script, first_byte_timeout=0.2, stall_timeout=0.05)
    assert (facts.kind, facts.phase) == (FaultKind.FIRST_BYTE_TIMEOUT, Phase.FIRST_BYTE)
    assert not facts.tokens_seen


async def test_an_answer_that_stops_moving_is_stalled_whatever_keeps_it_alive(dialect: Dialect) -> None:
    script = [head(), part(dialect.begin()), part(dialect.text("Hel")), Repeat(part(dialect.ping()), 0.02)]
    facts = await fails(dialect, script, stall_timeout=0.2)
    assert (facts.kind, facts.phase, facts.tokens_seen) == (FaultKind.STALLED, Phase.STREAM, True)


async def test_silence_after_the_opening_is_a_stall(dialect: Dialect) -> None:
    facts = await fails(dialect, [head(), part(dialect.begin()), Act.HANG], stall_timeout=0.1)
    assert (facts.kind, facts.tokens_seen) == (FaultKind.STALLED, False)


async def test_reasoning_is_progress_and_ends_at_the_total_limit(dialect: Dialect) -> None:
    script = [head(), part(dialect.begin()), Repeat(part(dialect.reasoning("hm ")), 0.02)]
    facts = await fails(dialect, script, stall_timeout=0.2, total_timeout=0.6)
    assert (facts.kind, facts.tokens_seen) == (FaultKind.TOTAL_TIMEOUT, True)


async def test_an_error_whose_body_never_comes_ends_at_a_limit(dialect: Dialect) -> None:
    error = b"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    facts = await fails(dialect, [error, Act.HANG], first_byte_timeout=0.1)
    assert facts.kind is FaultKind.FIRST_BYTE_TIMEOUT


@pytest.mark.parametrize("last", [Act.HANG, Act.RESET, Act.CLOSE])
async def test_a_finished_answer_needs_no_clean_end(dialect: Dialect, last: Act) -> None:
    events = (dialect.begin(), dialect.text("hello"), dialect.finish(), dialect.end())
    async with Upstream([head(), part("".join(events)), last]) as upstream:
        provider = dialect.provider(upstream.url, stall_timeout=60.0)
        reply = await provider.complete(ask(), lambda text: None)
        await provider.aclose()
    assert (reply.text, reply.finish) == ("hello", FinishReason.STOP)


async def test_a_finished_answer_without_terminator_is_complete(dialect: Dialect) -> None:
    events = (dialect.begin(), dialect.text("hello"), dialect.finish())
    async with Upstream([head(), part("".join(events)), Act.CLOSE]) as upstream:
        provider = dialect.provider(upstream.url)
        reply = await provider.complete(ask(), lambda text: None)
        await provider.aclose()
    assert reply.text == "hello"
    assert reply.usage.output_tokens == 3


async def test_a_refused_connection_is_no_time_out(dialect: Dialect) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        provider = dialect.provider(f"http://127.0.0.1:{held.getsockname()[1]}")
        facts = await failure_of(provider)
    assert (facts.kind, facts.phase) == (FaultKind.REFUSED, Phase.CONNECT)
    assert "ConnectionRefusedError" in facts.causes


class Resolver(AbstractResolver):
    """Knows no name, or never answers."""

    def __init__(self, hangs: bool) -> None:
        self._hangs = hangs

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        if self._hangs:
            await asyncio.Event().wait()
        raise OSError(None, "no such name")

    async def close(self) -> None:
        pass


def unreachable(dialect: Dialect, hangs: bool, **settings: Any) -> Provider:
    network = Network(resolver=Resolver(hangs))
    config = Settings("http://model.invalid/v1", **settings)
    kind = openai_kind if dialect.name == "openai" else anthropic_kind
    return kind.create("main", config, api_key="", network=network)


async def test_a_name_that_nobody_knows(dialect: Dialect) -> None:
    facts = await failure_of(unreachable(dialect, hangs=False))
    assert (facts.kind, facts.phase) == (FaultKind.DNS, Phase.CONNECT)


async def test_a_look_up_that_hangs_is_a_connect_time_out(dialect: Dialect) -> None:
    facts = await failure_of(unreachable(dialect, hangs=True, connect_timeout=0.1))
    assert (facts.kind, facts.phase) == (FaultKind.CONNECT_TIMEOUT, Phase.CONNECT)


def _self_signed(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "server.pem").write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context


async def test_a_certificate_that_nobody_vouches_for(dialect: Dialect, tmp_path: Path) -> None:
    tls = _self_signed(tmp_path)
    async with await asyncio.start_server(_greets, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        facts = await failure_of(dialect.provider(f"https://127.0.0.1:{port}"))
    assert (facts.kind, facts.phase) == (FaultKind.CERTIFICATE, Phase.CONNECT)
    assert "self-signed" in facts.message


async def _greets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 ready\r\n")
    writer.close()


async def test_a_plain_server_behind_https_fails_while_connecting(dialect: Dialect) -> None:
    async with await asyncio.start_server(_greets, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        facts = await failure_of(dialect.provider(f"https://127.0.0.1:{port}"))
    assert (facts.kind, facts.phase) == (FaultKind.RESET, Phase.CONNECT)
    assert any("SSL" in cause for cause in facts.causes)
