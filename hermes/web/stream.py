"""The page's one event stream: what is stored by position, what is live beside it (R21).

- ``line``, with ``id: <position>``: a stored line; the browser reconnects with ``Last-Event-ID``
- ``hello``: what was stored before has been sent; tells the heartbeat in seconds
- ``live``: text, notices, tools of the running turn
- ``beat``: a sign of life; a page that hears nothing for much longer opens the stream anew
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Final

from aiohttp import web

from hermes.core.door import ChatLine, FrontDoor, LiveEvent, LiveKind, LiveReader
from hermes.core.errors import StoreUnavailable

PAGE_LINES: Final = 200
RECONNECT_MS: Final = 1000
"""What the browser waits before it comes back."""

LOOK_SECONDS: Final = 1.0
"""How soon a stream that says nothing notices that its browser went away."""

WRITE_SECONDS: Final = 30.0
"""A browser that takes nothing for so long is gone, whatever TCP believes."""


async def serve_events(
    request: web.Request, door: FrontDoor, chat_id: str, position: str, heartbeat: float
) -> web.StreamResponse:
    """Writes events until the browser goes or the gateway closes."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    try:
        async with door.subscribe(chat_id) as events:
            position = await _catch_up(response, door, chat_id, position)
            await _write(response, _event("hello", {"heartbeat": heartbeat}))
            while True:
                event = await _next(request, response, events, heartbeat)
                match event.kind:
                    case LiveKind.CLOSING:
                        return response
                    case LiveKind.STORED:
                        position = await _catch_up(response, door, chat_id, position)
                    case _:
                        await _write(response, _event("live", _live(event)))
    except (ConnectionResetError, ConnectionAbortedError, BrowserStuck, StoreUnavailable):
        return response  # the browser comes back by itself, from where it was


async def _next(
    request: web.Request, response: web.StreamResponse, events: LiveReader, heartbeat: float
) -> LiveEvent:
    """The next event, with signs of life while there is none. Raises ConnectionResetError, BrowserStuck."""
    quiet = 0.0
    while True:
        wait = min(LOOK_SECONDS, heartbeat - quiet)
        try:
            async with asyncio.timeout(wait):
                return await events.next()
        except TimeoutError:
            quiet += wait
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError("the browser went away")
        if quiet >= heartbeat:
            await _write(response, _event("beat", {}))
            quiet = 0.0


class BrowserStuck(Exception):
    """Nothing could be written for ``WRITE_SECONDS``."""


async def _write(response: web.StreamResponse, data: bytes) -> None:
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await response.write(data)
    except TimeoutError:
        raise BrowserStuck from None


async def _catch_up(response: web.StreamResponse, door: FrontDoor, chat_id: str, position: str) -> str:
    while lines := await door.lines(chat_id, position, PAGE_LINES):
        for line in lines:
            await _write(response, _event("line", line_dict(line), line.position))
        position = lines[-1].position
        if len(lines) < PAGE_LINES:
            break
    return position


def line_dict(line: ChatLine) -> dict[str, object]:
    """A stored line as the page reads it."""
    return {**asdict(line), "speaker": line.speaker.value}


def _live(event: LiveEvent) -> dict[str, object]:
    return {"kind": event.kind.value, "text": event.text, "detail": event.detail}


def _event(name: str, data: dict[str, object], position: str | None = None) -> bytes:
    head = f"id: {position}\n" if position is not None else ""
    if name == "hello":
        head = f"retry: {RECONNECT_MS}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()
