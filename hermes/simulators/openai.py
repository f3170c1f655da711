"""A server of OpenAI's chat completions on loopback."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from hermes.simulators.answers import Answer, Event, EventKind, Finish, answer, pieces_of, tool_call
from hermes.simulators.faults import ApiError, StreamError
from hermes.simulators.images import ImageRules, Judged, judged, openai_pictures
from hermes.simulators.models import ModelRequest, ModelSimulator, RateLimits
from hermes.simulators.speech import Ears

__all__ = ["ModelRequest", "OpenAISimulator", "RateLimits", "answer", "tool_call"]

_FINISH = {
    Finish.STOP: "stop",
    Finish.TOOLS: "tool_calls",
    Finish.LENGTH: "length",
    Finish.REFUSED: "content_filter",
}
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")


class OpenAISimulator(ModelSimulator):
    """`async with OpenAISimulator() as sim`, then a client with `sim.base_url`; see ModelSimulator.

    With `models` any other model is refused with 404, and these are listed.
    """

    def __init__(self, *, models: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(OpenAIDialect(models), **options)
        self.models = models
        self.ears = Ears()

    @property
    def base_url(self) -> str:
        """What the clients call base_url; it ends in /v1."""
        return f"{self.url}/v1"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/chat/completions", self.complete)
        router.add_post("/v1/audio/transcriptions", self._hear)
        router.add_get("/v1/models", self._list)
        router.add_get("/v1/models/{name:.+}", self._list)

    async def _hear(self, request: web.Request) -> web.StreamResponse:
        key = self.dialect.key({name.lower(): value for name, value in request.headers.items()})

        async def deliver() -> web.Response:
            if self.api_key is not None and key != self.api_key:
                return self.refuse(self.dialect.unauthorised(key))
            return await self.ears.hear(request, key, self.refuse)

        fault = self.faults.pick(request.path)
        answer = await deliver() if fault is None else await self.misbehave(request, fault, deliver)
        self.changed()
        return answer

    async def _list(self, request: web.Request) -> web.StreamResponse:
        key = self.dialect.key({name.lower(): value for name, value in request.headers.items()})

        async def deliver() -> web.Response:
            if self.api_key is not None and key != self.api_key:
                return self.refuse(self.dialect.unauthorised(key))
            known = [
                {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "simulator"}
                for name in self.models or ("simulated",)
            ]
            wanted = request.match_info.get("name")
            if wanted is None:
                return web.json_response({"object": "list", "data": known})
            for model in known:
                if model["id"] == wanted:
                    return web.json_response(model)
            return self.refuse(_no_model(wanted))

        fault = self.faults.pick(request.path)
        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)


def _invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    return ApiError(
        400, message, "invalid_request_error", code, parameters={} if param is None else {"param": param}
    )


def _no_model(name: str) -> ApiError:
    return ApiError(
        404,
        f"The model `{name}` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
    )


class OpenAIDialect:
    """The wire format, with OpenAI's refusals."""

    def __init__(self, models: tuple[str, ...] = ()) -> None:
        self.models = models
        self.images = ImageRules(in_tool_results=False, decoded=20 * 2**20)
        self._numbers = itertools.count(1)

    def refusal(self, error: ApiError) -> dict[str, Any]:
        kind = error.kind or {401: "invalid_request_error", 429: "requests"}.get(error.status, "server_error")
        return {
            "error": {
                "message": error.message or f"Error {error.status}",
                "type": kind,
                "param": error.parameters.get("param"),
                "code": error.code,
            }
        }

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ").strip()

    def unauthorised(self, key: str) -> ApiError:
        if not key:
            return ApiError(401, "You didn't provide an API key.", "invalid_request_error")
        shown = f"{key[:4]}{'*' * 8}{key[-4:]}" if len(key) > 8 else "*" * len(key)
        return ApiError(
            401, f"Incorrect API key provided: {shown}.", "invalid_request_error", "invalid_api_key"
        )

    def overflow(self, tokens: int, limit: int) -> ApiError:
        return _invalid(
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
            f"{tokens} tokens. Please reduce the length of the messages.",
            "messages",
            "context_length_exceeded",
        )

    def limits(self, limits: RateLimits, now: float) -> dict[str, str]:
        requests, tokens, reset = limits.left(now)
        return {
            "x-ratelimit-limit-requests": str(limits.requests),
            "x-ratelimit-limit-tokens": str(limits.tokens),
            "x-ratelimit-remaining-requests": str(requests),
            "x-ratelimit-remaining-tokens": str(tokens),
            "x-ratelimit-reset-requests": f"{reset:.3f}s",
            "x-ratelimit-reset-tokens": f"{reset:.3f}s",
        }

    def user_text(self, body: dict[str, Any]) -> str:
        messages = body.get("messages")
        for message in reversed(messages if isinstance(messages, list) else []):
            if isinstance(message, dict) and message.get("role") == "user":
                return _flat(message.get("content"))
        return ""

    def wrong(self, body: dict[str, Any]) -> ApiError | None:
        if not body.get("model"):
            return _invalid("you must provide a model parameter")
        if self.models and body["model"] not in self.models:
            return _no_model(str(body["model"]))
        messages = body.get("messages")
        if messages is None:
            return _invalid(
                "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"
            )
        if not isinstance(messages, list):
            return _invalid("Invalid type for 'messages': expected an array.", "messages", "invalid_type")
        if not messages:
            return _empty_array("messages")
        if body.get("tools") == []:
            return _empty_array("tools")
        if body.get("stream_options") is not None and not body.get("stream"):
            return _invalid(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
            )
        for at, message in enumerate(messages):
            if (error := _wrong_message(at, message)) is not None:
                return error
        found = judged(list(openai_pictures(body)), self.images)
        return _unpaired(messages) or (None if found is None else _wrong_picture(found))

    def _base(self, body: dict[str, Any], kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{next(self._numbers):06d}",
            "object": kind,
            "created": int(time.time()),
            "model": body["model"],
        }

    def whole(self, answer: Answer, body: dict[str, Any], usage: tuple[int, int]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["content"] = answer.text or None
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[answer.finish]}
        return {**self._base(body, "chat.completion"), "choices": [choice], "usage": _usage(usage)}

    def events(
        self, answer: Answer, body: dict[str, Any], usage: tuple[int, int], pieces: int
    ) -> Iterator[Event]:
        base = self._base(body, "chat.completion.chunk")
        counted = bool((body.get("stream_options") or {}).get("include_usage"))

        def event(kind: EventKind, delta: dict[str, Any], finish: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            chunk = {**base, "choices": [choice], **({"usage": None} if counted else {})}
            return Event(kind, _data(chunk))

        yield event(EventKind.START, {"role": "assistant", "content": "", "refusal": None})
        for piece in pieces_of(answer.thinking, pieces):
            yield event(EventKind.PIECE, {"reasoning_content": piece})
        for piece in pieces_of(answer.text, pieces):
            yield event(EventKind.PIECE, {"content": piece})
        for index, call in enumerate(answer.calls):
            head = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            yield event(EventKind.START, {"tool_calls": [{"index": index, **head}]})
            for piece in pieces_of(call.arguments, pieces):
                yield event(
                    EventKind.PIECE, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                )
        yield event(EventKind.END, {}, _FINISH[answer.finish])
        if counted:
            yield Event(EventKind.END, _data({**base, "choices": [], "usage": _usage(usage)}))
        yield Event(EventKind.END, b"data: [DONE]\n\n")

    def stream_error(self, error: StreamError) -> bytes:
        message = error.message or "The server had an error while processing your request. Sorry about that!"
        return _data(
            {
                "error": {
                    "message": message,
                    "type": error.kind or "server_error",
                    "param": None,
                    "code": error.code,
                }
            }
        )

    def garbage(self) -> bytes:
        return b'data: {"id": "chatcmpl-, "choi\n\n'


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _usage(usage: tuple[int, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage[0],
        "completion_tokens": usage[1],
        "total_tokens": sum(usage),
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text")


def _empty_array(name: str) -> ApiError:
    return _invalid(
        f"Invalid '{name}': empty array. Expected an array with minimum length 1, but got an empty array "
        "instead.",
        name,
        "empty_array",
    )


def _wrong_message(at: int, message: Any) -> ApiError | None:
    if not isinstance(message, dict):
        return _invalid(
            f"Invalid type for 'messages[{at}]': expected an object.", f"messages[{at}]", "invalid_type"
        )
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        return _invalid(
            f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', "
            "'tool', and 'developer'.",
            f"messages[{at}].role",
            "invalid_value",
        )
    where = f"messages.[{at}].content"
    if message.get("tool_calls") == []:
        return _empty_array(f"messages[{at}].tool_calls")
    if content is None and not (role == "assistant" and message.get("tool_calls")):
        return _invalid("Invalid value for 'content': expected a string, got null.", where)
    if content is not None and not isinstance(content, str | list):
        return _invalid(f"Invalid type for '{where}': expected a string or an array.", where, "invalid_type")
    if content == []:
        return _empty_array(f"messages[{at}].content")
    for index, call in enumerate(message.get("tool_calls") or []):
        if not isinstance((call.get("function") or {}).get("arguments"), str) or not call.get("id"):
            name = f"messages[{at}].tool_calls[{index}].function.arguments"
            return _invalid(f"Invalid type for '{name}': expected a string.", name, "invalid_type")
    return None


def _wrong_picture(found: Judged) -> ApiError:
    place = found.shown.place
    match found.fault:
        case "not taken":
            return ApiError(404, "No endpoints found that support image input", "not_found_error")
        case "in a tool result":
            return _invalid(
                "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' "
                "contains an image URL.",
                place.partition(".")[0],
                "invalid_value",
            )
        case "type" | "no data":
            return _invalid(
                f"Invalid '{place}'. Expected a base64-encoded data URL with an image MIME type (e.g. "
                "'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type "
                f"'{found.shown.mime}'.",
                place,
                "invalid_value",
            )
        case "bytes":
            limit = found.limit / 2**20
            return _invalid(f"Image size exceeds {limit:g}MB limit", place, "image_too_large")
        case "side" | "many side" | "pixels":
            return _invalid(f"Image too large: maximum {found.limit} pixels", place)
    return _invalid(
        "You uploaded an unsupported image. Please make sure your image is valid.", place, "image_parse_error"
    )


def _unpaired(messages: list[dict[str, Any]]) -> ApiError | None:
    """Every tool call needs its result before anything else is said, and every result its call."""
    waiting: dict[str, int] = {}
    for at, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            call = message.get("tool_call_id")
            if call not in waiting:
                return _invalid(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                    "with 'tool_calls'.",
                    f"messages.[{at}].role",
                )
            del waiting[call]
            continue
        if waiting:
            place = next(iter(waiting.values()))
            return _invalid(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                + ", ".join(waiting),
                f"messages.[{place + 1}].role",
            )
        waiting = {call["id"]: at for call in message.get("tool_calls") or []}
    return None
