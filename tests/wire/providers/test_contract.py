"""What every provider promises, whatever is behind it (``core.ports.Provider``)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FaultKind
from hermes.core.ports import Provider
from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    Item,
    ModelRequest,
    ToolCall,
    ToolResultItem,
    ToolSpec,
    UserItem,
)
from hermes.providers.rehearsal import create as rehearsal_kind
from tests.wire.providers.dialects import DIALECTS, Dialect, answer, ask
from tests.wire.providers.upstream import Upstream

pytestmark = pytest.mark.wire


@dataclass(frozen=True)
class Still:
    """Configuration of a rehearsal that waits for nothing."""

    speed: float = 0.0


@pytest.fixture(params=[*DIALECTS, None], ids=["openai", "anthropic", "rehearsal"])
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    dialect: Dialect | None = request.param
    if dialect is None:
        yield rehearsal_kind.create("main", Still())
        return
    async with Upstream(answer(dialect, "Hel", "lo ", "wörld")) as upstream:
        provider = dialect.provider(upstream.url)
        yield provider
        await provider.aclose()


async def test_its_name_is_the_configurations(provider: Provider) -> None:
    assert provider.name == "main"


async def test_what_was_shown_is_what_is_returned(provider: Provider) -> None:
    shown: list[str] = []
    reply = await provider.complete(ask(), shown.append)
    assert "".join(shown) == reply.text != ""
    assert reply.finish is FinishReason.STOP
    assert reply.tool_calls == ()
    assert reply.model
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


AWKWARD: dict[str, tuple[Item, ...]] = {
    "half an emoji": (UserItem("a \ud83d b \udc00"),),
    "a call without a result": (
        UserItem("look"),
        AssistantItem("", (ToolCall("c1", "read_file", "{}"),)),
        UserItem("and?"),
    ),
    "a result without a call": (
        UserItem("look"),
        ToolResultItem("c9", "read_file", "text"),
        UserItem("and?"),
    ),
    "two results for one call": (
        UserItem("look"),
        AssistantItem("", (ToolCall("c1", "read_file", "{}"),)),
        ToolResultItem("c1", "read_file", "one"),
        ToolResultItem("c1", "read_file", "two"),
    ),
    "arguments that are no JSON": (
        UserItem("look"),
        AssistantItem("", (ToolCall("c1", "read_file", "{oops"),)),
        ToolResultItem("c1", "read_file", "no"),
    ),
    "an assistant first": (AssistantItem("I am here."), UserItem("good")),
    "nothing said": (UserItem(""),),
    "blanks said": (UserItem(" \n"),),
    "a note last": (UserItem("hi"), AssistantItem("hello"), UserItem("restarted", note=True)),
}


@pytest.mark.parametrize("items", AWKWARD.values(), ids=AWKWARD.keys())
@pytest.mark.parametrize("tools", [True, False], ids=["tools", "no tools"])
async def test_an_awkward_transcript_is_answered(
    provider: Provider, items: tuple[Item, ...], tools: bool
) -> None:
    specs = (ToolSpec("read_file", "Reads.", {"type": "object", "properties": {}}),) if tools else ()
    reply = await provider.complete(ModelRequest("m", "", items, specs), lambda text: None)
    assert reply.text


async def test_a_long_conversation_is_sent_whole(provider: Provider) -> None:
    items = tuple(UserItem(f"{number} " + "word " * 50_000) for number in range(16))
    assert (await provider.complete(ModelRequest("m", "", items), lambda text: None)).text


async def test_calls_at_once_do_not_disturb_each_other(provider: Provider) -> None:
    async def one(number: int) -> tuple[str, str]:
        shown: list[str] = []
        reply = await provider.complete(ask(f"call {number}"), shown.append)
        return reply.text, "".join(shown)

    for text, shown in await asyncio.gather(*(one(number) for number in range(30))):
        assert text == shown != ""


async def test_a_rebuild_leaves_calls_under_way_alone(provider: Provider) -> None:
    calls = [asyncio.ensure_future(provider.complete(ask(), lambda text: None)) for _ in range(5)]
    await asyncio.sleep(0)
    await provider.rebuild()
    replies = await asyncio.gather(*calls, provider.complete(ask(), lambda text: None))
    assert all(reply.text for reply in replies)


async def test_after_the_end_a_call_is_refused_and_the_end_may_come_twice(provider: Provider) -> None:
    await provider.complete(ask(), lambda text: None)
    await provider.aclose()
    await provider.aclose()
    with pytest.raises(ProviderFailure) as caught:
        await provider.complete(ask(), lambda text: None)
    assert caught.value.facts.kind is FaultKind.REQUEST_INVALID


async def test_it_starts_no_thread_and_leaves_no_task(provider: Provider) -> None:
    threads = set(threading.enumerate())
    await provider.complete(ask(), lambda text: None)
    await provider.rebuild()
    await provider.complete(ask(), lambda text: None)
    ours = asyncio.all_tasks()
    await provider.aclose()
    assert set(threading.enumerate()) == threads
    assert asyncio.all_tasks() <= ours
    assert not any("aiohttp" in repr(task.get_coro()) for task in asyncio.all_tasks())
