"""A loopback HTTP server that can be cut off, closed and reopened on its port, and waited for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar, cast

from aiohttp import web

from hermes.simulators.faults import ApiError, Delay, Drip, Fault, FaultQueue, Reply, Reset, Stall

__all__ = ["Loopback", "reset_connection"]

T = TypeVar("T")
_LINGER = struct.pack("ii", 1, 0)


def _reset(transport: asyncio.BaseTransport | None) -> None:
    if transport is None or transport.is_closing():
        return
    raw = transport.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):  # the peer may have closed it a moment ago
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    # uvloop's transports have abort() without being a WriteTransport for isinstance
    cast(asyncio.WriteTransport, transport).abort()


def reset_connection(request: web.BaseRequest) -> web.Response:
    """Ends the connection with RST. The response returned for aiohttp's sake reaches nobody."""
    _reset(request.transport)
    return web.Response()


class _Refuser(asyncio.Protocol):
    """Resets a connection before a byte of it was read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        _reset(transport)


class Loopback:
    """Base of the simulators: one aiohttp application on 127.0.0.1.

    `async with` starts and closes it. `stop` and `start` in between model a restart of the service: the port
    and all state stay. Raises OSError from `start` if the port is taken.
    """

    def __init__(self, *, port: int = 0) -> None:
        self.port = port
        self.faults = FaultQueue(self.changed)
        self.connections = 0
        """Connections accepted so far: a pool that was rebuilt shows here."""
        self.reset_connects = 0
        """So many of the next connections are reset before anything is read from them."""
        self._changed = asyncio.Event()
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, valid once it was started."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def listening(self) -> bool:
        """Whether connections are accepted at this moment."""
        return self._server is not None

    def routes(self, router: web.UrlDispatcher) -> None:
        """Adds the service's routes."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Serves on the port; does nothing if it does so already."""
        if self._runner is None:
            self._closing.clear()
            app = web.Application(client_max_size=64 << 20)
            self.routes(app.router)
            self._runner = web.AppRunner(
                app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05, handle_signals=False
            )
            await self._runner.setup()
            self._tasks = asyncio.TaskGroup()
            await self._tasks.__aenter__()
        await self.listen()

    async def close(self) -> None:
        """Ends every connection, as a crash would, and waits until nothing of the server is left."""
        self._closing.set()
        self.unlisten()
        self.drop_connections()
        self.changed()
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            await tasks.__aexit__(None, None, None)
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    stop = close

    async def restart(self) -> None:
        """Closes and starts again on the same port, as a deployment of the service would."""
        await self.close()
        await self.start()

    async def listen(self) -> None:
        """Opens the listening socket on the port that it had before, if it had one."""
        if self._server is not None or self._runner is None or self._runner.server is None:
            return
        serve = self._runner.server

        def connect() -> asyncio.BaseProtocol:
            self.connections += 1
            if self.reset_connects > 0:
                self.reset_connects -= 1
                return _Refuser()
            return serve()

        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(connect, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]
        self.changed()

    def unlisten(self) -> None:
        """Closes the listening socket: new connections are refused, open ones go on."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self.changed()

    def drop_connections(self) -> None:
        """Ends every open connection with RST."""
        if self._runner is not None and self._runner.server is not None:
            for handler in list(self._runner.server.connections):
                _reset(handler.transport)

    def refuse_for(self, seconds: float, *, drop: bool = True) -> None:
        """Closes the listening socket at once and opens the same port again after `seconds`.

        `drop` also ends the open connections, as a crash of the service would.
        """
        if self._tasks is None:
            raise RuntimeError("the simulator is not running: start it before it refuses connections")
        self.unlisten()
        if drop:
            self.drop_connections()
        self._tasks.create_task(self._reopen(seconds), name="simulator-reopen")

    async def _reopen(self, seconds: float) -> None:
        await self.hold(seconds)
        while not self._closing.is_set() and not self.listening:
            try:
                await self.listen()
            except OSError:  # somebody else took the port meanwhile: it is theirs until they leave
                await self.hold(0.05)

    async def hold(self, seconds: float) -> None:
        """Lets `seconds` pass, fewer if the simulator closes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._closing.wait()

    @property
    def closing(self) -> bool:
        """Whether `close` was called: a long poll ends then."""
        return self._closing.is_set()

    def changed(self) -> None:
        """Wakes everything that waits for a condition."""
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    async def wait_for(self, predicate: Callable[[], T], timeout: float = 5.0) -> T:  # noqa: ASYNC109
        """Waits until `predicate()` is true, looking whenever something happened, and returns its value.

        `timeout` is in seconds. Raises TimeoutError with what was seen.
        """
        try:
            async with asyncio.timeout(timeout):
                while not (value := predicate()):
                    await self._changed.wait()
                return value
        except TimeoutError:
            raise TimeoutError(f"not within {timeout} s; seen so far: {self.describe()}") from None

    def describe(self) -> str:
        """What a failed wait shows."""
        return f"{self.connections} connections"

    async def misbehave(
        self, request: web.Request, fault: Fault, deliver: Callable[[], Awaitable[web.Response]]
    ) -> web.StreamResponse:
        """Answers as the fault says; `deliver` carries the call out and makes the right answer."""
        if isinstance(fault, Reset | Stall | Reply | ApiError) and fault.delivered:
            await deliver()
        match fault:
            case Reset(fin=True):
                if request.transport is not None:
                    request.transport.close()
                return web.Response()
            case Reset():
                return reset_connection(request)
            case Stall():
                return await self.stall(request, fault.seconds, after_headers=fault.after_headers)
            case Reply():
                headers = {**fault.headers, "Content-Type": fault.content_type}
                return web.Response(status=fault.status, body=fault.body.encode(), headers=headers)
            case ApiError():
                return self.refuse(fault)
            case Delay():
                await self.hold(fault.seconds)
                return await deliver()
            case Drip():
                return await self.drip(request, await deliver(), fault)
            case _:
                return web.Response(status=500, text=f"{type(fault).__name__} is no fault of this endpoint")

    def refuse(self, error: ApiError) -> web.Response:
        """An error in the dialect of the service."""
        raise NotImplementedError

    async def drip(self, request: web.Request, response: web.Response, drip: Drip) -> web.StreamResponse:
        """Sends `response` a few bytes at a time."""
        headers = {key: value for key, value in response.headers.items() if key.lower() != "content-length"}
        slow = web.StreamResponse(status=response.status, headers=headers)
        await slow.prepare(request)
        body = response.body if isinstance(response.body, bytes) else b""
        for start in range(0, len(body), drip.size):
            await slow.write(body[start : start + drip.size])
            await self.hold(drip.gap)
        await slow.write_eof()
        return slow

    async def stall(self, request: web.Request, seconds: float, *, after_headers: bool) -> web.StreamResponse:
        """Goes silent, with or without a head of 200 before, and then resets."""
        if after_headers:
            head = web.StreamResponse(
                headers={"Content-Type": "application/json", "Content-Length": "100000"}
            )
            await head.prepare(request)
        await self.hold(seconds)
        return reset_connection(request)
