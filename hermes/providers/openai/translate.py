"""Our words and those of ``/chat/completions``, both ways. Pure.

Source of the wire format: https://platform.openai.com/docs/api-reference/chat and, for the departures
that are tolerated here, the servers that claim to speak it; each is named where it is handled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from hermes.core.failures import FaultKind, Phase
from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    ImageRef,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResultItem,
    ToolSpec,
    Usage,
    UserItem,
    without_lone_surrogates,
)
from hermes.policy.images import only_with
from hermes.providers.answers import (
    KEEPALIVES,
    Visible,
    WrongAnswer,
    base64_of,
    checked_arguments,
    distinct,
    error_in,
    message_of,
    parsed,
    settled,
    whole_number,
)
from hermes.providers.legal import arguments_object, legal
from hermes.providers.sse import SseEvent

_FINISHES = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}


_BROKEN_OFF = "(I was interrupted here.)"
"""Stands between results and a person's next words: the Jinja templates of Mistral, Gemma and others refuse them side
by side."""
_WORDLESS = "(no text)"
_CONTINUED = "(The conversation so far continues.)"


def render(request: ModelRequest, *, output_key: str = "max_tokens") -> dict[str, Any]:
    """The request's body. ``output_key`` names the output limit: the vendor's own API wants
    ``max_completion_tokens``, compatible servers know ``max_tokens``."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.max_output is not None:
        body[output_key] = request.max_output
    return body


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": spec.name,
            "description": without_lone_surrogates(spec.description),
            "parameters": dict(spec.parameters),
        },
    }


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": without_lone_surrogates(request.system)})
    for item in legal(only_with(request.items, request.images)):
        match item:
            case UserItem():
                text = without_lone_surrogates(item.text) if item.text.strip() else _WORDLESS
                _add_user(messages, _content(text, item.images, request))
            case AssistantItem():
                _add_assistant(messages, _assistant(item))
            case ToolResultItem():
                messages.append(
                    {
                        "role": "tool",
                        "tool_call_id": item.call_id,
                        "content": _content(without_lone_surrogates(item.text), item.images, request),
                    }
                )
            case _:
                assert_never(item)
    return messages


_Content = str | list[dict[str, Any]]


def _content(text: str, images: tuple[ImageRef, ...], request: ModelRequest) -> _Content:
    """Plain text, or parts: pictures before the words about them."""
    if not images:
        return text
    shown = (request.images[image.sha256] for image in images)
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:{data.mime};base64,{base64_of(data)}"}}
        for data in shown
    ]
    return [*parts, {"type": "text", "text": text or _WORDLESS}]


def _add_user(messages: list[dict[str, Any]], content: _Content) -> None:
    """Neighbouring user messages become one: many local chat templates demand that roles alternate."""
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"] = _joined(messages[-1]["content"], content)
        return
    if _spoke_last(messages) == "user":
        messages.append({"role": "assistant", "content": _BROKEN_OFF})
    messages.append({"role": "user", "content": content})


def _joined(earlier: _Content, later: _Content) -> _Content:
    if isinstance(earlier, str) and isinstance(later, str):
        return f"{earlier}\n\n{later}"
    return [*_parts(earlier), *_parts(later)]


def _parts(content: _Content) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _add_assistant(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """An answer has a question before it: templates count the roles of all but calls and results."""
    if _spoke_last(messages) != "user":
        messages.append({"role": "user", "content": _CONTINUED})
    messages.append(message)


def _spoke_last(messages: list[dict[str, Any]]) -> str | None:
    """The role that a strict template has counted last."""
    for message in reversed(messages):
        if message["role"] == "user" or (message["role"] == "assistant" and not message.get("tool_calls")):
            return str(message["role"])
    return None


def _assistant(item: AssistantItem) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": without_lone_surrogates(item.text) or None,
    }
    if item.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call)},
            }
            for call in item.tool_calls
        ]
    return message


def _arguments(call: ToolCall) -> str:
    return without_lone_surrogates(json.dumps(arguments_object(call), ensure_ascii=False))


