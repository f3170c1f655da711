"""Questions and answers over the control socket, with an answer that can be stopped while it comes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hermes.cli.control_client import SOCKET_NAME, NoGateway, Refused
from hermes.cli.shows import Quiet, Show
from hermes.runtime.clock import SystemClock
from hermes.runtime.supervisor import Supervisor

MAX_REQUEST_BYTES = (1 << 20) - 1024
MAX_ANSWER_BYTES = 1 << 26


class Dialogue:
    """One chat with the gateway of ``home``; each line is a connection of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._supervisor = Supervisor("chat", clock=SystemClock())
        self._writer: asyncio.StreamWriter | None = None
        self._stopping = False

    async def ask(self, text: str, show: Show) -> str:
        """The stored answer; ``show`` sees the events before it. Raises NoGateway, Refused."""
        request = json.dumps({"op": "chat", "text": text}).encode() + b"\n"
        if len(request) > MAX_REQUEST_BYTES:
            raise Refused(f"the text is too long: {len(request)} bytes; allowed: {MAX_REQUEST_BYTES}")
        try:
            reader, writer = await asyncio.open_unix_connection(
                self._home / SOCKET_NAME, limit=MAX_ANSWER_BYTES
            )
        except OSError as error:
            raise NoGateway(f"the gateway of {self._home} has ended: {error.strerror or error}") from None
        self._writer, self._stopping = writer, False
        try:
            writer.write(request)
            return await self._answer(reader, show)
        except ConnectionError:
            raise self._went_away() from None
        finally:
            self._writer = None
            writer.close()

    def interrupt(self) -> bool:
        """Ctrl-C: the first one asks the gateway to stop the answer, the second gives it up.

        False when no answer is under way.
        """
        if self._writer is None:
            return False
        if self._stopping:
            self._writer.transport.abort()
        else:
            self._stopping = True
            self._supervisor.spawn(Dialogue(self._home).ask("/stop", Quiet()), "chat.stop")
        return True

    async def _answer(self, reader: asyncio.StreamReader, show: Show) -> str:
        while line := await reader.readline():
            message: dict[str, Any] = json.loads(line)
            if "error" in message:
                raise Refused(str(message["error"]))
            if "result" in message:
                answer = str(message["result"]["text"])
                if not answer:
                    raise NoGateway(
                        f"the gateway of {self._home} is shutting down: your line is on disk and is answered "
                        "after the next start"
                    )
                return answer
            show.event(message)
        raise self._went_away()

    def _went_away(self) -> NoGateway:
        return NoGateway(
            f"the gateway of {self._home} went away: your line, if it was taken, is answered after its next start"
        )
