"""The CLI's socket: ``HERMES_HOME/control.sock``, mode 0600, one JSON object a line each way (R33).

    → {"op": "status"}                 ← {"result": {...}}
    → {"op": "chat", "text": "hi"}     ← {"event": "text", "text": "He"} … {"result": {"text": "Hello"}}
    → anything wrong                   ← {"error": "a sentence"}
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.core.door import FrontDoor, LiveKind, Speaker
from hermes.core.errors import HermesError
from hermes.core.governor import Admissions
from hermes.gateway.actions import Actions
from hermes.gateway.health import as_dict
from hermes.gateway.held import Held
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

MAX_LINE_BYTES = 1 << 20
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(slots=True)
class ControlServer:
    """Serves until ``aclose``; each connection may make several requests."""

    path: Path
    door: FrontDoor
    actions: Actions
    page_url: Callable[[], str]
    new_key: Callable[[], str]
    supervisor: Supervisor
    admissions: Admissions | None = None
    chat_timeout: float = 1900.0
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        """Replaces a socket that a killed process left behind: the home's lock is ours."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._server = await asyncio.start_unix_server(self._accept, self.path, limit=MAX_LINE_BYTES)
        self.path.chmod(0o600)

    async def aclose(self) -> None:
        """Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.supervisor.spawn(self._serve(reader, writer), "control.client")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send(message: dict[str, Any]) -> None:
            writer.write(json.dumps(message).encode() + b"\n")
            await writer.drain()

        held = Held()
        try:
            while line := await reader.readline():
                await self._request(line, send, held)
        except (ConnectionError, ValueError) as error:
            log.info("control_client_gone", error=str(error))
        finally:
            held.release()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _request(self, line: bytes, send: Send, held: Held) -> None:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError("a request is a JSON object")
            result = await self.answer(request, send, held)
        except TimeoutError:
            await send({"error": "no answer came in time; `hermes status` shows what is wrong"})
            return
        except (HermesError, ValueError, KeyError) as error:
            await send({"error": f"{error}" if not isinstance(error, KeyError) else f"missing {error}"})
            return
        await send({"result": result})

    async def answer(self, request: dict[str, Any], send: Send, held: Held) -> object:
        """One request of a client, without the socket. Raises HermesError, ValueError, KeyError, TimeoutError."""
        match request.get("op"):
            case "status":
                return as_dict(await self.door.health())
            case "page-url":
                return self.page_url()
            case "send":
                return await self.actions.send(str(request["target"]), str(request["text"]))
            case "dead-letters":
                return await self.actions.dead_letters()
            case "dead-letters-retry":
                return await self.actions.retry(str(request["id"]))
            case "dead-letters-drop":
                return await self.actions.drop(str(request["id"]))
            case "usage":
                return await self.actions.usage.as_dict(int(request.get("days", 7)))
            case "pairing":
                return await self.actions.people.overview()
            case "pairing-approve":
                return await self.actions.people.approve_for_cli(str(request["code"]), str(request["role"]))
            case "pairing-revoke":
                return await self.actions.people.revoke_for_cli(str(request["who"]))
            case "learned":
                return await self.actions.learned_facts()
            case "learned-clear":
                return await self.actions.forget(str(request.get("target", "")))
            case "admit":
                if self.admissions is None:
                    raise ValueError("no governor runs here")
                return await held.admit(self.admissions, request)
            case "settle":
                return held.settle(request)
            case "chat":
                return await self._chat(str(request["text"]), str(request.get("chat", "cli")), send)
            case other:
                raise ValueError(f"unknown op {other!r}")

    async def _chat(self, text: str, chat_id: str, send: Send) -> object:
        """Says a line and follows its turn until the stored answer is there."""
        async with asyncio.timeout(self.chat_timeout), self.door.subscribe(chat_id) as events:
            recent = await self.door.recent(chat_id, 1)
            after = recent[-1].position if recent else ""
            await self.door.say(chat_id, self.new_key(), text)
            while (event := await events.next()).kind is not LiveKind.CLOSING:
                if event.kind is LiveKind.STORED:
                    lines = await self.door.lines(chat_id, after, 100)
                    answers = [line for line in lines if line.speaker is Speaker.AGENT and not line.notice]
                    if answers:
                        return {"text": "\n\n".join(line.text for line in answers)}
                else:
                    await send({"event": event.kind.value, "text": event.text, "detail": event.detail})
        return {"text": ""}
