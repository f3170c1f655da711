"""One call through an SDK client, under its time limits; the same for both SDKs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2

from hermes.providers.aiohttp_transport import AiohttpTransport
from hermes.providers.answers import Fold, read_answer
from hermes.providers.clients import Clients
from hermes.providers.facts import CallProgress
from hermes.providers.limits import CallClock, CallLimits, LimitReached
from hermes.providers.network import Network

C = TypeVar("C")


def http_client(network: Network, limits: CallLimits) -> httpx2.AsyncClient:
    """The SDK's ``http_client``; it keeps the connection's limit only, and reads no environment."""
    return httpx2.AsyncClient(
        transport=AiohttpTransport(resolver=network.resolver, proxy=network.proxy),
        timeout=sdk_timeout(limits),
        follow_redirects=True,
        trust_env=False,
    )


def sdk_timeout(limits: CallLimits) -> httpx2.Timeout:
    """What the SDK is told: the connection's limit. The others are kept by ``CallClock``."""
    return httpx2.Timeout(None, connect=limits.connect)


async def exchange(
    clients: Clients[C],
    send: Callable[[C], Awaitable[httpx2.Response]],
    answer: Fold,
    call: CallProgress,
    limits: CallLimits,
) -> None:
    """Sends one call and feeds its answer to ``answer``; keeps ``call`` up to date.

    A limit that ends a finished answer's wait for its usage or clean end has cost nothing. Raises
    LimitReached, WrongAnswer and whatever the SDK raises. Cancellation closes the response at once.
    """
    async with clients.lease() as client:
        try:
            async with CallClock(limits) as clock:
                response = await send(client)
                call.answered(response)
                try:
                    await read_answer(response, answer, clock, limits.size)
                finally:
                    call.tokens_seen = answer.tokens_seen
                    await response.aclose()
        except LimitReached:
            if not answer.finished:
                raise