@dataclass(slots=True)
class _Call:
    """A tool call under construction."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""


class OpenAIAnswer:
    """Folds the chunks of one chat.completion into a ModelReply (the ``Fold`` of ``answers``)."""

    def __init__(self, model: str, on_text: Callable[[str], None]) -> None:
        self._done = False
        self._begun = False
        self._tokens_seen = False
        self._model = model
        self._visible = Visible(on_text)
        self._finish: str | None = None
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._last: _Call | None = None
        self._usage = Usage()

    @property
    def finished(self) -> bool:
        """A finish_reason came."""
        return self._finish is not None

    @property
    def done(self) -> bool:
        """[DONE] came, or the answer was one document."""
        return self._done

    @property
    def tokens_seen(self) -> bool:
        """Some output had arrived."""
        return self._tokens_seen

    def event(self, event: SseEvent) -> bool:
        """Takes one event; True when the answer moved on."""
        data = event.data.strip()
        if data == "[DONE]":
            self._done = True
            return True
        if not data or event.kind in KEEPALIVES:
            return False
        body = parsed(event.data, Phase.STREAM)
        if not isinstance(body, Mapping):
            raise WrongAnswer(FaultKind.BAD_JSON, "an event that is no object", body, Phase.STREAM)
        if error := error_in(body) or (body if event.kind == "error" else None):
            raise WrongAnswer(FaultKind.ERROR_EVENT, message_of(error), body, Phase.STREAM)
        return self._chunk(body, "delta")

    def whole(self, body: Mapping[str, object]) -> None:
        """A plain chat.completion in answer to a stream.

        It is accepted when it is complete: some servers ignore ``stream``, and a JSON document says by
        itself whether its end is there. Anything else in its place is no answer.
        """
        if not _choice(body).get("finish_reason"):
            raise WrongAnswer(FaultKind.WRONG_TYPE, "plain JSON that is no chat.completion", dict(body))
        self._chunk(body, "message")
        self._done = True

    def _chunk(self, body: Mapping[str, object], key: str) -> bool:
        usage = body.get("usage")
        if isinstance(usage, Mapping):
            self._usage = _usage(usage)
        if isinstance(model := body.get("model"), str) and model:
            self._model = model
        choice = _choice(body)
        if not choice:
            return False
        delta = choice.get(key)
        moved = self._delta(delta, key == "message") if isinstance(delta, Mapping) else False
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            if finish == "error":
                # OpenRouter ends a stream so when the upstream behind it failed.
                message = "the upstream ended the answer with an error"
                raise WrongAnswer(FaultKind.ERROR_EVENT, message, dict(body), Phase.STREAM)
            self._finish = finish
            moved = True
        self._tokens_seen = self._tokens_seen or moved
        # The first chunk often holds the role only: it ends the wait for the first byte.
        moved, self._begun = moved or not self._begun, True
        return moved

    def _delta(self, delta: Mapping[str, object], whole: bool) -> bool:
        moved = False
        for key in ("content", "refusal"):
            if text := _text(delta.get(key)):
                self._visible.add(text)
                moved = True
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for position, piece in enumerate(calls):
                if isinstance(piece, Mapping):
                    self._call(piece, position if whole else piece.get("index"))
                    moved = True
        # DeepSeek, vLLM and llama.cpp say reasoning_content, OpenRouter says reasoning.
        return moved or bool(delta.get("reasoning_content") or delta.get("reasoning"))

    def _call(self, piece: Mapping[str, object], index: object) -> None:
        call_id = piece.get("id")
        call = self._by_index.get(index) if isinstance(index, int) else self._last
        if call is None or (isinstance(call_id, str) and call.call_id not in ("", call_id)):
            # Some servers number every call 0, or none: there a new id is what begins a new call.
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        self._last = call
        if isinstance(call_id, str) and call_id:
            call.call_id = call_id
        function = piece.get("function")
        if isinstance(function, Mapping):
            _add_function(call, function)

    def reply(self) -> ModelReply:
        """The complete answer; everything less is a WrongAnswer."""
        text = self._visible.whole()
        if self._finish is None:
            message = "the stream ended without a finish_reason"
            raise WrongAnswer(FaultKind.ENDED_EARLY, message, phase=Phase.STREAM)
        finish = _FINISHES.get(self._finish, FinishReason.STOP)
        complete = finish is not FinishReason.LENGTH
        if not complete and self._calls:
            raise WrongAnswer(
                FaultKind.TRUNCATED_TOOL_CALL, "the output limit ended the answer inside a tool call"
            )
        if not complete:
            raise WrongAnswer(
                FaultKind.TRUNCATED_ANSWER,
                "the output limit ended the answer",
                {
                    "finish_reason": self._finish,
                    "partial_text": text,
                    "input_tokens": self._usage.input_tokens,
                },
            )
        calls = distinct(_finished_call(call) for call in self._calls)
        finish, calls = settled(finish, calls)
        if not text.strip() and not calls and finish is not FinishReason.CONTENT_FILTER:
            message = "an answer with neither text nor tool call"
            raise WrongAnswer(FaultKind.EMPTY_ANSWER, message, {"finish_reason": self._finish})
        return ModelReply(text, calls, finish, self._usage, self._model)


def _choice(body: Mapping[str, object]) -> Mapping[str, object]:
    """The answer's first choice; empty for none (the usage comes so)."""
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _add_function(call: _Call, function: Mapping[str, object]) -> None:
    if isinstance(name := function.get("name"), str) and not call.name:
        call.name = name
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        call.arguments += arguments
    elif isinstance(arguments, Mapping):
        # Some servers give the arguments as the object itself.
        call.arguments = json.dumps(arguments)


def _finished_call(call: _Call) -> ToolCall:
    if not call.name:
        raise WrongAnswer(FaultKind.TRUNCATED_TOOL_CALL, "a tool call without a name")
    return ToolCall(
        call.call_id,
        without_lone_surrogates(call.name),
        checked_arguments(call.arguments, complete=True),
    )


def _text(content: object) -> str:
    """A delta's text. Mistral sends a list of typed parts where others send a string."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return ""


def _usage(usage: Mapping[str, object]) -> Usage:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")  # DeepSeek
    return Usage(
        whole_number(usage.get("prompt_tokens")),
        whole_number(usage.get("completion_tokens")),
        whole_number(cached),
    )
