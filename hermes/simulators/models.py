"""What the servers of language models have in common: the script, the record, the limits, the streams."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from aiohttp import web

from hermes.simulators.answers import Answer, Event, EventKind, Finish, ToolCall
from hermes.simulators.faults import (
    ApiError,
    CutStream,
    Delay,
    Drip,
    Fault,
    GarbageStream,
    HalfToolCall,
    Overflow,
    Reply,
    Reset,
    Stall,
    StallStream,
    StreamError,
    WholeAnswer,
    garbage_json,
)
from hermes.simulators.images import ImageRules, tokens_of
from hermes.simulators.loopback import Loopback, reset_connection

__all__ = ["Dialect", "ModelRequest", "ModelSimulator", "RateLimits"]

Item: TypeAlias = Answer | Fault
StreamFault: TypeAlias = CutStream | StallStream | StreamError | GarbageStream


@dataclass(slots=True)
class ModelRequest:
    """One request; times are monotonic seconds. `outcome` is `open`, `answered`, `refused`, `broken` (by a
    fault) or `abandoned` (by the client)."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    text: str = ""
    fault: str = ""
    outcome: str = "open"
    ended_at: float | None = None
    size: int = 0
    """Bytes of the body."""
    pieces: int = 0
    """Content events sent so far, so that a test can act in the middle of a stream."""

    @property
    def stream(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self.body.get("stream"))


@dataclass(slots=True)
class RateLimits:
    """So many requests and tokens within `window` seconds; told in headers, refused with 429 beyond."""

    requests: int = 60
    tokens: int = 100_000
    window: float = 60.0
    used: deque[tuple[float, int]] = field(default_factory=deque)

    def left(self, now: float) -> tuple[int, int, float]:
        """Requests and tokens left, and seconds until the oldest use is forgotten."""
        while self.used and self.used[0][0] <= now - self.window:
            self.used.popleft()
        reset = self.used[0][0] + self.window - now if self.used else 0.0
        spent = sum(tokens for _, tokens in self.used)
        return max(0, self.requests - len(self.used)), max(0, self.tokens - spent), reset


class Dialect(Protocol):
    """A wire format; ``images`` are the service's rules for pictures."""

    images: ImageRules

    def refusal(self, error: ApiError) -> dict[str, Any]:
        """The body of an error."""

    def wrong(self, body: dict[str, Any]) -> ApiError | None:
        """What the service refuses in a request, strictly."""

    def overflow(self, tokens: int, limit: int) -> ApiError:
        """The refusal of a prompt that is too long."""

    def unauthorised(self, key: str) -> ApiError:
        """The refusal of a wrong key."""

    def key(self, headers: Mapping[str, str]) -> str:
        """The key that a request carries, or an empty text."""

    def limits(self, limits: RateLimits, now: float) -> dict[str, str]:
        """Headers that tell the rate limits."""

    def whole(self, answer: Answer, body: dict[str, Any], usage: tuple[int, int]) -> dict[str, Any]:
        """The answer as one document."""

    def events(
        self, answer: Answer, body: dict[str, Any], usage: tuple[int, int], pieces: int
    ) -> Iterator[Event]:
        """The answer as a stream."""

    def stream_error(self, error: StreamError) -> bytes:
        """An error event."""

    def garbage(self) -> bytes:
        """An event whose data is no JSON."""

    def user_text(self, body: dict[str, Any]) -> str:
        """What the user wrote last."""


