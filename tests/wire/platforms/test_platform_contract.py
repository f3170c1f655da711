"""What every platform adapter owes to the gateway (core.ports.Platform), one suite for all of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.delivery import Operation, Sent
from hermes.core.errors import PlatformFailure, Poison
from hermes.core.events import (
    Address,
    AttachmentRef,
    Batch,
    ButtonEvent,
    MessageEvent,
    NothingToDo,
    RawUpdate,
)
from hermes.core.ports import Outgoing, Platform
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.platforms.slack.adapter import Keys, SlackPlatform
from hermes.platforms.telegram.adapter import TelegramPlatform
from hermes.platforms.web.adapter import WebPlatform, make_update
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.faults import Stall
from hermes.simulators.slack import SlackSimulator
from hermes.simulators.telegram import TelegramSimulator
from tests.wire.platforms.conftest import make_adapter, make_discord, make_slack

pytestmark = pytest.mark.wire


@dataclass(frozen=True)
class Bench:
    """A platform, somebody who writes to it, and a way to make it stop answering."""

    platform: Platform
    say: Callable[[str], Awaitable[RawUpdate]]
    go_deaf: Callable[[], None]


@asynccontextmanager
async def telegram() -> AsyncIterator[Bench]:
    async with TelegramSimulator() as sim:
        platform = make_adapter(sim)

        async def say(text: str) -> RawUpdate:
            sim.say(7, text)
            batch = await platform.receive()
            platform.confirm(batch)
            return batch.updates[-1]

        yield Bench(platform, say, lambda: void(sim.faults.add(Stall(), times=None)))
        await platform.aclose()


@asynccontextmanager
async def discord() -> AsyncIterator[Bench]:
    async with DiscordSimulator(heartbeat_interval=0.4) as sim:
        platform = make_discord(sim)

        async def say(text: str) -> RawUpdate:
            sim.say(7, text)
            while not (batch := await platform.receive()).updates:
                platform.confirm(batch)
            platform.confirm(batch)
            return batch.updates[-1]

        yield Bench(platform, say, lambda: void(setattr(sim.gateway, "deaf", True)))
        await platform.aclose()


@asynccontextmanager
async def slack() -> AsyncIterator[Bench]:
    async with SlackSimulator() as sim:
        platform = make_slack(sim)

        async def say(text: str) -> RawUpdate:
            sim.say(7, text)
            while not (batch := await platform.receive()).updates:
                platform.confirm(batch)
            platform.confirm(batch)
            return batch.updates[-1]

        def go_deaf() -> None:
            sim.out.mute = True
            sim.faults.add(Stall(), times=None)

        yield Bench(platform, say, go_deaf)
        await platform.aclose()


@asynccontextmanager
async def web() -> AsyncIterator[Bench]:
    async def say(text: str) -> RawUpdate:
        return make_update("chat", "owner", f"uuid-{text}", text, 1.0)

    yield Bench(WebPlatform(), say, lambda: None)


def void(_: object) -> None:
    """A callback's result that nobody wants."""


BENCHES = {"telegram": telegram, "discord": discord, "slack": slack, "web": web}
LATER: dict[str, Callable[[], Platform]] = {
    "telegram": lambda: TelegramPlatform("424242:AAAAAAAAAAAA"),
    "discord": lambda: DiscordPlatform("token-of-a-bot"),
    "slack": lambda: SlackPlatform(Keys("xoxb-1", "xapp-1")),
    "web": WebPlatform,
}


@pytest.fixture(params=BENCHES, ids=str)
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with BENCHES[request.param]() as opened:
        await opened.platform.connect()
        yield opened


def sockets() -> int:
    import psutil

    return len(psutil.Process().net_connections())


@pytest.mark.parametrize("name", BENCHES)
async def test_it_says_who_it_is(name: str) -> None:
    async with BENCHES[name]() as opened:
        await opened.platform.connect()
        assert opened.platform.name == name
        assert opened.platform.account
        assert isinstance(opened.platform.delivers_at_commit, bool)
        assert isinstance(opened.platform.creates_are_safe, bool)


async def test_what_a_person_writes_arrives_as_it_was_written(bench: Bench) -> None:
    update = await bench.say("hello *you* 😀\nline two")
    assert update.platform == bench.platform.name
    assert update.account == bench.platform.account
    assert update.raw.isascii()
    event = bench.platform.normalise(update.raw)
    assert isinstance(event, MessageEvent)
    assert event.text == "hello *you* 😀\nline two"
    assert (event.identity, event.chat) == (update.identity, update.chat)
    assert (event.message_ref, event.sent_at) == (update.message_ref, update.sent_at)
    assert (event.address.platform, event.address.account) == (update.platform, update.account)


