"""A session on Discord's gateway: identified once, resumed on new sockets, given up when Discord says so.

What Discord asks for (op 7, op 9) is done here, at once and once; everything else that ends a socket is told as
a failure, and the link decides when the next ``poll`` may open another one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from hermes.core.errors import PlatformFailure
from hermes.platforms.discord.failures import FailureReader
from hermes.platforms.discord.rest import Rest
from hermes.platforms.discord.socket import INTENTS, Asked, GatewaySocket, Lost

T = TypeVar("T")
Point: TypeAlias = tuple[str, int]
"""A session's id and the sequence number of one of its events."""

NO_RESUME = frozenset({4003, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014})
"""Close codes after which the session cannot be resumed."""


class Session:
    """``events`` holds what came and was not taken yet, in order: (name, data, point).

    ``stall_after``: seconds of silence, heartbeats included, that mean a dead connection. ``open_limit``: longest
    time from the connect to READY or RESUMED. ``pause``: longest wait before a new IDENTIFY (Discord asks for 1 to
    5 s). ``draw`` gives numbers in [0, 1).
    """

    def __init__(
        self,
        rest: Rest,
        token: str,
        failures: FailureReader,
        *,
        stall_after: float,
        open_limit: float,
        pause: float,
        draw: Callable[[], float],
    ) -> None:
        self._rest = rest
        self._token = token
        self._failures = failures
        self._stall_after = stall_after
        self._open_limit = open_limit
        self._pause = pause
        self._draw = draw
        self._address, self._pinned = "", False
        self._socket: GatewaySocket | None = None
        self._point: tuple[str, int, str] | None = None  # session, sequence, address for its RESUME
        self._greeted = False
        self.events: deque[tuple[str, Any, Point | None]] = deque()

    @property
    def is_open(self) -> bool:
        """Whether there is a socket; without one ``poll`` opens it."""
        return self._socket is not None

    async def open(self, address: str, *, pinned: bool = False) -> None:
        """A socket that was greeted with READY or RESUMED. ``pinned``: resume there too, whatever READY names.

        Raises PlatformFailure.
        """
        self._address, self._pinned = address, pinned
        await self._open()

    async def poll(self, limit: float | None = None) -> bool:
        """Takes one frame; False when none came within ``limit`` seconds. Raises PlatformFailure."""
        if self._socket is None:
            await self._open()
            return True
        try:
            return await self._guarded(self._socket.frame(limit), None)
        except Asked as asked:
            await self._again(asked)
        await self._open()
        return True

    def after(self, point: Point) -> str | None:
        """The session, for a later process to resume after that event; None when it is another one by now."""
        socket = self._socket
        if socket is None or socket.session_id != point[0]:
            return None
        return f"{INTENTS} {point[0]} {point[1]} {socket.gateway}"

    def resume_after(self, written: str) -> None:
        """``open`` will try to resume what ``after`` gave; in vain, it begins a session of its own."""
        intents, _, rest = written.partition(" ")
        name, _, rest = rest.partition(" ")
        sequence, _, address = rest.partition(" ")
        if intents == str(INTENTS) and sequence.isdigit() and address.startswith(("ws://", "wss://")):
            self._point = (name, int(sequence), address)

    async def abandon(self) -> None:
        """The session is not to be resumed: the next ``poll`` begins another one."""
        await self._leave()
        self._point = None

    async def aclose(self) -> None:
        """Ends the socket. The session goes on for a while, for a process that comes soon."""
        socket, self._socket = self._socket, None
        self._point = None
        if socket is not None:
            await socket.end()

    def _take(self, name: str, data: Any) -> None:
        self._greeted = self._greeted or name in ("READY", "RESUMED")
        socket = self._socket
        point = None
        if socket is not None and socket.session_id is not None and socket.sequence is not None:
            point = (socket.session_id, socket.sequence)
        self.events.append((name, data, point))

    async def _open(self) -> None:
        for last in (False, True):
            try:
                await self._guarded(self._greet(), self._open_limit)
            except Asked as asked:
                refused = self._point is None and not asked.resume
                await self._again(asked)
                if last or refused:
                    facts = self._failures.closed(None, "Discord refused a new session")
                    raise PlatformFailure(facts) from None
            else:
                return

    async def _greet(self) -> None:
        self._greeted = False
        point = self._point
        address, resumed = self._address, None
        if point is not None:
            address, resumed = self._address if self._pinned else point[2], point[:2]
        self._socket = await GatewaySocket.connect(
            self._rest, self._token, address, self._take, stall_after=self._stall_after, session=resumed
        )
        while not self._greeted:
            await self._socket.poll_event()

    async def _again(self, asked: Asked) -> None:
        """Leaves the socket as Discord asked; a session that is not to go on is forgotten, after a while."""
        await self._leave()
        if not asked.resume:
            self._point = None
            await asyncio.sleep(self._pause * (0.2 + 0.8 * self._draw()))

    async def _guarded(self, call: Coroutine[Any, Any, T], limit: float | None) -> T:
        """Whatever ends the socket ends as facts, after it was left so that its session can be resumed."""
        try:
            return await self._failures.guard("gateway", self._noting(call), limit)
        except PlatformFailure:
            await self._leave()
            raise

    async def _noting(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            return await call
        except Lost as lost:
            if lost.code in NO_RESUME:
                await self._leave()
                self._point = None
            raise

    async def _leave(self) -> None:
        """The socket ends; the session may be resumed from the last event that was taken."""
        socket, self._socket = self._socket, None
        if socket is None:
            return
        if socket.session_id is not None and socket.sequence is not None:
            self._point = (socket.session_id, socket.sequence, str(socket.gateway))
        await socket.end()
