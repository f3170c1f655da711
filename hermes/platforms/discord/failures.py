"""Any exception of discord.py, aiohttp or our own as ``DeliveryFacts``. The token is taken out of every text."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.discord.rest import Closed, Refused, TooLarge
from hermes.platforms.discord.socket import Asked, Lost
from hermes.platforms.wire import broken

SHOWN = 500  # characters of a foreign text that go on
PLATFORM = "discord"
CLOSE_CODES = {
    4004: "Authentication failed",
    4008: "too many requests on the gateway: rate limited",
    4009: "the session timed out",
    4010: "Invalid shard",
    4011: "Sharding required: the bot is in too many guilds for one connection",
    4012: "Invalid API version",
    4013: "Invalid intents",
    4014: "Disallowed intents: the MESSAGE CONTENT INTENT is switched off",
}
_UNKNOWN_OUTCOME = frozenset({500, 504, 520, 522, 524})  # what stands behind may have acted

T = TypeVar("T")


class FailureReader:
    """Reads exceptions for one bot; ``unmapped`` counts, by type, those that no case knew."""

    def __init__(self, token: str) -> None:
        self._token = token if len(token) >= 8 else None
        self.unmapped: Counter[str] = Counter()

    async def guard(self, what: str, call: Coroutine[Any, Any, T], limit: float | None) -> T:
        """The call's answer within ``limit`` seconds. Raises PlatformFailure for any failure, and Asked as it is.

        The failure is raised outside of the handler: the exception, which may know an address with a token, is
        not even its context.
        """
        try:
            async with asyncio.timeout(limit):
                return await call
        except Asked:
            raise
        except Exception as error:  # noqa: BLE001 - R26: whatever the SDK raises becomes facts
            facts = self.read(error, what)
        raise PlatformFailure(facts)

    def read(self, error: BaseException, what: str = "") -> DeliveryFacts:
        """The facts of any exception; never raises."""
        match error:
            case Refused():
                return self._refusal(error, what)
            case Lost():
                return self.closed(error.code, error.why)
            case Closed():
                return self._facts(error, Sent.NOT_SENT, "the client is closed", code="closed")
            case TooLarge():
                return self.bound(what, "more bytes than the bound allows")
        transport = broken(error)
        if transport is None:
            self.unmapped[_name(error)] += 1
            return self._facts(error, Sent.MAYBE_SENT, str(error))
        return self._facts(error, transport.sent, transport.text, code=transport.how)

    def _refusal(self, refused: Refused, what: str) -> DeliveryFacts:
        body = refused.body
        code, text, wait = None, f"{what}: status {refused.status}", None
        if isinstance(body, dict):
            text = f"{body.get('message') or text}{_field_errors(body.get('errors'))}"
            code = str(body["code"]) if body.get("code") else None
            wait = body.get("retry_after")
        return DeliveryFacts(
            PLATFORM,
            exception=None,
            status=refused.status,
            code=code,
            message=self.clean(text),
            headers=dict(refused.headers),
            body=self._clean_body(body) if isinstance(body, dict) else self.clean(str(body)),
            sent=Sent.MAYBE_SENT if refused.status in _UNKNOWN_OUTCOME else Sent.REFUSED,
            retry_after=float(wait) if isinstance(wait, int | float) and not isinstance(wait, bool) else None,
        )

    def closed(self, code: int | None, why: str = "") -> DeliveryFacts:
        """The gateway's socket ended."""
        told = CLOSE_CODES.get(code or 0, why or "the connection to the gateway was lost")
        named = f" (close code {code})" if code else ""
        stated = None if code is None or code == 4000 else str(code)
        return DeliveryFacts(
            PLATFORM, "ConnectionClosed", code=stated, message=f"gateway: {told}{named}", sent=Sent.REFUSED
        )

    def ghost(self) -> DeliveryFacts:
        """The socket lives and tells nothing: not even what we ourselves have said."""
        text = "gateway: session disconnected: it tells nothing any more, not even of our own messages"
        return DeliveryFacts(PLATFORM, "ConnectionClosed", message=text, sent=Sent.REFUSED)

    def garbage(self, what: str) -> DeliveryFacts:
        """A success whose body is not what was asked for."""
        return DeliveryFacts(
            PLATFORM, status=200, sent=Sent.MAYBE_SENT, message=f"{what}: the answer is not the API's"
        )

    def bound(self, what: str, why: str) -> DeliveryFacts:
        """Refused by a bound of ours: nothing was asked of the platform, or its answer was not taken."""
        return DeliveryFacts(PLATFORM, code="bound", message=f"{what}: {why}")

    def no_starts_left(self, after: float) -> DeliveryFacts:
        """The day's sessions are used up: one more would have the token reset."""
        text = "session start limit reached: Discord allows no new session before then"
        return DeliveryFacts(PLATFORM, code="session_start_limit", message=text, retry_after=after)

    def clean(self, text: str) -> str:
        """``text`` without the token, short enough for a log line."""
        if self._token is not None:
            text = text.replace(self._token, "<token>")
        return without_lone_surrogates(text[:SHOWN])

    def _clean_body(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, list):
            return [self._clean_body(one, depth + 1) for one in value[:50]] if depth < 8 else None
        if isinstance(value, dict):
            inside = {self.clean(str(k)): self._clean_body(v, depth + 1) for k, v in list(value.items())[:50]}
            return inside if depth < 8 else None
        return value

    def _facts(
        self, error: BaseException, sent: Sent, text: str, *, code: str | None = None
    ) -> DeliveryFacts:
        return DeliveryFacts(PLATFORM, _name(error), code=code, message=self.clean(text), sent=sent)


def _field_errors(errors: object, path: str = "") -> str:
    """What 50035 says of each field, in one line."""
    if not isinstance(errors, dict) or len(path) > 200:
        return ""
    found = [
        f"\nIn {path}: {one.get('message')}"
        for one in errors.get("_errors") or ()
        if isinstance(one, dict)
    ]
    inner = [
        _field_errors(value, f"{path}.{name}".strip("."))
        for name, value in errors.items()
        if name != "_errors"
    ]
    return "".join([*found, *inner])[:SHOWN]


def _name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"
