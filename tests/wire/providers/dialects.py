"""The two wire formats, as a test says them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hermes.core.ports import Provider
from hermes.core.transcript import ModelRequest, UserItem
from hermes.providers.anthropic import create as anthropic_kind
from hermes.providers.openai import create as openai_kind
from tests.wire.providers.upstream import END, head, part


@dataclass(frozen=True)
class Settings:
    """Configuration of a provider under test; seconds."""

    base_url: str
    connect_timeout: float = 5.0
    first_byte_timeout: float = 5.0
    stall_timeout: float = 5.0
    total_timeout: float = 10.0
    max_response_bytes: int = 1_000_000


def ask(text: str = "hi") -> ModelRequest:
    """A request of one question."""
    return ModelRequest("some-model", "Be brief.", (UserItem(text),))


class OpenAI:
    """``/chat/completions``."""

    name = "openai"
    path = "/v1/chat/completions"

    def provider(self, url: str, **settings: Any) -> Provider:
        return openai_kind.create("main", Settings(f"{url}/v1", **settings), api_key="sk-test")

    def _event(self, **body: Any) -> str:
        return "data: " + json.dumps({"object": "chat.completion.chunk", "model": "served", **body}) + "\n\n"

    def _choice(self, delta: dict[str, Any], finish: str | None = None) -> str:
        return self._event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    def begin(self) -> str:
        return self._choice({"role": "assistant", "content": ""})

    def text(self, text: str) -> str:
        return self._choice({"content": text})

    def reasoning(self, text: str) -> str:
        return self._choice({"reasoning_content": text})

    def call(self, arguments: str, index: int = 0) -> str:
        function = {"name": "read_file", "arguments": arguments}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        return self._choice({"tool_calls": [call]})

    def finish(self, reason: str = "stop") -> str:
        usage = {"prompt_tokens": 11, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
        return self._choice({}, reason) + self._event(choices=[], usage=usage)

    def tool_finish(self) -> str:
        return self.finish("tool_calls")

    def length_finish(self) -> str:
        return self.finish("length")

    def end(self) -> str:
        return "data: [DONE]\n\n"

    def ping(self) -> str:
        return ": keepalive\n\n"

    def error_event(self) -> str:
        error = {"message": "The server had an error", "type": "server_error", "code": "boom", "param": None}
        return "data: " + json.dumps({"error": error}) + "\n\n"

    def error_body(self, message: str, kind: str, code: str | None = None) -> str:
        return json.dumps({"error": {"message": message, "type": kind, "code": code, "param": None}})

    def document(self, text: str, finish: str | None = "stop") -> str:
        message = {"role": "assistant", "content": text}
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        usage = {"prompt_tokens": 11, "completion_tokens": 3}
        body = {"object": "chat.completion", "model": "served", "choices": choices, "usage": usage}
        return json.dumps(body)


class Anthropic:
    """``/v1/messages``."""

    name = "anthropic"
    path = "/v1/messages"

    def provider(self, url: str, **settings: Any) -> Provider:
        return anthropic_kind.create("main", Settings(url, **settings), api_key="sk-test")

    def _event(self, kind: str, **body: Any) -> str:
        return f"event: {kind}\ndata: " + json.dumps({"type": kind, **body}) + "\n\n"

    def begin(self) -> str:
        usage = {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}
        message = {"role": "assistant", "model": "served", "content": [], "stop_reason": None, "usage": usage}
        return self._event("message_start", message=message)

    def text(self, text: str) -> str:
        return self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def reasoning(self, text: str) -> str:
        return self._event("content_block_delta", index=9, delta={"type": "thinking_delta", "thinking": text})

    def call(self, arguments: str, index: int = 0) -> str:
        block = {"type": "tool_use", "id": f"call_{index}", "name": "read_file", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        return self._event("content_block_start", index=index, content_block=block) + self._event(
            "content_block_delta", index=index, delta=delta
        )

    def finish(self, reason: str = "end_turn") -> str:
        delta = {"stop_reason": reason, "stop_sequence": None}
        return self._event("message_delta", delta=delta, usage={"output_tokens": 3})

    def tool_finish(self) -> str:
        return self.finish("tool_use")

    def length_finish(self) -> str:
        return self.finish("max_tokens")

    def end(self) -> str:
        return self._event("message_stop")

    def ping(self) -> str:
        return self._event("ping")

    def error_event(self) -> str:
        return self._event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def error_body(self, message: str, kind: str, code: str | None = None) -> str:
        error: dict[str, Any] = {"type": kind, "message": message}
        if code:
            error["details"] = {"error_code": code}
        return json.dumps({"type": "error", "error": error})

    def document(self, text: str, finish: str | None = "end_turn") -> str:
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": 11, "output_tokens": 3}
        return json.dumps(
            {"type": "message", "model": "served", "content": content, "stop_reason": finish, "usage": usage}
        )


Dialect = OpenAI | Anthropic
DIALECTS: tuple[Dialect, ...] = (OpenAI(), Anthropic())


def stream(*events: str) -> list[bytes]:
    """A well-ended event stream."""
    return [head(), *(part(event) for event in events), END]


def answer(dialect: Dialect, *pieces: str) -> list[bytes]:
    """A complete streamed answer."""
    texts = (dialect.text(piece) for piece in pieces)
    return stream(dialect.begin(), *texts, dialect.finish(), dialect.end())
