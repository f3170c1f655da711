"""A model behind any server that speaks OpenAI's ``/chat/completions``, through the real openai SDK.

The SDK authenticates, builds the request and judges the status. Two things are ours, because measured they
were seven eighths of a call's CPU time: the transport (``aiohttp_transport``), and the reading of the
stream (``sse``) instead of one pydantic model a chunk. The call goes through ``client.post``, the SDK's
documented way to an endpoint without its typed layer, which would walk the whole conversation again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import httpx2
import openai
from aiohttp.abc import AbstractResolver
from openai._base_client import get_platform

from hermes.core.transcript import ModelReply, ModelRequest
from hermes.providers.aiohttp_transport import AiohttpTransport
from hermes.providers.answers import read_answer
from hermes.providers.clients import Clients
from hermes.providers.facts import CallProgress
from hermes.providers.limits import CallClock, CallLimits, CallSettings, LimitReached
from hermes.providers.openai.failures import failures_as_facts
from hermes.providers.openai.translate import OpenAIAnswer, render

NO_KEY = "no-key"
"""What a server that wants no key is sent: the SDK refuses an empty one."""

VENDOR_HOST = "api.openai.com"


class OpenAISettings(CallSettings, Protocol):
    """What this adapter reads of its configuration."""

    @property
    def base_url(self) -> str: ...


class OpenAIProvider:
    """The ``Provider`` of ``core.ports`` over AsyncOpenAI. Retries nothing.

    ``api_key`` is passed on explicitly, ``no-key`` in place of an empty one. ``resolver`` does the DNS
    look-ups (R24).
    """

    def __init__(
        self,
        name: str,
        config: OpenAISettings,
        *,
        api_key: str,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
    ) -> None:
        self._name = name
        self._base_url = config.base_url
        self._api_key = api_key or NO_KEY
        self._resolver = resolver
        self._proxy = proxy
        self._limits = CallLimits.of(config)
        vendor = httpx2.URL(config.base_url).host == VENDOR_HOST
        self._output_key = "max_completion_tokens" if vendor else "max_tokens"
        self._clients = Clients(self._build, openai.AsyncOpenAI.close)

    @property
    def name(self) -> str:
        """The provider's name in the configuration."""
        return self._name

    def _build(self) -> openai.AsyncOpenAI:
        timeout = httpx2.Timeout(None, connect=self._limits.connect)
        client = openai.AsyncOpenAI(
            api_key=self._api_key,
            admin_api_key="",
            base_url=self._base_url,
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.AsyncClient(
                transport=AiohttpTransport(resolver=self._resolver, proxy=self._proxy),
                timeout=timeout,
                follow_redirects=True,
                trust_env=False,
            ),
        )
        # Otherwise the first call asks for it in asyncio's default executor (R24).
        client._platform = get_platform()
        return client

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """One streamed call. Raises ProviderFailure for everything that is not a complete answer."""
        call = CallProgress(self._name, request.model)
        answer = OpenAIAnswer(request.model, on_text)
        with failures_as_facts(call):
            body = render(request, output_key=self._output_key)
            async with self._clients.lease() as client:
                try:
                    async with CallClock(self._limits) as clock:
                        await self._exchange(client, body, answer, clock, call)
                except LimitReached:
                    if not answer.finished:
                        raise
            return answer.reply()

    async def _exchange(
        self,
        client: openai.AsyncOpenAI,
        body: dict[str, object],
        answer: OpenAIAnswer,
        clock: CallClock,
        call: CallProgress,
    ) -> None:
        answered = await client.post(
            "/chat/completions",
            cast_to=httpx2.Response,
            body=body,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        # The SDK gives what ``cast_to`` asks for; its types know only the stream class.
        response = cast("httpx2.Response", answered)
        call.answered(response)
        try:
            await read_answer(response, answer, clock)
        finally:
            call.tokens_seen = answer.tokens_seen
            await response.aclose()

    async def rebuild(self) -> None:
        """A fresh client and connections; calls under way keep the old ones."""
        await self._clients.replace()

    async def aclose(self) -> None:
        """Closes all connections. Idempotent."""
        await self._clients.aclose()
