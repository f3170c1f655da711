"""Our words and those of ``/v1/messages``, both ways. Pure.

Source of the wire format: https://docs.anthropic.com/en/api/messages and .../messages-streaming.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    ToolStatus,
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
    message_of,
    parsed,
    settled,
    whole_number,
)
from hermes.providers.legal import arguments_object, legal, told_in_words
from hermes.providers.sse import SseEvent

DEFAULT_OUTPUT = 8192
"""Output tokens asked for when the configuration names no limit: this dialect demands one."""

ORIGIN = "anthropic"
"""Marks the opaque blocks that are ours to send back."""

_CACHED = {"type": "ephemeral"}
_WORDLESS = "(no text)"
_CONTINUED = "(The conversation so far continues.)"
_ID = re.compile(r"[^a-zA-Z0-9_-]")

_FINISHES = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}


def render(request: ModelRequest, *, caching: bool = False) -> dict[str, Any]:
    """The request's body. Tools and system text are marked for the prompt cache; ``caching``: the vendor's own
    API also keeps the conversation so far. No mark wanders from message to message, so that a request is a
    prefix of the next one for servers that compare bytes.
    """
    items = legal(only_with(request.items, request.images))
    if not request.tools:
        items = told_in_words(items)
    messages = _Messages(request)
    for item in items:
        match item:
            case UserItem():
                for picture in messages.shown(item.images):
                    messages.add("user", picture)
                messages.add("user", {"type": "text", "text": _said(item.text)})
            case AssistantItem():
                messages.assistant(item, request.model)
            case ToolResultItem():
                messages.result(item)
            case _:
                assert_never(item)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output or DEFAULT_OUTPUT,
        "messages": messages.all,
        "stream": True,
    }
    if request.system.strip():
        block: dict[str, Any] = {"type": "text", "text": without_lone_surrogates(request.system)}
        body["system"] = [{**block, "cache_control": _CACHED}]
    if request.tools:
        body["tools"] = [
            {
                "name": spec.name,
                "description": without_lone_surrogates(spec.description),
                "input_schema": dict(spec.parameters),
            }
            for spec in request.tools
        ]
    if caching:
        body["cache_control"] = _CACHED
    return body


def _said(text: str) -> str:
    """Text as a block may hold it: empty and blank ones are refused."""
    return without_lone_surrogates(text) if text.strip() else _WORDLESS


class _Messages:
    """Messages under construction: roles alternate, a person comes first, ids are unique and plain."""

    def __init__(self, request: ModelRequest) -> None:
        self.all: list[dict[str, Any]] = []
        self._images = request.images
        self._used: set[str] = set()
        self._ids: dict[str, str] = {}

    def add(self, role: str, block: dict[str, Any]) -> None:
        if not self.all and role != "user":
            self.all.append({"role": "user", "content": [{"type": "text", "text": _CONTINUED}]})
        if self.all and self.all[-1]["role"] == role:
            self.all[-1]["content"].append(block)
        else:
            self.all.append({"role": role, "content": [block]})

    def assistant(self, item: AssistantItem, model: str) -> None:
        for note in item.opaque:
            # A signature holds only for the model that made it.
            if note.get("origin") == ORIGIN and item.model == model and isinstance(note.get("block"), dict):
                self.add("assistant", note["block"])
        if item.text.strip():
            self.add("assistant", {"type": "text", "text": without_lone_surrogates(item.text)})
        self._ids = {}
        for call in item.tool_calls:
            use = {
                "type": "tool_use",
                "id": self._new_id(call.call_id),
                "name": call.name,
                "input": _clean(arguments_object(call)),
            }
            self.add("assistant", use)

    def shown(self, images: tuple[ImageRef, ...]) -> list[dict[str, Any]]:
        """Blocks of pictures; they come before the words about them."""
        found = (self._images[image.sha256] for image in images)
        return [
            {"type": "image", "source": {"type": "base64", "media_type": data.mime, "data": base64_of(data)}}
            for data in found
        ]

    def result(self, item: ToolResultItem) -> None:
        content: str | list[dict[str, Any]] = _said(item.text)
        if item.images:
            content = [*self.shown(item.images), {"type": "text", "text": content}]
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": self._ids.get(item.call_id, item.call_id),
            "content": content,
        }
        if item.status is not ToolStatus.OK:
            block["is_error"] = True
        self.add("user", block)

    def _new_id(self, call_id: str) -> str:
        """Other dialects' ids have other letters, and some servers use one id again and again."""
        plain = _ID.sub("_", call_id)[:56] or "call"
        unique, count = plain, 1
        while unique in self._used:
            count += 1
            unique = f"{plain}_{count}"
        self._used.add(unique)
        self._ids[call_id] = unique
        return unique


