"""What an aiohttp exception says about a request: whether its bytes left, in one word and a short sentence.

Shared by the adapters that speak over aiohttp. No text made here holds an address, which may carry a token.
"""

from __future__ import annotations

import errno
import socket
import struct
from dataclasses import dataclass
from typing import Any

import aiohttp

from hermes.core.delivery import Sent


@dataclass(frozen=True, slots=True)
class Broken:
    """``sent`` as R18 wants it told; ``how`` in one word; ``text`` for facts and logs."""

    sent: Sent
    how: str
    text: str


def broken(error: BaseException) -> Broken | None:
    """None for what is no failure of the transport."""
    name = type(error).__name__
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Broken(Sent.NOT_SENT, "connect_timeout", f"{name}: no connection in time")
        case aiohttp.ClientConnectorDNSError():
            return Broken(Sent.NOT_SENT, "dns", f"{name}: getaddrinfo: {os_text(error.os_error)}")
        case aiohttp.ClientConnectorCertificateError():
            return Broken(Sent.NOT_SENT, "certificate", f"{name}: certificate verify failed")
        case aiohttp.ClientSSLError():
            return Broken(Sent.NOT_SENT, "tls", f"{name}: the TLS handshake failed")
        case aiohttp.ClientConnectorError():
            return Broken(Sent.NOT_SENT, "refused", f"{name}: {os_text(error.os_error)}")
        case aiohttp.ClientHttpProxyError():
            return Broken(Sent.NOT_SENT, "proxy", f"{name}: the proxy refused with status {error.status}")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Broken(Sent.NOT_SENT, "address", f"{name}: not an address")
        case aiohttp.WSServerHandshakeError():
            return Broken(Sent.REFUSED, "handshake", f"{name}: the server answered with status {error.status}")
        case TimeoutError():
            return Broken(Sent.MAYBE_SENT, "no_answer", f"{name}: no answer in time")
        case OSError():
            return Broken(Sent.MAYBE_SENT, "cut", f"{name}: connection lost: {os_text(error)}")
        case aiohttp.ClientError():
            return Broken(Sent.MAYBE_SENT, "cut", f"{name}: the connection ended before the answer")
        case _:
            return None


def abrupt_socket(address: tuple[int, int, int, str, Any]) -> socket.socket:
    """For aiohttp's ``socket_factory``: a socket whose close also takes back what is still on its way.

    Without it the kernel goes on repeating a request that we gave up, for minutes: when a black hole opens again the
    platform carries it out after we have looked for it in vain, and it stands there twice.
    """
    made = socket.socket(family=address[0], type=address[1], proto=address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return made


def os_text(error: OSError) -> str:
    """The error's own name and sentence, without what it was about."""
    code = errno.errorcode.get(error.errno or 0)
    return " ".join(part for part in (code, error.strerror) if part) or type(error).__name__
