"""Any exception becomes facts: what was not sent is told from what may have been (SDK_FACTS §1, R18)."""

from __future__ import annotations

import asyncio
import datetime
import warnings
from typing import Any

import pytest
from telegram import error as telegram_error

from hermes.core.delivery import Sent
from hermes.core.errors import PlatformFailure
from hermes.platforms.telegram.failures import SHOWN, FailureReader
from hermes.platforms.telegram.transport import Answered, CutOff, NoAnswer, NotSent

SECRET = "AAbbCCddEEffGGhhIIjj"
TOKEN = f"424242:{SECRET}"


def reader() -> FailureReader:
    return FailureReader("telegram", TOKEN)


def caused(text: str, cause: Exception) -> Exception:
    error = telegram_error.NetworkError(text)
    error.__cause__ = cause
    return error


def retry_after(value: int | datetime.timedelta) -> Exception:
    with warnings.catch_warnings():  # PTB warns of a type that it is going to change
        warnings.simplefilter("ignore")
        return telegram_error.RetryAfter(value)


@pytest.mark.parametrize(
    ("error", "status", "sent", "wait", "migrate_to"),
    [
        (retry_after(7), 429, Sent.REFUSED, 7.0, None),
        (retry_after(datetime.timedelta(seconds=7)), 429, Sent.REFUSED, 7.0, None),
        (telegram_error.ChatMigrated(-1009), 400, Sent.REFUSED, None, "-1009"),
        (telegram_error.Conflict("terminated by other"), 409, Sent.REFUSED, None, None),
        (telegram_error.Forbidden("bot was blocked"), 403, Sent.REFUSED, None, None),
        (telegram_error.InvalidToken(), 401, Sent.REFUSED, None, None),
        (telegram_error.EndPointNotFound("x"), 404, Sent.REFUSED, None, None),
        (telegram_error.BadRequest("Message is not modified"), 400, Sent.REFUSED, None, None),
        (telegram_error.TimedOut(), None, Sent.MAYBE_SENT, None, None),
        (telegram_error.TimedOut("Pool timeout: not sent"), None, Sent.NOT_SENT, None, None),
        (telegram_error.NetworkError("Bad Gateway"), None, Sent.REFUSED, None, None),
        (caused("httpx.ConnectError: x", OSError()), None, Sent.NOT_SENT, None, None),
        (caused("httpx.ReadError: x", OSError()), None, Sent.MAYBE_SENT, None, None),
        (telegram_error.TelegramError("Invalid server response"), 200, Sent.MAYBE_SENT, None, None),
        (KeyError("result"), 200, Sent.MAYBE_SENT, None, None),
        (TimeoutError(), None, Sent.MAYBE_SENT, None, None),
        (NotSent("dns", "no such host"), None, Sent.NOT_SENT, None, None),
        (NoAnswer("no answer in time"), None, Sent.MAYBE_SENT, None, None),
        (CutOff("reset"), None, Sent.MAYBE_SENT, None, None),
        (Answered(503, "Service Unavailable", 9.0), 503, Sent.REFUSED, 9.0, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)  # fmt: skip
def test_each_error_has_its_facts(
    error: Exception, status: int | None, sent: Sent, wait: float | None, migrate_to: str | None
) -> None:
    found = reader()
    facts = found.read(error)
    assert (facts.status, facts.sent) == (status, sent)
    assert (facts.retry_after, facts.migrate_to) == (wait, migrate_to)
    assert facts.exception == f"{type(error).__module__}.{type(error).__qualname__}"
    assert not found.unmapped


def _error_classes() -> list[type[Exception]]:
    return [
        value
        for value in vars(telegram_error).values()
        if isinstance(value, type) and issubclass(value, telegram_error.TelegramError)
    ]


_ARGUMENTS: dict[str, tuple[Any, ...]] = {"ChatMigrated": (5,)}


@pytest.mark.parametrize("kind", _error_classes(), ids=lambda kind: kind.__name__)
def test_a_class_that_the_sdk_adds_is_noticed(kind: type[Exception]) -> None:
    """PassportDecryptionError belongs to a method that we do not call; any other must be known here."""
    known = {
        "TelegramError", "Forbidden", "InvalidToken", "EndPointNotFound", "NetworkError", "BadRequest",
        "TimedOut", "ChatMigrated", "RetryAfter", "Conflict", "PassportDecryptionError",
    }  # fmt: skip
    assert kind.__name__ in known
    found = reader()
    made = (
        retry_after(3) if kind is telegram_error.RetryAfter else kind(*_ARGUMENTS.get(kind.__name__, ("x",)))
    )
    found.read(made)
    assert not found.unmapped


def test_an_exception_that_no_case_knows_is_counted_by_its_type_and_may_have_been_sent() -> None:
    found = reader()
    for _ in range(2):
        assert found.read(ZeroDivisionError("x")).sent is Sent.MAYBE_SENT
    found.read(caused("Unknown error in HTTP implementation: IndexError()", IndexError()))
    assert found.unmapped == {"builtins.ZeroDivisionError": 2, "builtins.IndexError": 1}


@pytest.mark.parametrize("shown", [TOKEN, SECRET, f"https://api/bot{TOKEN}/getMe"])
def test_the_token_is_taken_out_of_every_text(shown: str) -> None:
    for error in (telegram_error.NetworkError(shown), telegram_error.BadRequest(shown), ValueError(shown)):
        facts = reader().read(error)
        assert SECRET not in repr(facts)
        assert "<token>" in facts.message


def test_a_long_answer_is_shortened() -> None:
    assert len(reader().read(telegram_error.BadRequest("x" * 10_000)).message) == SHOWN


async def test_a_guarded_call_fails_as_facts_without_the_sdks_exception_behind_it() -> None:
    async def fails() -> None:
        raise telegram_error.BadRequest(f"about {TOKEN}")

    with pytest.raises(PlatformFailure) as caught:
        await reader().guard("sendMessage", fails(), 5.0)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)


async def test_a_call_over_its_limit_may_have_been_sent() -> None:
    async def hangs() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(PlatformFailure) as caught:
        await reader().guard("sendMessage", hangs(), 0.01)
    assert caught.value.facts.sent is Sent.MAYBE_SENT


async def test_a_cancelled_call_stays_cancelled() -> None:
    async def hangs() -> None:
        await asyncio.get_running_loop().create_future()

    task = asyncio.get_running_loop().create_task(reader().guard("sendMessage", hangs(), 5.0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
