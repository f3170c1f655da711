"""Both model simulators against the real SDKs: answers, tools, limits and strict refusals."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest

from hermes.simulators.answers import answer, tool_call
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.faults import Delay, Drip
from hermes.simulators.models import RateLimits
from hermes.simulators.openai import OpenAISimulator

pytestmark = pytest.mark.wire
HELLO: Any = [{"role": "user", "content": "hello"}]


def openai_client(sim: OpenAISimulator, key: str = "k") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=key, base_url=sim.base_url, max_retries=0, timeout=5)


def anthropic_client(sim: AnthropicSimulator, key: str = "k") -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key=key, base_url=sim.base_url, max_retries=0, timeout=5)


async def test_openai_answers_whole_and_streamed() -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        whole = await client.chat.completions.create(model="m", messages=HELLO)
        assert whole.choices[0].message.content == "You said: hello"
        sim.script(answer("a scripted text", usage=(11, 7)))
        stream = await client.chat.completions.create(
            model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == "a scripted text"
    assert len([text for text in texts if text]) == 4
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (11, 7)
    assert [request.outcome for request in sim.requests] == ["answered", "answered"]


async def test_without_include_usage_a_stream_tells_no_usage() -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        assert all(chunk.usage is None for chunk in [chunk async for chunk in stream])


async def test_openai_calls_tools_whole_and_streamed() -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        sim.script(*[tool_call("read", {"path": "a"}, ("list", {}), text="Let me see", id="c1")] * 2)
        whole = await client.chat.completions.create(model="m", messages=HELLO)
        calls = whole.choices[0].message.tool_calls or []
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        deltas = [call async for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]
    assert [call.function.name for call in calls if call.type == "function"] == ["read", "list"]
    assert calls[0].id == "c1"
    first = "".join(call.function.arguments or "" for call in deltas if call.index == 0 and call.function)
    assert first == '{"path": "a"}'
    assert [call.function.name for call in deltas if call.function and call.function.name] == ["read", "list"]


async def test_openai_lists_models_and_refuses_others() -> None:
    async with OpenAISimulator(models=("one", "two")) as sim, openai_client(sim) as client:
        assert [model.id async for model in client.models.list()] == ["one", "two"]
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="three", messages=HELLO)
    assert caught.value.code == "model_not_found"


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("messages", "refusal"),
    [
        ([], "empty array"),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
        ([{"role": "user", "content": None}], "expected a string, got null"),
        ([{"role": "assistant", "content": None}], "expected a string, got null"),
        ([{"role": "assistant", "content": "x", "tool_calls": []}], "empty array"),
        (
            [*HELLO, {"role": "tool", "tool_call_id": "c1", "content": "x"}],
            "must be a response to a preceeding",
        ),
        ([*HELLO, {"role": "assistant", "tool_calls": [CALL]}], "did not have response messages: c1"),
        ([*HELLO, {"role": "assistant", "tool_calls": [CALL]}, *HELLO], "did not have response messages: c1"),
    ],
)
async def test_openai_refuses_a_wrong_transcript_as_the_service_does(messages: Any, refusal: str) -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        with pytest.raises(openai.BadRequestError, match=refusal) as caught:
            await client.chat.completions.create(model="m", messages=messages)
    assert caught.value.type == "invalid_request_error"
    assert sim.requests[0].outcome == "refused"


async def test_openai_takes_a_transcript_with_paired_calls() -> None:
    messages: Any = [
        *HELLO,
        {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        assert (await client.chat.completions.create(model="m", messages=messages)).choices


async def test_a_wrong_key_is_refused() -> None:
    async with OpenAISimulator(api_key="right") as sim, openai_client(sim, "wrong-key-of-mine") as client:
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided: wron"):
            await client.chat.completions.create(model="m", messages=HELLO)
    async with AnthropicSimulator(api_key="right") as other, anthropic_client(other, "wrong") as asker:
        with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
            await asker.messages.create(model="m", max_tokens=9, messages=HELLO)


async def test_a_long_prompt_overflows_in_the_words_of_each_service() -> None:
    long: Any = [{"role": "user", "content": "x" * 4000}]
    async with OpenAISimulator(context_limit=500) as sim, openai_client(sim) as client:
        with pytest.raises(openai.BadRequestError, match="maximum context length is 500 tokens") as caught:
            await client.chat.completions.create(model="m", messages=long)
        assert caught.value.code == "context_length_exceeded"
        assert await client.chat.completions.create(model="m", messages=HELLO)
    async with AnthropicSimulator(context_limit=500) as other, anthropic_client(other) as asker:
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 500 maximum"):
            await asker.messages.create(model="m", max_tokens=9, messages=long)


async def test_rate_limits_are_told_and_then_refused() -> None:
    async with OpenAISimulator(rate_limits=RateLimits(requests=1)) as sim, openai_client(sim) as client:
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=HELLO)
        assert raw.headers["x-ratelimit-remaining-requests"] == "0"
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model="m", messages=HELLO)
        assert int(caught.value.response.headers["retry-after"]) > 50
    limits = RateLimits(requests=9)
    async with AnthropicSimulator(rate_limits=limits) as other, anthropic_client(other) as asker:
        answered = await asker.messages.with_raw_response.create(model="m", max_tokens=9, messages=HELLO)
    assert answered.headers["anthropic-ratelimit-requests-remaining"] == "8"


async def test_anthropic_answers_whole_and_streamed() -> None:
    async with AnthropicSimulator() as sim, anthropic_client(sim) as client:
        whole = await client.messages.create(model="m", max_tokens=9, messages=HELLO)
        assert whole.content[0].type == "text"
        assert whole.content[0].text == "You said: hello"
        sim.script(answer("a scripted text", thinking="hm", usage=(11, 7)))
        async with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
            texts = [text async for text in stream.text_stream]
            final = await stream.get_final_message()
    assert "".join(texts) == "a scripted text"
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("end_turn", 11, 7)


async def test_anthropic_calls_tools_whole_and_streamed() -> None:
    async with AnthropicSimulator() as sim, anthropic_client(sim) as client:
        sim.script(*[tool_call("read", {"path": "a"}, ("list", {}), text="Let me see")] * 2)
        whole = await client.messages.create(model="m", max_tokens=9, messages=HELLO)
        async with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
            streamed = await stream.get_final_message()
    for message in (whole, streamed):
        uses = [block for block in message.content if block.type == "tool_use"]
        assert [(use.name, use.input) for use in uses] == [("read", {"path": "a"}), ("list", {})]
        assert message.stop_reason == "tool_use"


USE: Any = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}
RESULT: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}


@pytest.mark.parametrize(
    ("messages", "refusal"),
    [
        ([], "at least one message is required"),
        ([{"role": "assistant", "content": "x"}], 'first message must use the "user" role'),
        ([*HELLO, *HELLO], "roles must alternate"),
        ([{"role": "user", "content": ""}], "must have non-empty content"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "content blocks must be non-empty"),
        ([{"role": "user", "content": "  "}], "non-whitespace"),
        ([*HELLO, {"role": "assistant", "content": "x "}], "cannot end with trailing whitespace"),
        ([{"role": "system", "content": "x"}], 'Unexpected role "system"'),
        ([*HELLO, USE], "ids were found without `tool_result` blocks immediately after: t1"),
        ([*HELLO, USE, *HELLO], "ids were found without `tool_result` blocks immediately after: t1"),
        ([RESULT], "unexpected `tool_use_id` found in `tool_result` blocks: t1"),
    ],
)
async def test_anthropic_refuses_a_wrong_transcript_as_the_service_does(messages: Any, refusal: str) -> None:
    async with AnthropicSimulator() as sim, anthropic_client(sim) as client:
        with pytest.raises(anthropic.BadRequestError, match=refusal) as caught:
            await client.messages.create(model="m", max_tokens=9, messages=messages)
        assert caught.value.type == "invalid_request_error"
        assert await client.messages.create(model="m", max_tokens=9, messages=[*HELLO, USE, RESULT])


async def test_rules_answer_by_what_the_user_wrote() -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        sim.when("weather", answer("rain"), repeat=True)
        sim.script(answer("scripted"))
        said = []
        for text in ("the weather?", "hello", "weather again", "bye"):
            made = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": text}]
            )
            said.append(made.choices[0].message.content)
    assert said == ["rain", "scripted", "rain", "You said: bye"]


async def test_a_slow_answer_is_the_right_answer() -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        sim.script(Delay(0.05), Drip(gap=0.001, size=64))
        for stream in (False, False):
            made = await client.chat.completions.create(model="m", messages=HELLO, stream=stream)
            assert made.choices[0].message.content == "You said: hello"
        sim.script(Drip(gap=0.001, size=64))
        chunks = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in chunks]
    assert "".join(texts) == "You said: hello"


async def test_a_client_that_goes_away_is_seen() -> None:
    async with OpenAISimulator(latency=60) as sim, openai_client(sim) as client:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(client.chat.completions.create(model="m", messages=HELLO))
            await sim.wait_for(lambda: sim.active == 1)
            asking.cancel()
        await sim.wait_for(lambda: sim.active == 0)
    assert sim.requests[0].outcome == "abandoned"


async def test_a_restart_keeps_port_and_script() -> None:
    async with OpenAISimulator() as sim, openai_client(sim) as client:
        sim.script(answer("before"), answer("after"))
        port, said = sim.port, []
        for _ in range(2):
            made = await client.chat.completions.create(model="m", messages=HELLO)
            said.append(made.choices[0].message.content)
            await sim.restart()
    assert said == ["before", "after"]
    assert sim.port == port