class ModelSimulator(Loopback):
    """Base of the OpenAI and Anthropic simulators.

    For each request the first of these answers: a fault that is due, a rule of `when` that matches, the next
    item of `script`, of `endless`, `You said: …`. A fault in a script stands for the whole answer. `api_key` is
    demanded if set; `context_limit` (tokens, counted as four characters each) refuses longer prompts, `body_limit`
    (bytes) larger requests, `images` what the service would not take of pictures.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        port: int = 0,
        api_key: str | None = None,
        context_limit: int | None = None,
        latency: float = 0.0,
        pieces: int = 4,
        gap: float = 0.0,
        rate_limits: RateLimits | None = None,
        images: ImageRules | None = None,
        body_limit: int | None = None,
    ) -> None:
        super().__init__(port=port)
        self.dialect = dialect
        self.api_key, self.context_limit = api_key, context_limit
        self.latency, self.pieces, self.gap = latency, pieces, gap
        self.rate_limits = rate_limits
        self.body_limit = body_limit
        if images is not None:
            dialect.images = images
        self.requests: list[ModelRequest] = []
        self.active = 0
        self.peak = 0
        """The most requests that were open at one time."""
        self.scripted: deque[Item] = deque()
        self.endless: Iterator[Answer] | None = None
        self._rules: list[tuple[Callable[[ModelRequest], bool], deque[Item], bool]] = []

    def script(self, *items: Item) -> None:
        """Queues answers and faults, consumed in order."""
        self.scripted.extend(items)

    def when(self, match: str | Callable[[ModelRequest], bool], *items: Item, repeat: bool = False) -> None:
        """Items for the requests that match: text in what the user wrote last, or a predicate.

        They are consumed in order; with `repeat` they start again.
        """
        wanted = match
        rule = (lambda request: wanted in request.text) if isinstance(wanted, str) else wanted
        self._rules.append((rule, deque(items), repeat))

    def describe(self) -> str:
        return f"requests {[(request.text[:60], request.outcome) for request in self.requests[-20:]]}"

    def refuse(self, error: ApiError) -> web.Response:
        status = 200 if error.in_200 else error.status
        return web.json_response(
            self.dialect.refusal(error), status=status, headers={**self._headers(), **error.headers}
        )

    def _headers(self) -> dict[str, str]:
        found = {
            "request-id": f"req_{len(self.requests):06d}",
            "x-request-id": f"req_{len(self.requests):06d}",
        }
        if self.rate_limits is not None:
            found |= self.dialect.limits(self.rate_limits, time.monotonic())
        return found

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Serves one request for an answer, and keeps its record."""
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        record = ModelRequest(
            request.path,
            body if isinstance(body, dict) else {},
            {key.lower(): value for key, value in request.headers.items()},
            time.monotonic(),
        )
        record.text = self.dialect.user_text(record.body)
        record.size = len(raw)
        self.requests.append(record)
        self.active += 1
        self.peak = max(self.peak, self.active)
        self.changed()
        try:
            return await self._answer(request, record, isinstance(body, dict))
        finally:
            if record.outcome == "open":
                record.outcome = "abandoned"
            record.ended_at = time.monotonic()
            self.active -= 1
            self.changed()

    async def _answer(self, request: web.Request, record: ModelRequest, readable: bool) -> web.StreamResponse:
        fault = self.faults.pick(request.path, json.dumps(record.body, ensure_ascii=False))
        if isinstance(fault, Reset | Stall | Reply | ApiError) and not fault.delivered:
            return await self._fault(request, record, fault)
        if (error := self._refusal(record, readable)) is not None:
            record.outcome = "refused"
            return self.refuse(error)
        if self.rate_limits is not None:
            self.rate_limits.used.append((time.monotonic(), tokens_of(record.body)))
        item = self._next(record)
        if isinstance(item, Answer):
            said = item
        else:
            said, fault = Answer(f"You said: {record.text}"), fault or item
        if isinstance(fault, Reset | Stall | Reply | ApiError | Overflow):
            return await self._fault(request, record, fault)
        return await self._say(request, record, said, fault)

    def _refusal(self, record: ModelRequest, readable: bool) -> ApiError | None:
        """What the service itself refuses, in the order in which it looks."""
        key = self.dialect.key(record.headers)
        if self.api_key is not None and key != self.api_key:
            return self.dialect.unauthorised(key)
        if self.rate_limits is not None:
            requests, tokens, reset = self.rate_limits.left(time.monotonic())
            if not requests or tokens < tokens_of(record.body):
                wait = {"retry-after": str(max(1, round(reset)))}
                return ApiError(429, "Rate limit reached", "rate_limit_error", "rate_limit_exceeded", wait)
        if not readable:
            return ApiError(400, "We could not parse the JSON body of your request.", "invalid_request_error")
        if self.body_limit is not None and record.size > self.body_limit:
            return ApiError(413, "Request exceeds the maximum size", "request_too_large")
        if (wrong := self.dialect.wrong(record.body)) is not None:
            return wrong
        tokens = tokens_of(record.body)
        if self.context_limit is not None and tokens > self.context_limit:
            return self.dialect.overflow(tokens, self.context_limit)
        return None

    def _next(self, record: ModelRequest) -> Item:
        for matches, items, repeat in self._rules:
            if items and matches(record):
                item = items.popleft()
                if repeat:
                    items.append(item)
                return item
        if self.scripted:
            return self.scripted.popleft()
        return Answer(f"You said: {record.text}") if self.endless is None else next(self.endless)

    async def _fault(
        self, request: web.Request, record: ModelRequest, fault: Reset | Stall | Reply | ApiError | Overflow
    ) -> web.StreamResponse:
        record.fault, record.outcome = type(fault).__name__, "broken"
        self.changed()
        if isinstance(fault, Overflow):
            return self.refuse(self.dialect.overflow(fault.tokens, fault.limit))
        return await self.misbehave(request, fault, _nothing)

    async def _say(
        self, request: web.Request, record: ModelRequest, said: Answer, fault: Fault | None
    ) -> web.StreamResponse:
        record.fault = "" if fault is None else type(fault).__name__
        drip: Drip | None = None
        broken: StreamFault | None = None
        whole = False
        match fault:
            case Delay(seconds):
                await self.hold(seconds)
            case Drip():
                drip = fault
            case CutStream() | StallStream() | StreamError() | GarbageStream():
                broken = fault
            case HalfToolCall():
                finish = Finish(fault.finish) if fault.finish else Finish.TOOLS
                said = Answer("", (ToolCall("call_half", fault.name, fault.arguments),), finish)
                broken = CutStream(after=1_000_000) if fault.cut else None
            case WholeAnswer():
                whole = True
            case _:
                pass
        latency = self.latency if said.latency is None else said.latency
        if latency:
            await self.hold(latency)
        usage = said.usage or (tokens_of(record.body), len(said.text) // 4 + 1)
        if record.stream and not whole:
            return await self._stream(request, record, said, usage, drip, broken)
        response = web.json_response(self.dialect.whole(said, record.body, usage), headers=self._headers())
        if broken is not None:
            return await self._break_whole(request, record, response, broken)
        record.outcome = "answered"
        return response if drip is None else await self.drip(request, response, drip)

    async def _stream(
        self,
        request: web.Request,
        record: ModelRequest,
        said: Answer,
        usage: tuple[int, int],
        drip: Drip | None,
        broken: StreamFault | None,
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **self._headers()}
        )
        await response.prepare(request)
        sent, gap = 0, self.gap if said.gap is None else said.gap
        for event in self.dialect.events(said, record.body, usage, said.pieces or self.pieces):
            if broken is not None and _due(event, sent, broken.after):
                return await self._break_stream(request, record, response, broken)
            if drip is None:
                await response.write(event.data)
            else:
                for at in range(0, len(event.data), drip.size):
                    await response.write(event.data[at : at + drip.size])
                    await self.hold(drip.gap)
            if event.kind is EventKind.PIECE:
                record.pieces = sent = sent + 1
                self.changed()
                if gap:
                    await self.hold(gap)
        await response.write_eof()
        record.outcome = "answered"
        return response

    async def _break_stream(
        self, request: web.Request, record: ModelRequest, response: web.StreamResponse, fault: StreamFault
    ) -> web.StreamResponse:
        record.outcome = "broken"
        self.changed()
        match fault:
            case CutStream(clean=True):
                await response.write_eof()
            case CutStream():
                reset_connection(request)
            case StallStream():
                await self.hold(fault.seconds)
                reset_connection(request)
            case StreamError():
                await response.write(self.dialect.stream_error(fault))
                await response.write_eof()
            case GarbageStream():
                await response.write(self.dialect.garbage())
                await response.write_eof()
        return response

    async def _break_whole(
        self, request: web.Request, record: ModelRequest, response: web.Response, fault: StreamFault
    ) -> web.StreamResponse:
        """The nearest that a fault of streams can do to one document."""
        record.outcome = "broken"
        self.changed()
        if isinstance(fault, StreamError):
            return self.refuse(ApiError(500, fault.message, fault.kind, fault.code, in_200=True))
        if isinstance(fault, GarbageStream):
            return await self.misbehave(request, garbage_json(), _nothing)
        body = response.body if isinstance(response.body, bytes) else b""
        part = web.StreamResponse(
            headers={"Content-Type": "application/json", "Content-Length": str(len(body))}
        )
        await part.prepare(request)
        await part.write(body[: len(body) // 2])
        if isinstance(fault, StallStream):
            await self.hold(fault.seconds)
        if isinstance(fault, CutStream) and fault.clean and request.transport is not None:
            request.transport.close()
            return part
        reset_connection(request)
        return part


def _due(event: Event, sent: int, after: int) -> bool:
    """Whether a stream breaks before this event: at the end at the latest."""
    return event.kind is EventKind.END or (event.kind is EventKind.PIECE and sent >= after)


async def _nothing() -> web.Response:
    return web.Response()
