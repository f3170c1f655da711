"""A server that sends exactly the bytes a test names, and remembers what it was sent."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Self


class Act(Enum):
    """What a script does beside sending bytes."""

    HANG = "hang"
    """Nothing more, until the client goes or the server ends."""
    RESET = "reset"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Sends the same bytes every so many seconds, until the client goes."""

    raw: bytes
    every: float


Script = Sequence[bytes | Act | Repeat]


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as it came; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class Upstream:
    """Answers each request by the next script; the last one serves all that follow."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.heard: list[Heard] = []
        self.connections = 0
        self.open = 0
        self.gone = asyncio.Event()
        """A client closed its connection."""
        self.busy = asyncio.Event()
        """A script has sent all that it sends at once and hangs."""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        self.open += 1
        try:
            while await self._request(reader) and await self._play(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            self.gone.set()
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split(" ")
        self.heard.append(Heard(method, path, headers, json.loads(raw) if raw else None))
        return True

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False when the connection is over."""
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        for step in script:
            match step:
                case Act.HANG:
                    self.busy.set()
                    await reader.read(1)
                    return False
                case Act.RESET:
                    raw = writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                    return False
                case Act.CLOSE:
                    return False
                case Repeat():
                    await _repeat(step, reader, writer)
                    return False
                case bytes():
                    writer.write(step)
                    await writer.drain()
        return True


async def _repeat(step: Repeat, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(step.raw)
        await writer.drain()
        try:
            await asyncio.wait_for(reader.read(1), step.every)
        except TimeoutError:
            continue
        return


def whole(
    status: int,
    body: str | bytes,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A complete answer of known length."""
    raw = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(raw)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


def head(content_type: str = "text/event-stream") -> bytes:
    """The head of a chunked answer."""
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    )


def part(text: str | bytes) -> bytes:
    """One chunk of a chunked answer."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return f"{len(raw):x}\r\n".encode() + raw + b"\r\n"


END = b"0\r\n\r\n"
"""The clean end of a chunked answer."""
