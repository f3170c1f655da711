"""A server of Anthropic's messages on loopback."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from hermes.simulators.answers import Answer, Event, EventKind, Finish, answer, pieces_of, tool_call
from hermes.simulators.faults import ApiError, StreamError
from hermes.simulators.images import ImageRules, Judged, anthropic_pictures, judged
from hermes.simulators.models import ModelRequest, ModelSimulator, RateLimits

__all__ = ["AnthropicSimulator", "ModelRequest", "RateLimits", "answer", "overloaded", "tool_call"]

_FINISH = {
    Finish.STOP: "end_turn",
    Finish.TOOLS: "tool_use",
    Finish.LENGTH: "max_tokens",
    Finish.REFUSED: "refusal",
}
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def overloaded() -> ApiError:
    """Anthropic's 529."""
    return ApiError(529, "Overloaded", "overloaded_error")


class AnthropicSimulator(ModelSimulator):
    """`async with AnthropicSimulator() as sim`, then a client with `sim.base_url`; see ModelSimulator.

    The key is taken from `x-api-key` or from `Authorization: Bearer`. `betas` are the beta features that the
    account may ask for; None: any.
    """

    def __init__(
        self, *, models: tuple[str, ...] = (), betas: tuple[str, ...] | None = None, **options: Any
    ) -> None:
        super().__init__(AnthropicDialect(models), **options)
        self.models = models
        self.betas = betas

    def _refusal(self, record: ModelRequest, readable: bool) -> ApiError | None:
        asked = [name.strip() for name in record.headers.get("anthropic-beta", "").split(",") if name.strip()]
        if self.betas is not None and any(name.startswith("context-1m") and name not in self.betas for name in asked):
            return _invalid("The long context beta is not yet available for this subscription.")
        return super()._refusal(record, readable)

    @property
    def base_url(self) -> str:
        """What the clients call base_url; it has no /v1."""
        return self.url

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/messages", self.complete)
        router.add_get("/v1/models", self._list)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        key = self.dialect.key({name.lower(): value for name, value in request.headers.items()})

        async def deliver() -> web.Response:
            if self.api_key is not None and key != self.api_key:
                return self.refuse(self.dialect.unauthorised(key))
            known = [
                {"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
                for name in self.models or ("simulated",)
            ]
            ends = {"has_more": False, "first_id": known[0]["id"], "last_id": known[-1]["id"]}
            return web.json_response({"data": known, **ends})

        fault = self.faults.pick(request.path)
        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)


def _invalid(message: str) -> ApiError:
    return ApiError(400, message, "invalid_request_error")


