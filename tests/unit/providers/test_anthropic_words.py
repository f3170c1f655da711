"""Our words in Anthropic's dialect, and its words in ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from hermes.core.failures import FaultKind
from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    Item,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResultItem,
    ToolSpec,
    ToolStatus,
    Usage,
    UserItem,
)
from hermes.providers.answers import WrongAnswer
from hermes.providers.anthropic.translate import DEFAULT_OUTPUT, AnthropicAnswer, render
from hermes.providers.anthropic.valid import problems
from hermes.providers.sse import SseEvent
from tests.unit.providers.items import ITEMS

SPEC = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def request(*items: Item, **more: Any) -> ModelRequest:
    return ModelRequest("m", more.pop("system", ""), items, **more)


def said(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def event(kind: str, **body: Any) -> SseEvent:
    return SseEvent(kind, json.dumps({"type": kind, **body}))


def begins(index: int, kind: str, **more: Any) -> SseEvent:
    return event("content_block_start", index=index, content_block={"type": kind, **more})


def adds(index: int, kind: str, **more: Any) -> SseEvent:
    return event("content_block_delta", index=index, delta={"type": kind, **more})


def stops(reason: str) -> SseEvent:
    return event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 3})


def folded(*events: SseEvent, shown: list[str] | None = None) -> ModelReply:
    fold = AnthropicAnswer("m", (shown if shown is not None else []).append)
    for each in events:
        fold.event(each)
    return fold.reply()


def test_a_conversation_is_rendered_as_the_api_wants_it() -> None:
    body = render(
        request(
            UserItem("look"),
            AssistantItem("I do.", (ToolCall("c1", "read_file", '{"path": "a"}'),)),
            ToolResultItem("c1", "read_file", "gone", ToolStatus.ERROR),
            UserItem("and?"),
            system="Be brief.",
            tools=(SPEC,),
            max_output=100,
        )
    )
    use = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "gone", "is_error": True}
    assert body == {
        "model": "m",
        "max_tokens": 100,
        "stream": True,
        "system": [{**said("Be brief."), "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [said("look")]},
            {"role": "assistant", "content": [said("I do."), use]},
            {"role": "user", "content": [result, said("and?")]},
        ],
        "tools": [{"name": "read_file", "description": "Reads a file.", "input_schema": SPEC.parameters}],
    }


def test_the_limit_that_the_dialect_demands_is_always_named() -> None:
    assert render(request(UserItem("hi")))["max_tokens"] == DEFAULT_OUTPUT


def test_the_stable_prefix_is_marked_and_no_mark_wanders_with_the_conversation() -> None:
    short = (UserItem("a"), AssistantItem("b"), UserItem("c"))
    body = render(request(*short, system="s"), caching=True)
    assert body["system"] == [{**said("s"), "cache_control": {"type": "ephemeral"}}]
    assert body["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in json.dumps(body["messages"])
    assert "cache_control" not in render(request(*short, system="s"))


@given(ITEMS)
def test_any_transcript_is_rendered_legally(items: tuple[Item, ...]) -> None:
    messages = render(request(*items, UserItem("and?"), system="s", tools=(SPEC,)))["messages"]
    json.dumps(messages, ensure_ascii=False).encode()  # no lone surrogate is left
    assert problems(messages) == ()
    used: set[str] = set()
    due: list[str] = []
    for index, message in enumerate(messages):
        assert message["role"] == ("user" if index % 2 == 0 else "assistant")
        blocks = message["content"]
        assert blocks
        assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == due
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not used & set(due)
        used |= set(due)
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "tool_use" or isinstance(block["input"], dict)
    assert not due
    assert all(each.isascii() and each.replace("_", "").replace("-", "").isalnum() for each in used)


@given(ITEMS)
def test_without_tools_no_tool_block_is_sent(items: tuple[Item, ...]) -> None:
    kinds = {block["type"] for message in render(request(*items))["messages"] for block in message["content"]}
    assert kinds <= {"text"}


def test_one_id_used_twice_becomes_two() -> None:
    asks, told = AssistantItem("", (ToolCall("c:1", "t", "{}"),)), ToolResultItem("c:1", "t", "x")
    messages = render(request(UserItem("go"), asks, told, asks, told, tools=(SPEC,)))["messages"]
    assert [messages[i]["content"][0]["id"] for i in (1, 3)] == ["c_1", "c_1_2"]
    assert [messages[i]["content"][0]["tool_use_id"] for i in (2, 4)] == ["c_1", "c_1_2"]


def test_a_streamed_answer_is_put_together() -> None:
    shown: list[str] = []
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    reply = folded(
        event("message_start", message={"model": "served", "usage": usage}),
        begins(0, "text", text=""), event("ping"),
        adds(0, "text_delta", text="Hel"), adds(0, "text_delta", text="lo"),
        event("content_block_stop", index=0), stops("end_turn"), event("message_stop"), shown=shown,
    )
    assert reply == ModelReply("Hello", (), FinishReason.STOP, Usage(10, 3, 3, 2), "served")
    assert shown == ["Hel", "lo"]


def test_a_ping_is_no_progress() -> None:
    fold = AnthropicAnswer("m", lambda text: None)
    assert not fold.event(event("ping"))
    assert fold.event(event("message_start", message={}))
    assert fold.event(adds(0, "thinking_delta", thinking="hm"))
    assert not fold.event(event("content_block_stop", index=0))
    assert not fold.event(event("a_kind_of_tomorrow"))


def test_tool_calls_are_put_together() -> None:
    reply = folded(
        begins(0, "text"), adds(0, "text_delta", text="Look:"),
        begins(1, "tool_use", id="a", name="f", input={}),
        adds(1, "input_json_delta", partial_json='{"x"'), adds(1, "input_json_delta", partial_json=": 1}"),
        begins(2, "tool_use", id="b", name="g", input={}), stops("tool_use"),
    )
    assert reply.tool_calls == (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", "{}"))
    assert (reply.text, reply.finish) == ("Look:", FinishReason.TOOL_CALLS)


def test_half_arguments_are_never_returned() -> None:
    with pytest.raises(WrongAnswer) as caught:
        folded(begins(0, "tool_use", id="a", name="f"), adds(0, "input_json_delta", partial_json='{"x'),
               stops("tool_use"))
    assert caught.value.kind is FaultKind.TRUNCATED_TOOL_CALL


def test_thinking_goes_back_to_the_model_that_thought_it_and_to_no_other() -> None:
    reply = folded(
        begins(0, "thinking"), adds(0, "thinking_delta", thinking="hm"),
        adds(0, "signature_delta", signature="sig"), begins(1, "redacted_thinking", data="xyz"),
        begins(2, "text"), adds(2, "text_delta", text="So."), stops("end_turn"),
    )
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "sig"},
              {"type": "redacted_thinking", "data": "xyz"}, said("So.")]
    item = AssistantItem(reply.text, (), reply.finish, "main", "m", reply.opaque)
    assert render(request(UserItem("?"), item, UserItem("ok")))["messages"][1]["content"] == blocks
    other = AssistantItem(reply.text, (), reply.finish, "main", "another", reply.opaque)
    assert render(request(UserItem("?"), other, UserItem("ok")))["messages"][1]["content"] == blocks[2:]


def test_a_refusal_may_be_wordless() -> None:
    assert folded(stops("refusal")).finish is FinishReason.CONTENT_FILTER


def test_a_full_window_ends_an_answer_as_a_limit_does() -> None:
    with pytest.raises(WrongAnswer) as caught:
        folded(begins(0, "text"), adds(0, "text_delta", text="Hel"), stops("model_context_window_exceeded"))
    assert caught.value.kind is FaultKind.TRUNCATED_ANSWER
    assert caught.value.body == {
        "stop_reason": "model_context_window_exceeded", "partial_text": "Hel", "input_tokens": 0,
    }  # fmt: skip


def test_a_plain_answer_is_an_answer() -> None:
    fold = AnthropicAnswer("m", lambda text: None)
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    fold.whole({"content": [said("hi"), use], "stop_reason": "tool_use", "usage": {"output_tokens": 1}})
    assert fold.reply().tool_calls == (ToolCall("a", "f", '{"x": 1}'),)


@pytest.mark.parametrize("nonsense", [
    {"type": "message_start", "message": 7}, {"type": "message_delta", "delta": 7, "usage": 7},
    {"type": "content_block_start", "content_block": 7}, {"type": "content_block_delta", "delta": 7},
    {"type": "content_block_delta", "index": [], "delta": {"type": "text_delta", "text": 7}}, {}, {"type": 7},
])
def test_nonsense_in_an_event_breaks_nothing(nonsense: dict[str, Any]) -> None:
    odd = SseEvent("message", json.dumps(nonsense))
    reply = folded(adds(0, "text_delta", text="hi"), odd, stops("end_turn"))
    assert reply.text == "hi"
