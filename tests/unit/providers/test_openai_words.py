"""Our words in OpenAI's dialect, and its many servers' words in ours."""

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
    Usage,
    UserItem,
)
from hermes.providers.answers import WrongAnswer
from hermes.providers.openai.translate import OpenAIAnswer, render
from hermes.providers.openai.valid import problems
from hermes.providers.sse import SseEvent
from tests.unit.providers.items import ITEMS

SPEC = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def request(*items: Item, **more: Any) -> ModelRequest:
    return ModelRequest("m", more.pop("system", ""), items, **more)


def delta(finish: str | None = None, **words: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": words, "finish_reason": finish}]})


def call(**more: Any) -> dict[str, Any]:
    function = {key: more.pop(key) for key in ("name", "arguments") if key in more}
    return {"function": function, **more}


def folded(*events: str, shown: list[str] | None = None) -> ModelReply:
    fold = OpenAIAnswer("m", (shown if shown is not None else []).append)
    for event in events:
        fold.event(SseEvent("message", event))
    return fold.reply()


def test_a_conversation_is_rendered_as_the_api_wants_it() -> None:
    body = render(
        request(
            UserItem("look"),
            AssistantItem("", (ToolCall("c1", "read_file", '{"path": "a"}'),)),
            ToolResultItem("c1", "read_file", "text"),
            AssistantItem("There."),
            UserItem("thanks"),
            system="Be brief.",
            tools=(SPEC,),
            max_output=100,
        )
    )
    function = {"name": "read_file", "arguments": '{"path": "a"}'}
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        {"role": "assistant", "content": "There."},
        {"role": "user", "content": "thanks"},
    ]
    assert body["tools"] == [{"type": "function", "function": {
        "name": "read_file", "description": "Reads a file.", "parameters": SPEC.parameters}}]
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert body["max_tokens"] == 100


def test_without_tools_or_limit_neither_is_named() -> None:
    assert not {"tools", "max_tokens", "max_completion_tokens"} & set(render(request(UserItem("hi"))))


def test_the_vendors_own_word_for_the_limit_can_be_chosen() -> None:
    body = render(request(UserItem("hi"), max_output=5), output_key="max_completion_tokens")
    assert body["max_completion_tokens"] == 5
    assert "max_tokens" not in body


@given(ITEMS)
def test_any_transcript_is_rendered_legally(items: tuple[Item, ...]) -> None:
    messages = render(request(*items, UserItem("and?"), system="s"))["messages"]
    json.dumps(messages, ensure_ascii=False).encode()  # no lone surrogate is left
    assert problems(messages) == ()
    due: list[str] = []
    for before, message in zip([None, *messages], messages, strict=False):
        if message["role"] == "tool":
            assert message["tool_call_id"] == due.pop(0)
            continue
        assert not due
        assert message["role"] != "user" or before is None or before["role"] not in ("user", "tool")
        for made in message.get("tool_calls", ()):
            assert isinstance(json.loads(made["function"]["arguments"]), dict)
            due.append(made["id"])
    assert not due


def test_a_streamed_answer_is_put_together() -> None:
    shown: list[str] = []
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    reply = folded(
        delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop"),
        json.dumps({"model": "served", "choices": [], "usage": usage}), "[DONE]", shown=shown,
    )
    assert reply == ModelReply("Hello", (), FinishReason.STOP, Usage(7, 2, 3), "served")
    assert shown == ["Hel", "lo"]


def test_an_emoji_split_in_two_is_shown_whole() -> None:
    shown: list[str] = []
    reply = folded(delta(content="a\ud83d"), delta(content="\ude00b"), delta("stop"), shown=shown)
    assert (reply.text, "".join(shown)) == ("a😀b", "a😀b")


def test_half_an_emoji_becomes_a_replacement_character() -> None:
    assert folded(delta(content="a\ud83d"), delta(content="b"), delta("stop")).text == "a�b"


def test_parts_of_content_and_refusals_are_text() -> None:
    assert folded(delta(content=[{"type": "text", "text": "hi"}]), delta("stop")).text == "hi"
    assert folded(delta(refusal="I must not."), delta("content_filter")).finish is FinishReason.CONTENT_FILTER


def test_reasoning_is_progress_and_no_text() -> None:
    fold = OpenAIAnswer("m", lambda text: None)
    fold.event(SseEvent("message", delta(role="assistant")))
    assert fold.event(SseEvent("message", delta(reasoning_content="hm")))
    assert fold.event(SseEvent("message", delta(reasoning="hm")))
    assert not fold.event(SseEvent("message", delta(content="")))
    fold.event(SseEvent("message", delta("stop", content="So.")))
    assert fold.reply().text == "So."


CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "in pieces": (
        [[call(index=0, id="a", name="f", arguments="")], [call(index=0, arguments='{"x"')],
         [call(index=0, arguments=": 1}")]],
        [("a", "f", '{"x": 1}')],
    ),
    "two side by side": (
        [[call(index=0, id="a", name="f", arguments="{")], [call(index=1, id="b", name="g", arguments="{")],
         [call(index=0, arguments="}")], [call(index=1, arguments="}")]],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "all numbered 0": (
        [[call(index=0, id="a", name="f")], [call(index=0, id="b", name="g", arguments="{}")]],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "not numbered": (
        [[call(id="a", name="f", arguments="{}"), call(id="b", name="g", arguments="{}")]],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "with the name and id again": (
        [[call(index=0, id="a", name="f", arguments="{")], [call(index=0, id="a", name="f", arguments="}")]],
        [("a", "f", "{}")],
    ),
    "with an object for arguments": (
        [[call(index=0, id="a", name="f", arguments={"x": 1})]], [("a", "f", '{"x": 1}')]
    ),
    "without arguments": ([[call(index=0, id="a", name="f")]], [("a", "f", "{}")]),
    "wrong in the middle": (
        [[call(index=0, id="a", name="f", arguments="{oops}")]], [("a", "f", "{oops}")]
    ),
}


@pytest.mark.parametrize(("pieces", "calls"), CALLS.values(), ids=CALLS.keys())
def test_tool_calls_are_put_together(
    pieces: list[list[dict[str, Any]]], calls: list[tuple[str, str, str]]
) -> None:
    reply = folded(*(delta(tool_calls=piece) for piece in pieces), delta("tool_calls"))
    assert [(made.call_id, made.name, made.arguments) for made in reply.tool_calls] == calls
    assert reply.finish is FinishReason.TOOL_CALLS


def test_a_call_without_an_id_gets_one_of_its_own() -> None:
    first = folded(delta(tool_calls=[call(index=0, name="f", arguments="{}")]), delta("stop"))
    second = folded(delta(tool_calls=[call(index=0, name="f", arguments="{}")]), delta("stop"))
    assert first.tool_calls[0].call_id != second.tool_calls[0].call_id != ""
    assert first.finish is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("half", [
    "{", '{"a', '{"a"', '{"a":', '{"a": ', '{"a": "x', '{"a": "x\\', '{"a": "\\u12', '{"a": tr', '{"a": nul',
    '{"a": 1', '{"a": -', '{"a": 1,', "[", '{"a": [1, {"b": "c"}',
])
def test_half_arguments_are_never_returned(half: str) -> None:
    with pytest.raises(WrongAnswer) as caught:
        folded(delta(tool_calls=[call(index=0, id="a", name="f", arguments=half)]), delta("tool_calls"))
    assert caught.value.kind is FaultKind.TRUNCATED_TOOL_CALL


def test_an_answer_that_says_it_failed_has_failed() -> None:
    with pytest.raises(WrongAnswer) as caught:
        folded(delta(content="Hel"), delta("error"))
    assert caught.value.kind is FaultKind.ERROR_EVENT


def test_a_plain_answer_is_an_answer() -> None:
    fold = OpenAIAnswer("m", lambda text: None)
    made = [call(id="a", name="f", arguments="{}"), call(id="b", name="f", arguments="{}"), call(name="g")]
    message = {"role": "assistant", "content": "hi", "tool_calls": made}
    fold.whole({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    reply = fold.reply()
    assert (reply.text, [each.name for each in reply.tool_calls]) == ("hi", ["f", "f", "g"])


@pytest.mark.parametrize("event", [
    SseEvent("ping", "ping"), SseEvent("heartbeat", "{}"), SseEvent("message", ""), SseEvent("message", " "),
])
def test_a_keepalive_in_any_form_says_nothing(event: SseEvent) -> None:
    assert not OpenAIAnswer("m", lambda text: None).event(event)


@pytest.mark.parametrize("error", [
    {"error": "boom"}, {"error": {"message": "boom"}}, {"object": "error", "message": "boom", "code": 400},
    {"detail": "boom"}, {"message": "boom", "request_id": "r"}, {"errors": [{"message": "boom"}]},
])
def test_an_error_in_any_form_is_one(error: dict[str, Any]) -> None:
    with pytest.raises(WrongAnswer) as caught:
        folded(delta(content="hi"), json.dumps(error), delta("stop"))
    assert caught.value.kind is FaultKind.ERROR_EVENT
    assert "boom" in caught.value.message


def test_the_reason_to_stop_fits_the_calls() -> None:
    assert folded(delta(content="hi"), delta("tool_calls")).finish is FinishReason.STOP
    filtered = folded(delta(tool_calls=[call(index=0, id="a", name="f")]), delta("content_filter"))
    assert (filtered.finish, filtered.tool_calls) == (FinishReason.CONTENT_FILTER, ())


def test_two_calls_never_share_an_id() -> None:
    fold = OpenAIAnswer("m", lambda text: None)
    made = [call(id="a", name="f"), call(id="a", name="g")]
    fold.whole({"choices": [{"message": {"tool_calls": made}, "finish_reason": "stop"}]})
    first, second = fold.reply().tool_calls
    assert first.call_id == "a" != second.call_id


@pytest.mark.parametrize("nonsense", [
    {"choices": 7}, {"choices": [7]}, {"choices": [{"delta": 7}]}, {"choices": [{"delta": {"content": 7}}]},
    {"choices": [{"delta": {"tool_calls": 7}}]}, {"choices": [{"delta": {"tool_calls": [7]}}]},
    {"choices": [{"delta": {}, "finish_reason": 7}]}, {"usage": 7}, {"usage": {"prompt_tokens": "x"}}, {},
])
def test_nonsense_in_an_event_breaks_nothing(nonsense: dict[str, Any]) -> None:
    assert folded(delta(content="hi"), json.dumps(nonsense), delta("stop")).text == "hi"
