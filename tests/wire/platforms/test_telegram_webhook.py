"""Being called by Telegram: a request is answered when its update is on disk, never before (R1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from hermes.core.delivery import DeliveryReason
from hermes.core.door import Called
from hermes.core.errors import PlatformFailure
from hermes.platforms.telegram.adapter import TelegramPlatform
from hermes.platforms.telegram.webhook import SECRET_HEADER, WAITING, Mailbox, Webhook
from hermes.policy.delivery import classify_delivery
from hermes.simulators.telegram import TelegramSimulator

pytestmark = pytest.mark.wire

SECRET = "0123456789abcdef"
HOOK = Webhook("https://bot.example.org/telegram", SECRET)


def update(number: int) -> dict[str, object]:
    message = {"message_id": number, "date": 1, "chat": {"id": 7, "type": "private"}, "text": "hi"}
    return {"update_id": number, "message": {**message, "from": {"id": 7, "is_bot": False}}}


@pytest.fixture
async def called(sim: TelegramSimulator) -> AsyncIterator[TelegramPlatform]:
    platform = TelegramPlatform(sim.token, base_url=sim.url, poll_timeout=1, read_timeout=1, webhook=HOOK)
    await platform.connect()
    yield platform
    await platform.aclose()


async def test_connecting_tells_telegram_the_address_and_the_secret(
    sim: TelegramSimulator, called: TelegramPlatform
) -> None:
    (call,) = sim.called("setWebhook")
    assert (call.params["url"], call.params["secret_token"]) == (HOOK.url, SECRET)
    assert call.params["drop_pending_updates"] == "false"
    assert sim.called("getUpdates") == []


async def test_a_request_is_answered_after_its_update_is_confirmed(called: TelegramPlatform) -> None:
    async with asyncio.TaskGroup() as group:
        request = group.create_task(called.take(update(1), SECRET))
        batch = await called.receive()
        assert [u.message_ref for u in batch.updates] == ["7:1"]
        assert not request.done()
        called.confirm(batch)
    assert request.result() is True


async def test_an_update_whose_t1_failed_is_to_come_again(called: TelegramPlatform) -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(called.take(update(1), SECRET))
        await called.receive()  # and never confirmed
        again = group.create_task(called.take(update(2), SECRET))
        called.confirm(await called.receive())
    assert (first.result(), again.result()) == (False, True)


async def test_a_stranger_without_the_secret_is_not_heard(called: TelegramPlatform) -> None:
    assert await called.take(update(1), "") is None
    assert await called.take(update(1), SECRET + "x") is None
    assert (await called.receive()).updates == ()


async def test_a_call_shows_the_secret_before_its_body_is_read(called: TelegramPlatform) -> None:
    head = {SECRET_HEADER: SECRET}
    assert (await called.called(Called({}, b"{}"))).status == 401
    assert (await called.called(Called({SECRET_HEADER: "wrong"}, b"{"))).status == 401
    assert (await called.called(Called(head, b"{"))).status == 400
    async with asyncio.TaskGroup() as group:
        request = group.create_task(called.called(Called(head, json.dumps(update(1)).encode())))
        called.confirm(await called.receive())
    assert request.result().status == 200


async def test_an_idle_cycle_is_complete_only_while_telegram_knows_our_address(
    sim: TelegramSimulator, called: TelegramPlatform
) -> None:
    assert (await called.receive()).updates == ()
    assert len(sim.called("getWebhookInfo")) == 1
    sim.world.webhook = "https://elsewhere.example.org"
    with pytest.raises(PlatformFailure) as caught:
        await called.receive()
    assert classify_delivery(caught.value.facts).reason is DeliveryReason.CONFLICT
    await called.connect()
    assert (await called.receive()).updates == ()


async def test_the_queue_is_bounded_and_a_request_does_not_wait_for_ever() -> None:
    mailbox = Mailbox()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(mailbox.put(n, limit=0.05)) for n in range(WAITING + 1)]
    assert [task.result() for task in waiting] == [False] * (WAITING + 1)
    assert not mailbox.waiting


async def test_closing_answers_what_was_handed_out(called: TelegramPlatform) -> None:
    async with asyncio.TaskGroup() as group:
        request = group.create_task(called.take(update(1), SECRET))
        await called.receive()
        await called.aclose()
    assert request.result() is False