def _clean(value: object) -> Any:
    """Arguments without lone surrogates, wherever they are."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() else json.loads(without_lone_surrogates(text))


@dataclass(slots=True)
class _Block:
    """A content block under construction."""

    kind: str
    start: Mapping[str, Any]
    text: list[str] = field(default_factory=list)
    signature: str = ""


class AnthropicAnswer:
    """Folds the events of one message into a ModelReply (the ``Fold`` of ``answers``)."""

    def __init__(self, model: str, on_text: Callable[[str], None]) -> None:
        self._done = False
        self._tokens_seen = False
        self._model = model
        self._visible = Visible(on_text)
        self._stop: str | None = None
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}

    @property
    def finished(self) -> bool:
        """A stop_reason came."""
        return self._stop is not None

    @property
    def done(self) -> bool:
        """message_stop came, or the answer was one document."""
        return self._done

    @property
    def tokens_seen(self) -> bool:
        """Some output had arrived."""
        return self._tokens_seen

    def event(self, event: SseEvent) -> bool:
        """Takes one event; True when the answer moved on. Raises WrongAnswer."""
        data = event.data.strip()
        if not data or event.kind in KEEPALIVES:
            return False
        if data == "[DONE]":
            # Gateways that translate from the other dialect leave its terminator behind.
            self._done = True
            return True
        body = parsed(event.data, Phase.STREAM)
        if not isinstance(body, Mapping):
            raise WrongAnswer(FaultKind.BAD_JSON, "an event that is no object", body, Phase.STREAM)
        kind = body.get("type") or event.kind
        if kind == "error" or "error" in body:
            raise WrongAnswer(
                FaultKind.ERROR_EVENT, message_of(body.get("error") or body), dict(body), Phase.STREAM
            )
        moved = self._take(str(kind), body)
        self._tokens_seen = self._tokens_seen or (moved and kind != "message_start")
        return moved

    def _take(self, kind: str, body: Mapping[str, Any]) -> bool:
        match kind:
            case "message_start":
                self._message(_mapping(body.get("message")))
                return True
            case "content_block_start":
                start = _mapping(body.get("content_block"))
                self._blocks[whole_number(body.get("index"))] = _Block(str(start.get("type")), start)
                return self._add_text(start.get("text"))
            case "content_block_delta":
                return self._delta(whole_number(body.get("index")), _mapping(body.get("delta")))
            case "message_delta":
                self._message({**_mapping(body.get("delta")), "usage": body.get("usage")})
                return True
            case "message_stop":
                self._done = True
                return True
        return False

    def _message(self, message: Mapping[str, Any]) -> None:
        if isinstance(model := message.get("model"), str) and model:
            self._model = model
        if isinstance(stop := message.get("stop_reason"), str) and stop:
            self._stop = stop
        for key, value in _mapping(message.get("usage")).items():
            if isinstance(value, int):
                self._usage[key] = whole_number(value)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> bool:
        block = self._blocks.setdefault(index, _Block(_KINDS.get(str(delta.get("type")), "unknown"), {}))
        match delta.get("type"):
            case "text_delta":
                return self._add_text(delta.get("text"))
            case "input_json_delta":
                return _append(block, delta.get("partial_json"))
            case "thinking_delta":
                return _append(block, delta.get("thinking"))
            case "signature_delta":
                block.signature += str(delta.get("signature") or "")
                return True
        return False

    def _add_text(self, text: object) -> bool:
        if not isinstance(text, str) or not text:
            return False
        self._visible.add(text)
        return True

    def whole(self, body: Mapping[str, object]) -> None:
        """A plain message in answer to a stream, accepted when it is complete: some servers ignore
        ``stream``, and a JSON document says by itself whether its end is there. Raises WrongAnswer."""
        self._message(body)
        content = body.get("content")
        if self._stop is None or not isinstance(content, list):
            raise WrongAnswer(FaultKind.WRONG_TYPE, "plain JSON that is no message", dict(body))
        for index, block in enumerate(content):
            start = _mapping(block)
            self._blocks[index] = _Block(str(start.get("type")), start)
            self._add_text(start.get("text"))
        self._tokens_seen = bool(content)
        self._done = True

    def reply(self) -> ModelReply:
        """The complete answer; everything less is a WrongAnswer."""
        text = self._visible.whole()
        if self._stop is None:
            message = "the stream ended without a stop_reason"
            raise WrongAnswer(FaultKind.ENDED_EARLY, message, phase=Phase.STREAM)
        finish = _FINISHES.get(self._stop, FinishReason.STOP)
        uses = [block for block in self._blocks.values() if block.kind == "tool_use"]
        if finish is FinishReason.LENGTH and uses:
            message = "the output limit ended the answer inside a tool call"
            raise WrongAnswer(FaultKind.TRUNCATED_TOOL_CALL, message)
        if finish is FinishReason.LENGTH:
            counted = self._counts().input_tokens
            said = {"stop_reason": self._stop, "partial_text": text, "input_tokens": counted}
            raise WrongAnswer(FaultKind.TRUNCATED_ANSWER, "the output limit ended the answer", said)
        calls = distinct(_call(block) for block in uses)
        finish, calls = settled(finish, calls)
        if not text.strip() and not calls and finish is not FinishReason.CONTENT_FILTER:
            message = "an answer with neither text nor tool call"
            raise WrongAnswer(FaultKind.EMPTY_ANSWER, message, {"stop_reason": self._stop})
        return ModelReply(text, calls, finish, self._counts(), self._model, self._opaque())

    def _counts(self) -> Usage:
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        fresh = self._usage.get("input_tokens", 0)
        return Usage(fresh + read + written, self._usage.get("output_tokens", 0), read, written)

    def _opaque(self) -> tuple[Mapping[str, Any], ...]:
        blocks = (_thinking(block) for block in self._blocks.values())
        return tuple({"origin": ORIGIN, "block": block} for block in blocks if block)


_KINDS = {"text_delta": "text", "input_json_delta": "tool_use", "thinking_delta": "thinking"}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _append(block: _Block, piece: object) -> bool:
    if not isinstance(piece, str) or not piece:
        return False
    block.text.append(piece)
    return True


def _call(block: _Block) -> ToolCall:
    name = block.start.get("name")
    if not isinstance(name, str) or not name:
        raise WrongAnswer(FaultKind.TRUNCATED_TOOL_CALL, "a tool call without a name")
    arguments = "".join(block.text)
    if not arguments and isinstance(given := block.start.get("input"), Mapping):
        arguments = json.dumps(given, ensure_ascii=False)
    call_id = block.start.get("id")
    return ToolCall(
        call_id if isinstance(call_id, str) else "",
        without_lone_surrogates(name),
        checked_arguments(arguments, complete=True),
    )


def _thinking(block: _Block) -> dict[str, Any] | None:
    """A thinking block as it has to be sent back, or None for any other."""
    if block.kind == "redacted_thinking":
        return {"type": block.kind, "data": str(block.start.get("data") or "")}
    signature = block.signature or block.start.get("signature")
    if block.kind != "thinking" or not signature:
        return None
    thought = "".join(block.text) or str(block.start.get("thinking") or "")
    return {"type": "thinking", "thinking": without_lone_surrogates(thought), "signature": signature}
