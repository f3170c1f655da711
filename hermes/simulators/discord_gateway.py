"""Discord's gateway: sessions that outlive their socket, sequence numbers, heartbeats, close codes.

A session is made by IDENTIFY and kept while its socket is gone, unless that was closed with 1000 or 1001; RESUME
replays what its client did not see. Frames go out as one zlib stream a socket when the client asks for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMessage, WSMsgType, web

__all__ = ["Gateway", "Session"]

GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
PRIVILEGED = (1 << 1) | (1 << 8) | MESSAGE_CONTENT
KNOWN_INTENTS = (1 << 26) - 1
KEPT = 1000
_SYNC = b"\x00\x00\xff\xff"


@dataclass(eq=False, slots=True)
class Session:
    """One identified client; `events` are the last frames by sequence number."""

    id: str
    intents: int
    seq: int = 0
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    socket: Socket | None = None


class Socket:
    """One connection. `heartbeats` counts those that came."""

    def __init__(self, ws: web.WebSocketResponse, *, compressed: bool) -> None:
        self.ws = ws
        self.session: Session | None = None
        self.heartbeats = 0
        self.ended = False
        """We closed it; what code the client answers with says nothing then."""
        self._zlib = zlib.compressobj() if compressed else None
        self._turn = asyncio.Lock()

    async def send(self, frame: dict[str, Any]) -> None:
        """One frame; a socket that is gone loses it."""
        text = json.dumps(frame)
        async with self._turn:
            with contextlib.suppress(ConnectionError, RuntimeError):
                if self._zlib is None:
                    await self.ws.send_str(text)
                else:
                    data = self._zlib.compress(text.encode()) + self._zlib.flush(zlib.Z_SYNC_FLUSH)
                    assert data.endswith(_SYNC)
                    await self.ws.send_bytes(data)


class Gateway:
    """The gateway's half of the simulator. `changed` is called whenever something happened."""

    def __init__(self, token: str, changed: Any, hold: Any) -> None:
        self.token = token
        self.heartbeat_interval = 41.25
        self.allowed_intents = PRIVILEGED
        """The privileged intents that are switched on in the developer portal."""
        self.sessions: dict[str, Session] = {}
        self.sockets: list[Socket] = []
        self.identifies: list[dict[str, Any]] = []
        self.resumes = 0
        self.session_limit = 1000
        self.revoked = False
        self.mute = False
        """No heartbeat is acknowledged."""
        self.ghost = False
        """Heartbeats are acknowledged, and no event is dispatched any more."""
        self.deaf = False
        """Nothing is sent at all: frames are read and go nowhere."""
        self._changed = changed
        self._hold = hold
        self._number = 0

    @property
    def listeners(self) -> int:
        """Sessions whose client is connected."""
        return sum(1 for session in self.sessions.values() if session.socket is not None)

    async def serve(self, request: web.Request, ready: Any) -> web.WebSocketResponse:
        """One socket from its HELLO to its end; `ready` makes the READY payload and the guilds."""
        ws = web.WebSocketResponse(max_msg_size=4096, compress=False)
        await ws.prepare(request)
        socket = Socket(ws, compressed=request.query.get("compress") == "zlib-stream")
        self.sockets.append(socket)
        try:
            if request.query.get("v") != "10":
                await ws.close(code=4012, message=b"Invalid API version.")
                return ws
            if not self.deaf:
                hello = {"heartbeat_interval": int(self.heartbeat_interval * 1000)}
                await socket.send({"op": 10, "d": hello, "s": None, "t": None})
            async for message in ws:
                await self._frame(socket, message, ready)
                self._changed()
        finally:
            self.sockets.remove(socket)
            self._left(socket)
            self._changed()
        return ws

    def _left(self, socket: Socket) -> None:
        session = socket.session
        if session is None or session.socket is not socket:
            return
        session.socket = None
        if not socket.ended and socket.ws.close_code in (1000, 1001):
            self.sessions.pop(session.id, None)

    async def _frame(self, socket: Socket, message: WSMessage, ready: Any) -> None:
        if self.deaf or message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return
        try:
            frame = json.loads(message.data)
            op, data = frame["op"], frame.get("d")
        except (ValueError, KeyError, TypeError):
            await socket.ws.close(code=4002, message=b"Error while decoding payload.")
            return
        match op:
            case 1:
                socket.heartbeats += 1
                if not self.mute:
                    await socket.send({"op": 11, "d": None, "s": None, "t": None})
            case 2:
                await self._identify(socket, data, ready)
            case 6:
                await self._resume(socket, data)
            case 3 | 4 | 8:
                if socket.session is None:
                    await socket.ws.close(code=4003, message=b"Not authenticated.")
            case _:
                await socket.ws.close(code=4001, message=b"Unknown opcode.")

    async def _identify(self, socket: Socket, data: dict[str, Any], ready: Any) -> None:
        self.identifies.append({**data, "at": time.monotonic()})
        if socket.session is not None:
            return await self.end(socket, 4005, "Already authenticated.")
        if self.revoked or data.get("token") != self.token:
            return await self.end(socket, 4004, "Authentication failed.")
        intents = data.get("intents")
        if not isinstance(intents, int) or not 0 <= intents <= KNOWN_INTENTS:
            return await self.end(socket, 4013, "Invalid intent(s).")
        if intents & PRIVILEGED & ~self.allowed_intents:
            return await self.end(socket, 4014, "Disallowed intent(s).")
        self.session_limit -= 1
        self._number += 1
        session = Session(f"session-{self._number}", intents, socket=socket)
        self.sessions[session.id] = session
        socket.session = session
        first, guilds = ready(session.id)
        await self._give(session, "READY", first)
        for guild in guilds if intents & GUILDS else ():
            await self._give(session, "GUILD_CREATE", guild)
        return None

    async def _resume(self, socket: Socket, data: dict[str, Any]) -> None:
        self.resumes += 1
        if self.revoked or data.get("token") != self.token:
            return await self.end(socket, 4004, "Authentication failed.")
        session, seen = self.sessions.get(str(data.get("session_id"))), data.get("seq")
        oldest = session.events[0]["s"] - 1 if session is not None and session.events else 0
        if session is None or not isinstance(seen, int) or seen < oldest:
            await socket.send({"op": 9, "d": False, "s": None, "t": None})
            return None
        if seen > session.seq:
            return await self.end(socket, 4007, "Invalid seq.")
        session.socket, socket.session = socket, session
        for frame in [frame for frame in session.events if frame["s"] > seen]:
            await socket.send(frame)
        await self._give(session, "RESUMED", {"_trace": []})
        return None

    async def end(self, socket: Socket, code: int, why: str) -> None:
        """Closes a socket with a code of the gateway's."""
        if code in (4004, 4010, 4011, 4012, 4013, 4014) and socket.session is not None:
            self.sessions.pop(socket.session.id, None)
        socket.ended = True
        await socket.ws.close(code=code, message=why.encode())

    async def dispatch(self, event: str, data: dict[str, Any], intent: int) -> None:
        """An event for every session that asked for it; one whose socket is gone finds it at its RESUME."""
        for session in list(self.sessions.values()):
            if not intent or session.intents & intent:
                await self._give(session, event, self._seen_by(session, event, data))
        self._changed()

    def _seen_by(self, session: Session, event: str, data: dict[str, Any]) -> dict[str, Any]:
        """Without the intent, what others say in a guild arrives empty unless it mentions the bot."""
        hidden = event in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and not session.intents & MESSAGE_CONTENT
        if hidden and data.get("guild_id") and not data.get("mentions"):
            return data | {"content": "", "attachments": [], "embeds": [], "components": []}
        return data

    async def _give(self, session: Session, event: str, data: dict[str, Any]) -> None:
        if self.ghost:
            return
        session.seq += 1
        frame = {"op": 0, "t": event, "s": session.seq, "d": data}
        session.events.append(frame)
        if session.socket is not None and not self.deaf:
            await session.socket.send(frame)

    async def close_all(self, code: int, why: str = "") -> None:
        """Closes every socket with `code`."""
        for socket in list(self.sockets):
            await self.end(socket, code, why)

    async def ask_all(self, op: int, data: Any = None) -> None:
        """Sends every socket an opcode: 7 (reconnect), 9 (invalid session)."""
        for socket in list(self.sockets):
            if op == 9 and data is not True and socket.session is not None:
                self.sessions.pop(socket.session.id, None)
            await socket.send({"op": op, "d": data, "s": None, "t": None})

    def forget(self) -> None:
        """Every session is gone: a RESUME is refused, and what it would have replayed is in the history only."""
        for session in self.sessions.values():
            session.socket = None
        self.sessions.clear()
