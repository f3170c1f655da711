"""Any exception of python-telegram-bot or of our transport as ``DeliveryFacts``.

The order of the cases is the class tree of telegram.error: BadRequest and TimedOut *are* NetworkErrors,
while RetryAfter, Conflict, Forbidden, InvalidToken and ChatMigrated are not. A 200 whose body is garbage
is a plain TelegramError, or a KeyError when it is JSON without ``result``: the call may have been carried
out. The token is taken out of every text.
"""

from __future__ import annotations

import asyncio
import datetime
import warnings
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.telegram.transport import Answered, CutOff, NoAnswer, NotSent

SHOWN = 500  # characters of a foreign text that go on
_POOL = "Pool timeout"  # how PTB's own transport says that nothing was sent

T = TypeVar("T")


class FailureReader:
    """Reads exceptions for one bot; ``unmapped`` counts, by type, those that no case knew."""

    def __init__(self, platform: str, token: str) -> None:
        self._platform = platform
        self._secrets = [s for s in (token, token.partition(":")[2]) if len(s) >= 8]
        self.unmapped: Counter[str] = Counter()

    async def guard(self, method: str, call: Coroutine[Any, Any, T], limit: float) -> T:
        """The call's answer within ``limit`` seconds. Raises PlatformFailure for any failure of it.

        The failure is raised outside of the handler: the SDK's exception, which may know the address
        with the token, is not even its context.
        """
        try:
            async with asyncio.timeout(limit):
                return await call
        except Exception as error:  # noqa: BLE001 - R26: whatever the SDK raises becomes facts
            facts = self.read(error)
        raise PlatformFailure(facts)

    def read(self, error: BaseException) -> DeliveryFacts:
        """The facts of any exception; never raises."""
        match error:
            case NotSent() | CutOff() | NoAnswer() | Answered():
                return self._of_transport(error)
            case RetryAfter():
                return self._facts(error, status=429, retry_after=_seconds(error))
            case ChatMigrated():
                return self._facts(error, status=400, migrate_to=str(error.new_chat_id))
            case Conflict():
                return self._facts(error, status=409)
            case Forbidden():
                return self._facts(error, status=403)
            case InvalidToken():
                return self._facts(error, status=401, text="Unauthorized: the bot token was refused")
            case EndPointNotFound():
                return self._facts(error, status=404)
            case BadRequest():
                return self._facts(error, status=400)
            case TimedOut():
                pooled = _POOL in str(error)
                return self._facts(error, sent=Sent.NOT_SENT if pooled else Sent.MAYBE_SENT)
            case NetworkError():
                return self._network(error)
            case TelegramError() | KeyError():
                return self._facts(
                    error, status=200, sent=Sent.MAYBE_SENT, text="the answer is not the API's"
                )
            case TimeoutError():
                return self._facts(error, sent=Sent.MAYBE_SENT, text="our own time limit passed")
            case _:
                self.unmapped[_name(error)] += 1
                return self._facts(error, sent=Sent.MAYBE_SENT)

    def _of_transport(self, error: NotSent | CutOff | NoAnswer | Answered) -> DeliveryFacts:
        match error:
            case NotSent():
                return self._facts(error, sent=Sent.NOT_SENT, code=error.how)
            case Answered():
                # A 504 is a proxy's own time-out: what is behind it may have acted. Telegram's 502 and 503
                # say that nobody behind it took the request.
                sent = Sent.MAYBE_SENT if error.status == 504 else Sent.REFUSED
                return self._facts(error, sent=sent, status=error.status, retry_after=error.retry_after)
            case CutOff() | NoAnswer():
                return self._facts(error, sent=Sent.MAYBE_SENT)

    def _network(self, error: NetworkError) -> DeliveryFacts:
        """A NetworkError of PTB's own: its transports wrap what they met, and name it."""
        text = str(error)
        refused = "ConnectError" in text or "ConnectTimeout" in text or "is not initialized" in text
        unsent = refused or isinstance(error.__cause__, ConnectionRefusedError)
        if text.startswith("Unknown error in HTTP implementation") and not unsent:
            self.unmapped[_name(error.__cause__ or error)] += 1
        answered = error.__cause__ is None
        sent = Sent.NOT_SENT if unsent else Sent.REFUSED if answered else Sent.MAYBE_SENT
        return self._facts(error, sent=sent)

    def garbage(self, method: str) -> DeliveryFacts:
        """A 200 whose result is not what ``method`` answers."""
        return DeliveryFacts(
            self._platform, status=200, sent=Sent.MAYBE_SENT, message=f"{method}: the answer is not the API's"
        )

    def refused(self, method: str, why: str) -> DeliveryFacts:
        """Refused by a bound of ours: nothing was asked of the platform, or its answer was not taken."""
        return DeliveryFacts(self._platform, code="bound", message=f"{method}: {why}")

    def webhook_lost(self) -> DeliveryFacts:
        """Telegram knows another webhook than ours: somebody else uses the token."""
        return DeliveryFacts(
            self._platform, status=409, message="Conflict: the webhook was changed by somebody else"
        )

    def is_webhook_conflict(self, facts: DeliveryFacts) -> bool:
        """True for the 409 that says a webhook is set, which deleteWebhook cures."""
        return facts.status == 409 and "webhook" in facts.message.lower()

    def _facts(
        self,
        error: BaseException,
        *,
        sent: Sent = Sent.REFUSED,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        migrate_to: str | None = None,
        text: str | None = None,
    ) -> DeliveryFacts:
        return DeliveryFacts(
            platform=self._platform,
            exception=_name(error),
            status=status,
            code=code,
            message=self.clean(str(error) if text is None else text),
            sent=sent,
            retry_after=retry_after,
            migrate_to=migrate_to,
            causes=_causes(error),
        )

    def clean(self, text: str) -> str:
        """``text`` without the token, short enough for a log line."""
        for secret in self._secrets:
            text = text.replace(secret, "<token>")
        return without_lone_surrogates(text[:SHOWN])


def _name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _causes(error: BaseException) -> tuple[str, ...]:
    names: list[str] = []
    cause = error.__cause__
    while cause is not None and len(names) < 8:
        names.append(_name(cause))
        cause = cause.__cause__
    return tuple(names)


def _seconds(error: RetryAfter) -> float:
    with warnings.catch_warnings():  # reading the attribute is deprecated in one of its two types
        warnings.simplefilter("ignore")
        value = error.retry_after
    return value.total_seconds() if isinstance(value, datetime.timedelta) else float(value)
