"""A model behind any server that speaks OpenAI's ``/chat/completions``, through the real openai SDK.

The SDK authenticates, builds the request and judges the status. Two things are ours, because measured they
were seven eighths of a call's CPU time: the transport (``aiohttp_transport``), and the reading of the
stream (``sse``) instead of one pydantic model a chunk. The call goes through ``client.post``, the SDK's
documented way to an endpoint without its typed layer, which would walk the whole conversation again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import httpx2
import openai
from openai._base_client import get_platform

from hermes.core.transcript import ModelReply, ModelRequest
from hermes.providers.clients import Clients
from hermes.providers.exchange import exchange, http_client, sdk_timeout
from hermes.providers.facts import CallProgress, with_limits
from hermes.providers.legal import tell_if_illegal
from hermes.providers.limits import CallLimits, CallSettings
from hermes.providers.network import Network
from hermes.providers.openai.failures import failures_as_facts
from hermes.providers.openai.speech import transcribe
from hermes.providers.openai.translate import OpenAIAnswer, render
from hermes.providers.openai.valid import problems

NO_KEY = "no-key"
"""What a server that wants no key is sent: the SDK refuses an empty one."""

VENDOR_HOST = "api.openai.com"


class OpenAISettings(CallSettings, Protocol):
    """What this adapter reads of its configuration."""

    @property
    def base_url(self) -> str: ...


class OpenAIProvider:
    """The ``Provider`` of ``core.ports`` over AsyncOpenAI. Retries nothing.

    ``api_key`` is passed on explicitly, ``no-key`` in place of an empty one.
    """

    def __init__(
        self, name: str, config: OpenAISettings, *, api_key: str, network: Network | None = None
    ) -> None:
        self._name = name
        self._base_url = config.base_url
        self._api_key = api_key or NO_KEY
        self._network = network or Network()
        self._limits = CallLimits.of(config)
        vendor = httpx2.URL(config.base_url).host == VENDOR_HOST
        self._output_key = "max_completion_tokens" if vendor else "max_tokens"
        self._clients = Clients(self._build, openai.AsyncOpenAI.close)

    @property
    def name(self) -> str:
        """The provider's name in the configuration."""
        return self._name

    def _build(self) -> openai.AsyncOpenAI:
        client = openai.AsyncOpenAI(
            api_key=self._api_key,
            admin_api_key="",
            base_url=self._base_url,
            max_retries=0,
            timeout=sdk_timeout(self._limits),
            http_client=http_client(self._network, self._limits),
        )
        # Otherwise the first call asks for it in asyncio's default executor (R24).
        client._platform = get_platform()
        return client

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """One streamed call. Raises ProviderFailure for everything that is not a complete answer."""
        call = CallProgress(self._name, request.model)
        with failures_as_facts(call):
            answer = OpenAIAnswer(request.model, on_text)
            body = render(request, output_key=self._output_key)
            tell_if_illegal(problems(body["messages"]), self._name, request.model)
            limits = self._limits.for_model(request.model)
            await exchange(self._clients, lambda client: _post(client, body, request.key), answer, call, limits)
            return with_limits(answer.reply(), call)

    async def transcribe(
        self, model: str, audio: bytes, name: str, mime: str, key: str | None = None
    ) -> str:
        """One recording's words, from ``/audio/transcriptions``. Raises ProviderFailure."""
        call = CallProgress(self._name, model)
        with failures_as_facts(call):
            async with self._clients.lease() as client:
                return await transcribe(client, call, self._limits.for_model(model), (name, audio, mime), key)

    async def rebuild(self) -> None:
        """A fresh client and connections; calls under way keep the old ones."""
        await self._clients.replace()

    async def aclose(self) -> None:
        """Closes all connections. Idempotent."""
        await self._clients.aclose()


async def _post(client: openai.AsyncOpenAI, body: dict[str, Any], key: str | None) -> httpx2.Response:
    answered = await client.post(
        "/chat/completions",
        cast_to=httpx2.Response,
        body=body,
        options={"headers": {"Authorization": f"Bearer {key}"}} if key else {},
        stream=True,
        stream_cls=openai.AsyncStream[object],
    )
    # The SDK gives what ``cast_to`` asks for; its types know the stream class only.
    return cast("httpx2.Response", answered)
