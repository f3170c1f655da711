"""The page's one event stream: what is stored by position, what is live beside it (R21).

    id: <position>          event: line     a stored line; the browser reconnects with Last-Event-ID
    (no id)                 event: live     text, notices, tools of the running turn
    : beat                                  a sign of life
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

from aiohttp import web

from hermes.core.door import ChatLine, FrontDoor, LiveEvent, LiveKind

PAGE_LINES = 200


async def serve_events(
    request: web.Request, door: FrontDoor, chat_id: str, position: str, heartbeat: float
) -> web.StreamResponse:
    """Writes events until the browser goes or the gateway closes."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    async with door.subscribe(chat_id) as events:
        position = await _catch_up(response, door, chat_id, position)
        await response.write(b": open\n\n")
        while True:
            try:
                async with asyncio.timeout(heartbeat):
                    event = await events.next()
            except TimeoutError:
                await response.write(b": beat\n\n")
                continue
            if event.kind is LiveKind.CLOSING:
                return response
            if event.kind is LiveKind.STORED:
                position = await _catch_up(response, door, chat_id, position)
            else:
                await response.write(_event("live", _live(event)))


async def _catch_up(response: web.StreamResponse, door: FrontDoor, chat_id: str, position: str) -> str:
    while lines := await door.lines(chat_id, position, PAGE_LINES):
        for line in lines:
            await response.write(_event("line", line_dict(line), line.position))
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
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()
