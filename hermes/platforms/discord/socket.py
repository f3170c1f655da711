"""One connection to Discord's gateway: discord.py's ``DiscordWebSocket`` without its client.

The library frames, decompresses, identifies, resumes and beats the heart (in a thread of its own); its client,
which reconnects for ever and hides why, is not used. Events reach ``on_event`` raw and in their order; nothing of
them is parsed into the library's models, so no odd event can end the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import yarl

from hermes.platforms.discord.rest import Rest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its voice player imports audioop
    from discord import utils
    from discord.gateway import DiscordWebSocket, KeepAliveHandler, ReconnectWebSocket

INTENTS = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15)
"""Guilds, their messages, private messages, and what messages say (the last is privileged)."""
SERVED = (
    "READY", "RESUMED", "GUILD_CREATE", "GUILD_DELETE", "CHANNEL_CREATE", "CHANNEL_DELETE", "THREAD_CREATE",
    "THREAD_DELETE", "THREAD_LIST_SYNC", "MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE",
)  # fmt: skip
THREAD_END_SECONDS = 2.0
BEATS_MISSED = 1.5
"""So many heartbeat intervals of silence are the least that may mean anything."""
logging.getLogger("discord").setLevel(logging.WARNING)  # at DEBUG it logs every event with what people say

OnEvent = Callable[[str, Any], None]


class Asked(Exception):
    """The server asked for a new connection (op 7, op 9); ``resume``: the session goes on."""

    def __init__(self, *, resume: bool) -> None:
        super().__init__("the gateway asked for a new connection")
        self.resume = resume


class Lost(Exception):
    """The connection ended, or nothing came for too long; ``code`` is the close code where there was one."""

    def __init__(self, code: int | None, why: str = "") -> None:
        super().__init__(f"the gateway's connection was lost ({code})")
        self.code, self.why = code, why


class GatewaySocket(DiscordWebSocket):
    """Open it with ``connect``; ``poll_event`` then takes one frame at a time. ``end`` leaves nothing behind."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(socket, loop=loop)
        self._beats: KeepAliveHandler | None = None
        self.heard_at = time.monotonic()

    @classmethod
    async def connect(
        cls,
        rest: Rest,
        token: str,
        address: str,
        on_event: OnEvent,
        *,
        stall_after: float,
        session: tuple[str, int] | None = None,
    ) -> GatewaySocket:
        """Connects, waits for HELLO, identifies or resumes. Raises what poll_event raises, and aiohttp's."""
        compress = utils._ActiveDecompressionContext.COMPRESSION_TYPE
        url = yarl.URL(address).with_query(v="10", encoding="json", compress=compress)
        made = cls(await rest.socket(str(url)), loop=asyncio.get_running_loop())
        made.token = token
        made.gateway = yarl.URL(address)
        made.shard_id = None
        made.shard_count = None
        made._max_heartbeat_timeout = stall_after
        made._discord_parsers = _parsers(on_event)
        if session is not None:
            made.session_id, made.sequence = session
        async with contextlib.AsyncExitStack() as unless_open:
            unless_open.push_async_callback(made.end)
            await made.poll_event()
            if made._keep_alive is not None and made._keep_alive.interval is not None:
                made._max_heartbeat_timeout = max(stall_after, BEATS_MISSED * made._keep_alive.interval)
            await (made.identify() if session is None else made.resume())
            unless_open.pop_all()
        return made

    async def identify(self) -> None:
        """IDENTIFY, with our intents."""
        properties = {"os": "linux", "browser": "hermes", "device": "hermes"}
        data = {"token": self.token, "properties": properties, "compress": False, "intents": INTENTS}
        await self.send_as_json({"op": self.IDENTIFY, "d": data})

    async def received_message(self, msg: Any, /) -> None:
        self.heard_at = time.monotonic()
        try:
            await super().received_message(msg)
        except ReconnectWebSocket as asked:
            raise Asked(resume=bool(asked.resume)) from None
        finally:
            self._beats = self._keep_alive or self._beats

    async def poll_event(self) -> None:
        """One frame, however long it takes. Raises Asked or Lost."""
        await self.frame(None)

    async def frame(self, limit: float | None) -> bool:
        """Takes one frame; False when none came within ``limit`` seconds. Raises Asked or Lost.

        The library's own way loses the close code when the server hangs up at once, and takes 4014 for a cut.
        """
        left = self._max_heartbeat_timeout - (time.monotonic() - self.heard_at)
        try:
            async with asyncio.timeout(left if limit is None else min(limit, left)):
                message = await self.socket.receive()
        except TimeoutError:
            if left <= 0 or limit is None or limit >= left:
                raise Lost(None, "nothing came for too long, not even an acknowledged heartbeat") from None
            return False
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            code = message.data if message.type is aiohttp.WSMsgType.CLOSE else None
            raise Lost(code if isinstance(code, int) else None)
        await self.received_message(message.data)
        self._watch_acknowledgements()
        return True

    def _watch_acknowledgements(self) -> None:
        """Events alone prove nothing of what we say: a heart that nobody answers is a dead connection too."""
        beats = self._keep_alive
        if beats is None or beats.interval is None:
            return
        unanswered = time.perf_counter() - beats._last_ack
        if unanswered > max(self._max_heartbeat_timeout, (1 + BEATS_MISSED) * beats.interval):
            raise Lost(None, f"no heartbeat was acknowledged for {unanswered:.0f} s")

    async def end(self, code: int = 4000) -> None:
        """Closes the socket and waits, for at most a few seconds, until the heartbeat's thread is gone."""
        if self._beats is not None:
            self._beats.stop()
        with contextlib.suppress(aiohttp.ClientError, OSError, RuntimeError):
            await self.close(code)
        until = time.monotonic() + THREAD_END_SECONDS
        while self._beats is not None and self._beats.is_alive() and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.002)  # it waits for this very loop, or for nothing


def _parsers(on_event: OnEvent) -> dict[str, Callable[[Mapping[str, Any]], None]]:
    def parser(name: str) -> Callable[[Mapping[str, Any]], None]:
        return lambda data: on_event(name, data)

    return {name: parser(name) for name in SERVED}
