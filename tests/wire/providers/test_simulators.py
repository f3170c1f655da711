"""The adapters against the simulators, which refuse what the services refuse, strictly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FaultKind
from hermes.core.ports import Provider
from hermes.core.transcript import FinishReason, Item, ModelRequest, ToolSpec
from hermes.simulators.answers import Answer, answer, tool_call
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.faults import (
    ApiError,
    CutStream,
    Drip,
    GarbageStream,
    HalfToolCall,
    Overflow,
    Reset,
    Stall,
    StallStream,
    StreamError,
    WholeAnswer,
    empty_object,
    garbage_json,
    html_page,
)
from hermes.simulators.faults import Fault as Order
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from tests.wire.providers.dialects import DIALECTS, Dialect, ask
from tests.wire.providers.test_contract import AWKWARD

pytestmark = pytest.mark.wire

SPEC = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})


@dataclass(frozen=True)
class Bench:
    """A provider and the simulator behind it."""

    dialect: Dialect
    simulator: ModelSimulator
    provider: Provider


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    kind = OpenAISimulator if request.param.name == "openai" else AnthropicSimulator
    async with kind(api_key="sk-test") as simulator:
        provider = request.param.provider(simulator.url, stall_timeout=0.3, first_byte_timeout=0.3)
        yield Bench(request.param, simulator, provider)
        await provider.aclose()


@pytest.mark.parametrize("items", AWKWARD.values(), ids=AWKWARD.keys())
@pytest.mark.parametrize("tools", [(SPEC,), ()], ids=["tools", "no tools"])
async def test_no_transcript_is_refused(
    bench: Bench, items: tuple[Item, ...], tools: tuple[ToolSpec, ...]
) -> None:
    reply = await bench.provider.complete(ModelRequest("m", "Be brief.", items, tools), lambda text: None)
    assert reply.text
    assert bench.simulator.requests[-1].outcome == "answered"


async def test_text_and_tool_calls_arrive_however_the_bytes_are_cut(bench: Bench) -> None:
    bench.simulator.faults.add(Drip(gap=0.0, size=3))
    bench.simulator.script(answer("Ünïcode 😀 in pieces"))
    reply = await bench.provider.complete(ask(), lambda text: None)
    assert reply.text == "Ünïcode 😀 in pieces"
    bench.simulator.script(tool_call("read_file", {"path": "a"}))
    reply = await bench.provider.complete(ModelRequest("m", "", ask().items, (SPEC,)), lambda text: None)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("read_file", '{"path": "a"}')]
    assert reply.finish is FinishReason.TOOL_CALLS


async def test_thinking_is_not_shown(bench: Bench) -> None:
    bench.simulator.script(Answer("So.", thinking="Let me see."))
    shown: list[str] = []
    assert (await bench.provider.complete(ask(), shown.append)).text == "".join(shown) == "So."


async def test_a_plain_answer_to_a_stream_is_taken(bench: Bench) -> None:
    bench.simulator.faults.add(WholeAnswer())
    bench.simulator.script(answer("all at once"))
    assert (await bench.provider.complete(ask(), lambda text: None)).text == "all at once"


FAULTS: list[tuple[str, Order, FaultKind]] = [
    ("reset", Reset(), FaultKind.RESET),
    ("stall", Stall(), FaultKind.FIRST_BYTE_TIMEOUT),
    ("stall after the head", Stall(after_headers=True), FaultKind.FIRST_BYTE_TIMEOUT),
    ("page", html_page(502), FaultKind.HTTP_STATUS),
    ("page in a 200", html_page(200), FaultKind.WRONG_TYPE),
    ("empty object", empty_object(), FaultKind.WRONG_TYPE),
    ("garbage", garbage_json(), FaultKind.BAD_JSON),
    ("error", ApiError(529, "Overloaded", "overloaded_error"), FaultKind.HTTP_STATUS),
    ("error in a 200", ApiError(429, "No", "rate_limit", in_200=True), FaultKind.ERROR_IN_200),
    ("overflow", Overflow(), FaultKind.HTTP_STATUS),
    ("cut", CutStream(), FaultKind.CUT),
    ("cut cleanly", CutStream(clean=True), FaultKind.ENDED_EARLY),
    ("stall in the stream", StallStream(), FaultKind.STALLED),
    ("error event", StreamError(kind="server_error", message="boom"), FaultKind.ERROR_EVENT),
    ("garbage event", GarbageStream(), FaultKind.BAD_JSON),
    ("half a call", HalfToolCall(), FaultKind.TRUNCATED_TOOL_CALL),
    ("half a call, cut", HalfToolCall(cut=True), FaultKind.CUT),
    ("half a call at the limit", HalfToolCall(finish="length"), FaultKind.TRUNCATED_TOOL_CALL),
]


@pytest.mark.parametrize(("order", "kind"), [each[1:] for each in FAULTS], ids=[each[0] for each in FAULTS])
async def test_each_fault_has_its_name_and_the_next_call_succeeds(
    bench: Bench, order: Order, kind: FaultKind
) -> None:
    bench.simulator.faults.add(order)
    with pytest.raises(ProviderFailure) as caught:
        await bench.provider.complete(ask(), lambda text: None)
    assert caught.value.facts.kind is kind
    assert (await bench.provider.complete(ask(), lambda text: None)).text == "You said: hi"


async def test_connections_are_used_again(bench: Bench) -> None:
    for _ in range(10):
        await bench.provider.complete(ask(), lambda text: None)
    assert bench.simulator.connections == 1
    await bench.provider.rebuild()
    await bench.provider.complete(ask(), lambda text: None)
    assert bench.simulator.connections == 2


async def test_a_server_that_went_away_and_came_back_is_found_again(bench: Bench) -> None:
    await bench.provider.complete(ask(), lambda text: None)
    await bench.simulator.stop()
    for _ in range(10):
        await asyncio.sleep(0)  # the loop reads the end of the idle connection
    with pytest.raises(ProviderFailure) as caught:
        await bench.provider.complete(ask(), lambda text: None)
    assert caught.value.facts.kind is FaultKind.REFUSED
    await bench.simulator.start()
    assert (await bench.provider.complete(ask(), lambda text: None)).text


async def test_a_cancelled_call_is_abandoned_at_once(bench: Bench) -> None:
    bench.simulator.faults.add(StallStream())
    seen = asyncio.Event()
    call = asyncio.ensure_future(bench.provider.complete(ask(), lambda text: seen.set()))
    await seen.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await bench.simulator.wait_for(lambda: bench.simulator.active == 0)
    assert bench.simulator.requests[-1].outcome != "answered"
