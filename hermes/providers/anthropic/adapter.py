"""A model behind any server that speaks Anthropic's ``/v1/messages``, through the real anthropic SDK.

Built like the openai adapter, for the same measured reasons. The key is always explicit, so the SDK reads
neither the environment nor profile files for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import anthropic
import httpx2
from anthropic._base_client import get_platform

from hermes.core.transcript import ModelReply, ModelRequest
from hermes.providers.anthropic.failures import failures_as_facts
from hermes.providers.anthropic.translate import AnthropicAnswer, render
from hermes.providers.anthropic.valid import problems
from hermes.providers.clients import Clients
from hermes.providers.exchange import exchange, http_client, sdk_timeout
from hermes.providers.facts import CallProgress, with_limits
from hermes.providers.legal import tell_if_illegal
from hermes.providers.limits import CallLimits, CallSettings
from hermes.providers.network import Network

NO_KEY = "no-key"
"""What a server that wants no key is sent: without one the SDK would look for credentials on disk."""

VENDOR_URL = "https://api.anthropic.com"


class AnthropicSettings(CallSettings, Protocol):
    """What this adapter reads of its configuration. ``base_url`` ends before ``/v1``; empty: the vendor's."""

    @property
    def base_url(self) -> str: ...


class AnthropicProvider:
    """The ``Provider`` of ``core.ports`` over AsyncAnthropic. Retries nothing."""

    def __init__(
        self, name: str, config: AnthropicSettings, *, api_key: str, network: Network | None = None
    ) -> None:
        self._name = name
        self._base_url = base_of(config.base_url)
        self._api_key = api_key or NO_KEY
        self._network = network or Network()
        self._limits = CallLimits.of(config)
        self._caching = self._base_url == VENDOR_URL
        self._clients = Clients(self._build, anthropic.AsyncAnthropic.close)

    @property
    def name(self) -> str:
        """The provider's name in the configuration."""
        return self._name

    def _build(self) -> anthropic.AsyncAnthropic:
        client = anthropic.AsyncAnthropic(
            api_key=self._api_key,
            webhook_key="",
            base_url=self._base_url,
            max_retries=0,
            timeout=sdk_timeout(self._limits),
            open_telemetry=False,
            http_client=http_client(self._network, self._limits),
        )
        # Otherwise the first call asks for it in asyncio's default executor (R24).
        client._platform = get_platform()
        return client

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """One streamed call. Raises ProviderFailure for everything that is not a complete answer."""
        call = CallProgress(self._name, request.model)
        with failures_as_facts(call):
            answer = AnthropicAnswer(request.model, on_text)
            body = render(request, caching=self._caching)
            tell_if_illegal(problems(body["messages"]), self._name, request.model)
            limits = self._limits.for_model(request.model)
            await exchange(self._clients, lambda client: _post(client, body, request), answer, call, limits)
            return with_limits(answer.reply(), call)

    async def rebuild(self) -> None:
        """A fresh client and connections; calls under way keep the old ones."""
        await self._clients.replace()

    async def aclose(self) -> None:
        """Closes all connections. Idempotent."""
        await self._clients.aclose()


def base_of(url: str) -> str:
    """The address up to ``/v1``, which the SDK adds: people copy it both ways."""
    return url.rstrip("/").removesuffix("/v1") or VENDOR_URL


async def _post(client: anthropic.AsyncAnthropic, body: dict[str, Any], request: ModelRequest) -> httpx2.Response:
    answered = await client.post(
        "/v1/messages",
        cast_to=httpx2.Response,
        body=body,
        options={"headers": {**_beta_headers(request), **_key_headers(request.key)}},
        stream=True,
        stream_cls=anthropic.AsyncStream[object],
    )
    # The SDK gives what ``cast_to`` asks for; its types know the stream class only.
    return cast("httpx2.Response", answered)


def _beta_headers(request: ModelRequest) -> dict[str, Any]:
    return {"anthropic-beta": ",".join(request.betas)} if request.betas else {}


def _key_headers(key: str | None) -> dict[str, Any]:
    """Keys have a header of their own; the vendor's OAuth tokens are told by their prefix."""
    if not key:
        return {}
    if key.startswith("sk-ant-oat"):
        return {"Authorization": f"Bearer {key}", "X-Api-Key": anthropic.Omit()}
    return {"X-Api-Key": key}