async def test_two_messages_have_two_keys(bench: Bench) -> None:
    first, second = await bench.say("one"), await bench.say("two")
    assert first.dedup_key != second.dedup_key
    assert first.message_ref != second.message_ref


async def test_an_update_can_be_normalised_by_a_later_process(bench: Bench) -> None:
    update = await bench.say("hello")
    later = LATER[bench.platform.name]()
    assert later.normalise(update.raw) == bench.platform.normalise(update.raw)


async def test_a_waiting_receive_ends_when_it_is_cancelled(bench: Bench) -> None:
    async def listen() -> None:
        while True:  # what the connection itself brought comes first
            bench.platform.confirm(await bench.platform.receive())

    waiting = asyncio.get_running_loop().create_task(listen())
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_deaf_platform_is_closed_all_the_same_and_leaves_nothing(bench: Bench) -> None:
    tasks, threads, before = asyncio.all_tasks(), threading.active_count(), sockets()
    bench.go_deaf()
    waiting = asyncio.get_running_loop().create_task(bench.platform.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(3):
        await bench.platform.aclose()
        await bench.platform.aclose()
    for _ in range(5):
        await asyncio.sleep(0)
    left = {task for task in asyncio.all_tasks() - tasks if "simulators" not in repr(task.get_coro())}
    assert not {task for task in left if "platforms" in repr(task.get_coro())}
    assert threading.active_count() <= threads
    assert sockets() <= before


async def test_it_can_be_rebuilt_again_and_again(bench: Bench) -> None:
    for round_number in range(3):
        await bench.platform.rebuild()
        await bench.platform.connect()
        event = bench.platform.normalise((await bench.say(f"round {round_number}")).raw)
        assert isinstance(event, MessageEvent)
        assert event.text == f"round {round_number}"


async def test_confirming_an_empty_batch_is_fine(bench: Bench) -> None:
    bench.platform.confirm(Batch(()))
    assert isinstance(bench.platform.normalise((await bench.say("still here")).raw), MessageEvent)


async def test_a_reply_is_rendered_into_json_parts_and_a_blank_one_is_poison(bench: Bench) -> None:
    parts = bench.platform.render("**hello** " * 2000)
    assert parts
    assert all(json.loads(part.payload) for part in parts)
    with pytest.raises(Poison):
        bench.platform.render(" \n ")


async def test_a_send_ends_in_a_receipt_or_in_facts(bench: Bench) -> None:
    event = bench.platform.normalise((await bench.say("question")).raw)
    assert isinstance(event, MessageEvent)
    (part,) = bench.platform.render("answer")
    outgoing = Outgoing(event.address, Operation.CREATE, part.payload, "nonce")
    if bench.platform.delivers_at_commit:
        with pytest.raises(PlatformFailure):
            await bench.platform.send(outgoing)
    else:
        assert (await bench.platform.send(outgoing)).message_ref
        await bench.platform.typing(event.address)


async def test_a_file_that_is_not_there_ends_in_facts(bench: Bench) -> None:
    with pytest.raises(PlatformFailure):
        await bench.platform.download(AttachmentRef("photo", "no-such-file"), 1000)


async def test_after_its_end_a_send_fails_as_not_sent(bench: Bench) -> None:
    await bench.platform.aclose()
    address = Address(bench.platform.name, bench.platform.account, "7")
    (part,) = bench.platform.render("late")
    with pytest.raises(PlatformFailure) as caught:
        await bench.platform.send(Outgoing(address, Operation.CREATE, part.payload, "n"))
    assert caught.value.facts.sent in {Sent.NOT_SENT, Sent.REFUSED}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize("platform", [make() for make in LATER.values()], ids=lambda p: p.name)
@given(st.text(max_size=50) | _JSON.map(json.dumps))
def test_normalising_anything_gives_an_event_or_poison(platform: Platform, raw: str) -> None:
    try:
        event = platform.normalise(raw)
    except Poison:
        return
    assert isinstance(event, MessageEvent | ButtonEvent | NothingToDo)


@pytest.mark.parametrize("platform", [make() for make in LATER.values()], ids=lambda p: p.name)
@given(st.text(max_size=200))
def test_rendering_anything_gives_parts_or_poison(platform: Platform, text: str) -> None:
    try:
        parts = platform.render(text)
    except Poison:
        return
    assert parts
    assert all(isinstance(json.loads(part.payload), dict) for part in parts)
