"""Both model simulators against the real SDKs: each fault gives the exception that the SDK facts name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from hermes.simulators.answers import Finish
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.faults import (
    ApiError,
    CutStream,
    Fault,
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
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator, answer

pytestmark = pytest.mark.wire
MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "hello there"}]
PATIENCE = 0.3


class OpenAISide:
    """The OpenAI simulator and the SDK in front of it."""

    errors: Any = openai

    def __init__(self) -> None:
        self.sim: ModelSimulator = OpenAISimulator()

    async def ask(self, *, stream: bool, messages: Any = MESSAGES) -> Any:
        async with openai.AsyncOpenAI(
            api_key="k", base_url=f"{self.sim.url}/v1", max_retries=0, timeout=PATIENCE
        ) as client:
            made: Any = await client.chat.completions.create(model="m", messages=messages, stream=stream)
            return made if not stream else [chunk async for chunk in made]

    @staticmethod
    def ended(chunks: list[Any]) -> bool:
        return any(choice.finish_reason for chunk in chunks for choice in chunk.choices)


class AnthropicSide:
    """The Anthropic simulator and the SDK in front of it."""

    errors: Any = anthropic

    def __init__(self) -> None:
        self.sim: ModelSimulator = AnthropicSimulator()

    async def ask(self, *, stream: bool, messages: Any = MESSAGES) -> Any:
        async with anthropic.AsyncAnthropic(
            api_key="k", base_url=self.sim.url, max_retries=0, timeout=PATIENCE
        ) as client:
            made: Any = await client.messages.create(
                model="m", max_tokens=99, messages=messages, stream=stream
            )
            return made if not stream else [event async for event in made]

    @staticmethod
    def ended(events: list[Any]) -> bool:
        return any(event.type == "message_stop" for event in events)


Side = OpenAISide | AnthropicSide


@pytest.fixture(params=[OpenAISide, AnthropicSide], ids=["openai", "anthropic"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    made: Side = request.param()
    async with made.sim:
        yield made


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("fault", "openai_name", "anthropic_name"),
    [
        (ApiError(400, "no"), "BadRequestError", "BadRequestError"),
        (ApiError(401, "no"), "AuthenticationError", "AuthenticationError"),
        (ApiError(402, "no"), "APIStatusError", "PaymentRequiredError"),
        (ApiError(403, "no"), "PermissionDeniedError", "PermissionDeniedError"),
        (ApiError(404, "no"), "NotFoundError", "NotFoundError"),
        (ApiError(408, "no"), "APIStatusError", "RequestTimeoutError"),
        (ApiError(409, "no"), "ConflictError", "ConflictError"),
        (ApiError(413, "no"), "APIStatusError", "ContentTooLargeError"),
        (ApiError(422, "no"), "UnprocessableEntityError", "UnprocessableEntityError"),
        (ApiError(429, "no"), "RateLimitError", "RateLimitError"),
        (ApiError(500, "no"), "InternalServerError", "InternalServerError"),
        (ApiError(503, "no"), "InternalServerError", "ServiceUnavailableError"),
        (ApiError(529, "no"), "InternalServerError", "OverloadedError"),
        (html_page(502), "InternalServerError", "InternalServerError"),
        (Overflow(), "BadRequestError", "BadRequestError"),
        (Reset(), "APIConnectionError", "APIConnectionError"),
        (Reset(delivered=True), "APIConnectionError", "APIConnectionError"),
        (Stall(), "APITimeoutError", "APITimeoutError"),
        (Stall(delivered=True), "APITimeoutError", "APITimeoutError"),
    ],
)
async def test_a_fault_before_the_answer_has_the_class_of_the_facts(
    side: Side, fault: Fault, openai_name: str, anthropic_name: str, stream: bool
) -> None:
    side.sim.script(fault)
    with pytest.raises(side.errors.APIError) as caught:
        await side.ask(stream=stream)
    expected = openai_name if isinstance(side, OpenAISide) else anthropic_name
    assert type(caught.value).__name__ == expected
    assert side.sim.requests[0].fault == type(fault).__name__


async def test_an_error_carries_headers_and_type(side: Side) -> None:
    side.sim.faults.add(ApiError(429, "slow down", headers={"retry-after": "7"}))
    with pytest.raises(side.errors.RateLimitError) as caught:
        await side.ask(stream=False)
    assert caught.value.response.headers["retry-after"] == "7"
    assert "slow down" in caught.value.message


async def test_an_answer_of_the_wrong_type_is_not_noticed_by_the_sdk(side: Side) -> None:
    side.sim.script(html_page(200), empty_object(), garbage_json())
    assert isinstance(await side.ask(stream=False), str)
    empty = await side.ask(stream=False)
    assert getattr(empty, "choices", None) is None
    assert getattr(empty, "content", None) is None
    with pytest.raises(json.JSONDecodeError):
        await side.ask(stream=False)


async def test_an_error_object_inside_a_200_looks_like_an_empty_answer(side: Side) -> None:
    side.sim.script(ApiError(500, "hidden", in_200=True))
    found = await side.ask(stream=False)
    assert getattr(found, "choices", None) is None
    assert getattr(found, "content", None) is None
    assert "hidden" in str(found.model_extra)


async def test_a_plain_document_for_a_stream_is_a_stream_of_nothing(side: Side) -> None:
    side.sim.script(WholeAnswer())
    assert await side.ask(stream=True) == []


async def test_a_clean_end_without_the_terminator_raises_nothing(side: Side) -> None:
    side.sim.script(CutStream(after=2, clean=True))
    chunks = await side.ask(stream=True)
    assert chunks
    assert not side.ended(chunks)
    assert side.sim.requests[0].outcome == "broken"


async def test_a_stream_that_is_reset(side: Side) -> None:
    side.sim.script(CutStream(after=1))
    if isinstance(side, OpenAISide):
        with pytest.raises(openai.APIConnectionError):
            await side.ask(stream=True)
    else:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            await side.ask(stream=True)


async def test_a_stream_that_goes_silent(side: Side) -> None:
    side.sim.script(StallStream(after=1))
    expected = openai.APITimeoutError if isinstance(side, OpenAISide) else httpx2.ReadTimeout
    with pytest.raises(expected):
        await side.ask(stream=True)
    await side.sim.wait_for(lambda: side.sim.active == 0)


async def test_an_error_event_in_a_stream(side: Side) -> None:
    side.sim.script(StreamError(after=1, kind="overloaded_error", message="too much"))
    with pytest.raises(side.errors.APIError) as caught:
        await side.ask(stream=True)
    assert caught.value.type == "overloaded_error"
    if isinstance(side, AnthropicSide):
        assert caught.value.status_code == 200
    else:
        assert type(caught.value) is openai.APIError


async def test_garbage_in_a_stream(side: Side) -> None:
    side.sim.script(GarbageStream(after=1))
    with pytest.raises(json.JSONDecodeError):
        await side.ask(stream=True)


async def test_a_stall_after_the_headers(side: Side) -> None:
    side.sim.script(Stall(after_headers=True))
    with pytest.raises((side.errors.APITimeoutError, httpx2.ReadTimeout)):
        await side.ask(stream=False)


@pytest.mark.parametrize("cut", [False, True], ids=["closed", "cut"])
async def test_half_a_tool_call(side: Side, cut: bool) -> None:
    side.sim.script(HalfToolCall("read", '{"path": "/et', cut=cut))
    if cut:
        with pytest.raises((side.errors.APIError, httpx2.HTTPError)):
            await side.ask(stream=True)
        return
    chunks = await side.ask(stream=True)
    assert side.ended(chunks)
    if isinstance(side, OpenAISide):
        calls = [
            call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []
        ]
        assert "".join(call.function.arguments for call in calls) == '{"path": "/et'
    else:
        parts = [event.delta.partial_json for event in chunks if event.type == "content_block_delta"]
        assert "".join(parts) == '{"path": "/et'


async def test_a_truncated_and_an_empty_answer(side: Side) -> None:
    side.sim.script(answer("cut of", finish=Finish.LENGTH), answer(""))
    truncated, empty = await side.ask(stream=False), await side.ask(stream=False)
    if isinstance(side, OpenAISide):
        assert truncated.choices[0].finish_reason == "length"
        assert empty.choices[0].message.content == ""
    else:
        assert truncated.stop_reason == "max_tokens"
        assert empty.content == []


async def test_a_closed_socket_refuses_and_the_same_port_opens_again(side: Side) -> None:
    port = side.sim.port
    side.sim.refuse_for(0.2)
    with pytest.raises(side.errors.APIConnectionError) as caught:
        await side.ask(stream=False)
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
    await side.sim.wait_for(lambda: side.sim.listening)
    assert await side.ask(stream=False)
    assert side.sim.port == port


async def test_a_connection_can_be_reset_before_it_is_read(side: Side) -> None:
    side.sim.reset_connects = 1
    with pytest.raises(side.errors.APIConnectionError):
        await side.ask(stream=False)
    assert side.sim.requests == []
    assert await side.ask(stream=False)


async def test_a_connection_that_ends_without_an_answer(side: Side) -> None:
    side.sim.script(Reset(fin=True))
    with pytest.raises(side.errors.APIConnectionError) as caught:
        await side.ask(stream=False)
    assert isinstance(caught.value.__cause__, httpx2.RemoteProtocolError)


@pytest.mark.parametrize("kind", [OpenAISide, AnthropicSide], ids=["openai", "anthropic"])
def test_connections_are_reset_under_uvloop_as_well(kind: type[Side]) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not on this platform")

    async def provoke() -> list[str]:
        side, causes = kind(), []
        async with side.sim:
            side.sim.script(Reset(), CutStream(after=1))
            for stream in (False, True):
                with pytest.raises((side.errors.APIConnectionError, httpx2.HTTPError)) as caught:
                    await side.ask(stream=stream)
                causes.append(type(caught.value.__cause__ or caught.value).__name__)
            side.sim.refuse_for(0.1)
            with pytest.raises(side.errors.APIConnectionError) as refused:
                await side.ask(stream=False)
            causes.append(type(refused.value.__cause__).__name__)
            await side.sim.wait_for(lambda: side.sim.listening)
            assert await side.ask(stream=False)
        return causes

    causes = uvloop.run(provoke())
    assert causes[0] == "ReadError"
    assert causes[1] in ("ReadError", "RemoteProtocolError")
    assert causes[2] == "ConnectError"


async def test_a_rule_of_faults_hits_by_text_count_and_endpoint(side: Side) -> None:
    side.sim.faults.add(ApiError(500, "never"), endpoint="/v1/other")
    side.sim.faults.add(ApiError(503, "third"), contains="hello", after=2)
    assert await side.ask(stream=False)
    assert await side.ask(stream=False)
    with pytest.raises(side.errors.InternalServerError, match="third"):
        await side.ask(stream=False)
    assert await side.ask(stream=False)
