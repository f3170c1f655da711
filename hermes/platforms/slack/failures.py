"""Any exception of slack_sdk, of aiohttp or of our socket as ``DeliveryFacts``.

Slack refuses with a 200 and ``ok: false``. slack_sdk's ``SlackApiError.response`` is one of three things: its own
response with a dict (an answer), the same with a text (a 503 of a proxy), or aiohttp's response (a 200 whose body is
no JSON). The tokens are taken out of every text.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from slack_sdk.errors import SlackApiError, SlackClientError

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.slack.envelope import PLATFORM
from hermes.platforms.slack.wire import Closed, Disconnected, Refused, TooLarge
from hermes.platforms.wire import broken

SHOWN = 500  # characters of a foreign text that go on
_UNKNOWN_OUTCOME = frozenset({"internal_error", "fatal_error", "request_timeout"})
"""Slack's documentation says of these that the operation may have succeeded in part."""
_DISCONNECTS = {
    "link_disabled": "Socket Mode is switched off for this app",
    "too_many_websockets": "too many websockets: other programs are connected with this app's token",
}

T = TypeVar("T")


class FailureReader:
    """Reads exceptions for one app; ``unmapped`` counts, by type, those that no case knew."""

    def __init__(self, *tokens: str) -> None:
        self._secrets = [token for token in tokens if len(token) >= 8]
        self.unmapped: Counter[str] = Counter()

    async def guard(self, what: str, call: Coroutine[Any, Any, T], limit: float | None) -> T:
        """The call's answer within ``limit`` seconds. Raises PlatformFailure for any failure of it.

        The failure is raised outside of the handler: the SDK's exception, which knows the request, is not even
        its context.
        """
        try:
            async with asyncio.timeout(limit):
                return await call
        except Exception as error:  # noqa: BLE001 - R26: whatever the SDK raises becomes facts
            facts = self.read(error, what)
        raise PlatformFailure(facts)

    def read(self, error: BaseException, what: str = "") -> DeliveryFacts:
        """The facts of any exception; never raises."""
        match error:
            case SlackApiError():
                return self._answer(error, what)
            case Refused():
                return self._status(error, error.status, error.body, error.headers, what)
            case Disconnected():
                return self.disconnected(error.reason)
            case Closed():
                return self._facts(error, Sent.NOT_SENT, "the client is closed", code="closed")
            case TooLarge():
                return self.bound(what, "more bytes than the bound allows")
            case SlackClientError():
                return self._facts(error, Sent.NOT_SENT, f"{what}: {error}")
        transport = broken(error)
        if transport is None:
            self.unmapped[_name(error)] += 1
            return self._facts(error, Sent.MAYBE_SENT, str(error))
        return self._facts(error, transport.sent, transport.text, code=transport.how)

    def _answer(self, error: SlackApiError, what: str) -> DeliveryFacts:
        response: Any = error.response
        data = getattr(response, "data", None)
        status = getattr(response, "status_code", None) or getattr(response, "status", None)
        headers = _headers(getattr(response, "headers", None))
        known = status if isinstance(status, int) else None
        if isinstance(data, Mapping) and isinstance(data.get("error"), str):
            return self._refusal(dict(data), known, headers, what)
        if known == 200:
            return self.garbage(what)
        return self._status(error, known, data, headers, what)

    def _refusal(
        self, body: dict[str, Any], status: int | None, headers: dict[str, str], what: str
    ) -> DeliveryFacts:
        """``ok: false``, in words that name the scope that is missing, or the field that is wrong."""
        code = str(body["error"])
        text = f"{what}: {code}"
        if body.get("needed"):
            text += f": the app needs the scope {body['needed']} (it has {body.get('provided') or 'none'})"
        meta = body.get("response_metadata")
        if isinstance(meta, Mapping) and isinstance(meta.get("messages"), list):
            text += "".join(f"\n{one}" for one in meta["messages"][:5])
        return DeliveryFacts(
            PLATFORM,
            status=status,
            code=code,
            message=self.clean(text),
            headers=headers,
            body={k: v for k, v in body.items() if k in ("ok", "error", "needed", "provided")},
            sent=Sent.MAYBE_SENT if code in _UNKNOWN_OUTCOME else Sent.REFUSED,
            retry_after=_seconds(headers.get("retry-after")),
        )

    def _status(
        self, error: BaseException, status: int | None, body: object, headers: Mapping[str, str], what: str
    ) -> DeliveryFacts:
        told = body if isinstance(body, str) else ""
        after_all = status is None or status >= 500
        return DeliveryFacts(
            PLATFORM,
            exception=_name(error),
            status=status,
            message=self.clean(f"{what}: status {status} {told}".strip()),
            headers=dict(headers),
            body=self.clean(told) or None,
            sent=Sent.MAYBE_SENT if after_all else Sent.REFUSED,
            retry_after=_seconds(headers.get("retry-after")),
        )

    def disconnected(self, reason: str) -> DeliveryFacts:
        """The socket ended, or Slack said that it will. ``reason`` is Slack's word, or our own sentence."""
        known = _DISCONNECTS.get(reason)
        text = f"Socket Mode: {known or reason}"
        return DeliveryFacts(PLATFORM, code=reason if known else None, message=self.clean(text), sent=Sent.REFUSED)

    def ghost(self, channel: str) -> DeliveryFacts:
        """Connected, and not told of what stands in the history."""
        text = f"Slack did not tell us of messages in {channel}: the connection is dead, or goes to somebody else"
        return DeliveryFacts(PLATFORM, exception="GhostSocket", message=f"connection lost: {text}")

    def missing_scope(self, needed: str, provided: str) -> DeliveryFacts:
        """The token works, and may not do what we need."""
        text = f"auth.test: missing_scope: the app needs the scope {needed} (it has {provided or 'none'})"
        return DeliveryFacts(PLATFORM, status=200, code="missing_scope", message=text)

    def garbage(self, what: str) -> DeliveryFacts:
        """A 200 whose body is not what was asked for."""
        return DeliveryFacts(
            PLATFORM, status=200, sent=Sent.MAYBE_SENT, message=f"{what}: the answer is not the API's"
        )

    def bound(self, what: str, why: str) -> DeliveryFacts:
        """Refused by a bound of ours: nothing was asked of the platform, or its answer was not taken."""
        return DeliveryFacts(PLATFORM, code="bound", message=f"{what}: {why}")

    def clean(self, text: str) -> str:
        """``text`` without the tokens, short enough for a log line."""
        for secret in self._secrets:
            text = text.replace(secret, "<token>")
        return without_lone_surrogates(text[:SHOWN])

    def _facts(
        self, error: BaseException, sent: Sent, text: str, *, code: str | None = None
    ) -> DeliveryFacts:
        return DeliveryFacts(PLATFORM, _name(error), code=code, message=self.clean(text), sent=sent)


def _headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        return {}
    return {str(name).lower(): str(value)[:300] for name, value in headers.items() if str(name).lower() in _KEPT}


_KEPT = frozenset({"retry-after", "x-oauth-scopes", "x-slack-req-id", "content-type"})


def _seconds(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < 1e9 else None


def _name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"