class AnthropicDialect:
    """The wire format, with Anthropic's refusals."""

    def __init__(self, models: tuple[str, ...] = ()) -> None:
        self.models = models
        self.images = ImageRules(encoded=5 * 2**20, side=8000, many_side=2000)
        self._numbers = itertools.count(1)

    def refusal(self, error: ApiError) -> dict[str, Any]:
        kind = error.kind or _KINDS.get(error.status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": error.message or kind},
            "request_id": f"req_{next(self._numbers):06d}",
        }

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()

    def unauthorised(self, key: str) -> ApiError:
        return ApiError(401, "invalid x-api-key" if key else "x-api-key header is required")

    def overflow(self, tokens: int, limit: int) -> ApiError:
        return _invalid(f"prompt is too long: {tokens} tokens > {limit} maximum")

    def limits(self, limits: RateLimits, now: float) -> dict[str, str]:
        requests, tokens, reset = limits.left(now)
        at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=reset)
        until = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "anthropic-ratelimit-requests-limit": str(limits.requests),
            "anthropic-ratelimit-requests-remaining": str(requests),
            "anthropic-ratelimit-requests-reset": until,
            "anthropic-ratelimit-tokens-limit": str(limits.tokens),
            "anthropic-ratelimit-tokens-remaining": str(tokens),
            "anthropic-ratelimit-tokens-reset": until,
        }

    def user_text(self, body: dict[str, Any]) -> str:
        messages = body.get("messages")
        for message in reversed(messages if isinstance(messages, list) else []):
            if isinstance(message, dict) and message.get("role") == "user":
                content = message.get("content")
                texts = (
                    [content]
                    if isinstance(content, str)
                    else [
                        str(block.get("text", ""))
                        for block in _blocks(message)
                        if block.get("type") == "text"
                    ]
                )
                if texts:
                    return " ".join(texts)
        return ""

    def wrong(self, body: dict[str, Any]) -> ApiError | None:
        for name in ("model", "max_tokens", "messages"):
            if body.get(name) is None:
                return _invalid(f"{name}: Field required")
        if self.models and body["model"] not in self.models:
            return ApiError(404, f"model: {body['model']}", "not_found_error")
        if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
            return _invalid("max_tokens: Input should be greater than or equal to 1")
        messages = body["messages"]
        if not isinstance(messages, list):
            return _invalid("messages: Input should be a valid list")
        if not messages:
            return _invalid("messages: at least one message is required")
        for at, message in enumerate(messages):
            if (error := _wrong_message(at, message, last=at == len(messages) - 1)) is not None:
                return error
        found = judged(list(anthropic_pictures(body)), self.images)
        wrong = None if found is None else _wrong_picture(found, body["model"])
        return _wrong_order(messages) or _unpaired(messages) or wrong

    def _message(self, body: dict[str, Any], usage: tuple[int, int]) -> dict[str, Any]:
        return {
            "id": f"msg_{next(self._numbers):06d}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage[0],
                "output_tokens": usage[1],
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }

    def whole(self, answer: Answer, body: dict[str, Any], usage: tuple[int, int]) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": "c2lnbmVk"})
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
            for call in answer.calls
        ]
        return self._message(body, usage) | {"content": content, "stop_reason": _FINISH[answer.finish]}

    def events(
        self, answer: Answer, body: dict[str, Any], usage: tuple[int, int], pieces: int
    ) -> Iterator[Event]:
        yield _event(EventKind.START, "message_start", message=self._message(body, (usage[0], 1)))
        blocks: list[tuple[dict[str, Any], str, str, str]] = []
        if answer.thinking:
            block = {"type": "thinking", "thinking": "", "signature": ""}
            blocks.append((block, "thinking_delta", "thinking", answer.thinking))
        if answer.text:
            blocks.append(({"type": "text", "text": ""}, "text_delta", "text", answer.text))
        for call in answer.calls:
            use: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            blocks.append((use, "input_json_delta", "partial_json", call.arguments))
        for index, (block, delta, key, text) in enumerate(blocks):
            last = index == len(blocks) - 1
            yield _event(EventKind.START, "content_block_start", index=index, content_block=block)
            if index == 0:
                yield _event(EventKind.START, "ping")
            for piece in pieces_of(text, pieces):
                yield _event(
                    EventKind.PIECE, "content_block_delta", index=index, delta={"type": delta, key: piece}
                )
            if block["type"] == "thinking":
                signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
                yield _event(EventKind.START, "content_block_delta", index=index, delta=signed)
            yield _event(EventKind.END if last else EventKind.START, "content_block_stop", index=index)
        stop = {"stop_reason": _FINISH[answer.finish], "stop_sequence": None}
        yield _event(EventKind.END, "message_delta", delta=stop, usage={"output_tokens": usage[1]})
        yield _event(EventKind.END, "message_stop")

    def stream_error(self, error: StreamError) -> bytes:
        kind = error.kind or "overloaded_error"
        inner = {"type": kind, "message": error.message or "Overloaded"}
        return _event(EventKind.END, "error", error=inner).data

    def garbage(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type": "content_bl\n\n'


def _event(kind: EventKind, name: str, **data: Any) -> Event:
    body = json.dumps({"type": name, **data}, ensure_ascii=False)
    return Event(kind, f"event: {name}\ndata: {body}\n\n".encode())


def _object(arguments: str) -> dict[str, Any]:
    """One document cannot carry half an object: broken arguments become none."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _wrong_message(at: int, message: Any, *, last: bool) -> ApiError | None:
    if not isinstance(message, dict) or "role" not in message:
        return _invalid(f"messages.{at}.role: Field required")
    role, content = message["role"], message.get("content")
    if role == "system":
        return _invalid(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    if role not in ("user", "assistant"):
        return _invalid(f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')
    if content is None:
        return _invalid(f"messages.{at}.content: Field required")
    if not content and not (last and role == "assistant"):
        return _invalid(
            f"messages.{at}: all messages must have non-empty content except for the optional final "
            "assistant message"
        )
    texts = (
        [content]
        if isinstance(content, str)
        else [str(block.get("text", "")) for block in _blocks(message) if block.get("type") == "text"]
    )
    if not isinstance(content, str) and "" in texts:
        return _invalid("messages: text content blocks must be non-empty")
    if any(text and not text.strip() for text in texts):
        return _invalid("messages: text content blocks must contain non-whitespace text")
    if last and role == "assistant" and texts and texts[-1] != texts[-1].rstrip():
        return _invalid("messages: final assistant content cannot end with trailing whitespace")
    return None


def _wrong_order(messages: list[dict[str, Any]]) -> ApiError | None:
    if messages[0]["role"] != "user":
        return _invalid('messages: first message must use the "user" role')
    for earlier, later in itertools.pairwise(messages):
        if earlier["role"] == later["role"]:
            return _invalid(
                'messages: roles must alternate between "user" and "assistant", but found multiple '
                f'"{later["role"]}" roles in a row'
            )
    return None


def _wrong_picture(found: Judged, model: str) -> ApiError:
    place = found.shown.place
    match found.fault:
        case "not taken":
            return _invalid(f"{model} does not support image input")
        case "in a tool result":
            at = place.partition(".image.")[0]
            return _invalid(f"{at}: image content is not supported in tool results")
        case "type":
            return _invalid(
                f"{place}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
            )
        case "no data":
            return _invalid(f"{place}.data: image cannot be empty")
        case "bytes":
            limit = found.limit / 2**20
            return _invalid(
                f"{place}: image exceeds {limit:g} MB maximum: {found.found} bytes > {found.limit} bytes"
            )
        case "side" | "many side":
            many = " for many-image requests" if found.fault == "many side" else ""
            return _invalid(
                f"{place}.data: At least one of the image dimensions exceed max allowed size{many}: "
                f"{found.limit} pixels"
            )
        case "pixels":
            return _invalid(
                f"{place}: Image exceeds the maximum allowed total pixels. Current: {found.found} pixels. "
                f"Maximum allowed: {found.limit}"
            )
        case "other type":
            return _invalid(
                f"{place}.data: The image was specified using the {found.shown.mime} media type, but the image "
                f"appears to be a {found.found} image"
            )
    return _invalid("Could not process image")


def _unpaired(messages: list[dict[str, Any]]) -> ApiError | None:
    """Every tool_use needs its tool_result in the next message, every result its use in the one before."""
    waiting: list[str] = []
    for at, message in enumerate([*messages, {"role": "end"}]):
        results = [
            str(block.get("tool_use_id")) for block in _blocks(message) if block.get("type") == "tool_result"
        ]
        for index, block in enumerate(_blocks(message)):
            if block.get("type") == "tool_result" and block.get("tool_use_id") not in waiting:
                return _invalid(
                    f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block.get('tool_use_id')}. Each `tool_result` block must have a corresponding "
                    "`tool_use` block in the previous message."
                )
        if missing := [call for call in waiting if call not in results]:
            return _invalid(
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message."
            )
        waiting = [str(block.get("id")) for block in _blocks(message) if block.get("type") == "tool_use"]
        if len(set(waiting)) != len(waiting):
            return _invalid(f"messages.{at}: `tool_use` ids must be unique")
    return None
