"""The Bot API simulator's faults against the real python-telegram-bot: the exception that each gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from telegram import Bot
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest

from hermes.simulators.faults import (
    ApiError,
    CutStream,
    Delay,
    Drip,
    Fault,
    Reply,
    Reset,
    Stall,
    conflict,
    flood,
    garbage_json,
    html_page,
)
from hermes.simulators.telegram import TelegramSimulator

pytestmark = [
    pytest.mark.wire,
    # python-telegram-bot warns whenever it makes a RetryAfter, unless PTB_TIMEDELTA is set
    pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning"),
]
PATIENCE = 0.3


@pytest_asyncio.fixture
async def sim() -> AsyncIterator[TelegramSimulator]:
    async with TelegramSimulator() as simulator:
        yield simulator


@pytest_asyncio.fixture
async def bot(sim: TelegramSimulator) -> AsyncIterator[Bot]:
    async with Bot(
        sim.token,
        base_url=sim.base_url,
        base_file_url=sim.base_file_url,
        request=HTTPXRequest(read_timeout=PATIENCE, connect_timeout=2),
        get_updates_request=HTTPXRequest(connection_pool_size=2, read_timeout=PATIENCE),
    ) as client:
        yield client


@pytest.mark.parametrize(
    ("fault", "expected", "words", "arrived"),
    [
        (flood(3), RetryAfter, "Retry in 3 seconds", False),
        (flood(3, delivered=True), RetryAfter, "Retry in 3 seconds", True),
        (ApiError(429, "Too Many Requests"), NetworkError, "Too Many Requests", False),
        (conflict(), Conflict, "terminated by other getUpdates", False),
        (ApiError(400, "Bad Request: message is odd"), BadRequest, "Message is odd", False),
        (ApiError(403, "Forbidden: no"), Forbidden, "no", False),
        (ApiError(401, "Unauthorized"), InvalidToken, None, False),
        (ApiError(404, "Not Found"), InvalidToken, None, False),
        (ApiError(413, "Request Entity Too Large"), NetworkError, "Too Large", False),
        (ApiError(500, "Internal Server Error"), NetworkError, "Internal", False),
        (ApiError(502, "Bad Gateway", delivered=True), NetworkError, "Bad Gateway", True),
        (html_page(502), NetworkError, None, False),
        (garbage_json(), TelegramError, "Invalid server response", False),
        (html_page(200), TelegramError, "Invalid server response", False),
        (Reset(), NetworkError, "httpx", False),
        (Reset(delivered=True), NetworkError, "httpx", True),
        (Stall(), TimedOut, "Timed out", False),
        (Stall(delivered=True), TimedOut, "Timed out", True),
        (Stall(after_headers=True), TimedOut, "Timed out", False),
        (CutStream(), NetworkError, None, False),
    ],
)
async def test_a_fault_has_the_class_of_the_facts(
    sim: TelegramSimulator,
    bot: Bot,
    fault: Fault,
    expected: type[Exception],
    words: str | None,
    arrived: bool,
) -> None:
    sim.faults.add(fault, endpoint="sendMessage")
    with pytest.raises(TelegramError, match=words) as caught:
        await bot.send_message(7, "x")
    assert type(caught.value) is expected
    assert (sim.texts(7) == ["x"]) is arrived
    assert await bot.send_message(7, "y")


@pytest.mark.parametrize("fault", [Delay(0.05), Drip(gap=0.001, size=50)], ids=["late", "drip"])
async def test_a_slow_answer_is_the_right_answer(sim: TelegramSimulator, bot: Bot, fault: Fault) -> None:
    sim.faults.add(fault)
    assert (await bot.send_message(7, "x")).text == "x"


async def test_an_empty_object_ends_in_a_key_error_of_the_sdk(sim: TelegramSimulator, bot: Bot) -> None:
    sim.faults.add(Reply(200, "{}"), endpoint="sendMessage")
    with pytest.raises(KeyError, match="result"):
        await bot.send_message(7, "x")
    assert sim.texts(7) == []


async def test_a_fault_reaches_a_poll_that_waits_already(sim: TelegramSimulator, bot: Bot) -> None:
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(_poll(bot))
        await sim.wait_for(lambda: sim.polls == 1)
        sim.faults.add(ApiError(502, "Bad Gateway"), endpoint="getUpdates")
    assert type(poll.result()) is NetworkError


async def test_the_connections_drop_under_a_poll_that_waits(sim: TelegramSimulator, bot: Bot) -> None:
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(_poll(bot))
        await sim.wait_for(lambda: sim.polls == 1)
        sim.drop_connections()
    assert type(poll.result()) is NetworkError
    await sim.wait_for(lambda: sim.polls == 0)


async def _poll(bot: Bot) -> TelegramError | None:
    try:
        await bot.get_updates(timeout=30)
    except TelegramError as error:
        return error
    return None


async def test_a_rule_for_a_time_hits_every_call_until_then(sim: TelegramSimulator, bot: Bot) -> None:
    sim.faults.add(flood(1), endpoint="sendmessage", seconds=60)
    for _ in range(3):
        with pytest.raises(RetryAfter):
            await bot.send_message(7, "x")
    sim.faults.clear()
    assert await bot.send_message(7, "x")


async def test_a_closed_socket_refuses_and_the_same_port_opens_again(
    sim: TelegramSimulator, bot: Bot
) -> None:
    sim.say(7, "said before")
    sim.refuse_for(0.3)
    with pytest.raises(NetworkError, match=r"Read|Remote"):
        await bot.send_message(7, "over the connection that was reset")
    with pytest.raises(NetworkError) as caught:
        await bot.send_message(7, "over a new one")
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    await sim.wait_for(lambda: sim.listening)
    assert len(await bot.get_updates()) == 1


async def test_a_download_can_fail_too(sim: TelegramSimulator, bot: Bot) -> None:
    file = await bot.get_file(sim.add_file("a.bin", b"content"))
    sim.faults.add(Reset(), endpoint="file")
    with pytest.raises(NetworkError):
        await file.download_as_bytearray()
    assert bytes(await file.download_as_bytearray()) == b"content"


async def test_waiting_in_vain_tells_what_was_seen(sim: TelegramSimulator, bot: Bot) -> None:
    await bot.send_message(7, "only this")
    with pytest.raises(TimeoutError, match="only this"):
        await sim.wait_for(lambda: sim.texts(7) == ["something else"], 0.05)
