"""A Slack on loopback: Web API, Socket Mode, events over HTTP, and files, on one port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
from aiohttp import web

from hermes.simulators.chatting import ChatCall, ChatSimulator, Order
from hermes.simulators.faults import ApiError
from hermes.simulators.slack_methods import METHODS
from hermes.simulators.slack_socket import Outbound
from hermes.simulators.slack_user import SlackUser, channel_id
from hermes.simulators.slack_world import Flood, Refusal, SeenMessage, World

__all__ = ["APP_TOKEN", "BOT_TOKEN", "SIGNING_SECRET", "Flood", "SlackSimulator"]

BOT_TOKEN = "xoxb-simulated-bot-token"
APP_TOKEN = "xapp-1-simulated-app-token"
SIGNING_SECRET = "simulated-signing-secret"
_FLAGS = ("mute", "ghost", "deaf")


class SlackSimulator(SlackUser, ChatSimulator):
    """`async with SlackSimulator() as sim`, then a client with `sim.base_url`, `sim.token`, `sim.app_token`.

    With a ``request_url`` events are posted there, signed, instead of going to sockets. Faults are ordered by the
    names of Slack's methods; `socket` is the opening of a socket, `file` a download, `upload` an upload.
    """

    def __init__(
        self,
        token: str = BOT_TOKEN,
        *,
        port: int = 0,
        app_token: str = APP_TOKEN,
        signing_secret: str = SIGNING_SECRET,
        request_url: str = "",
        ack_timeout: float = 3.0,
    ) -> None:
        super().__init__(port=port)
        self.token = token
        self.app_token = app_token
        self.world = World()
        self.out = Outbound(self.changed, ack_timeout, request_url=request_url, signing_secret=signing_secret)
        self.calls: list[ChatCall] = []
        self.refused_token: str | None = None  # the error that every call gets
        self.refused_app: str | None = None

    @property
    def base_url(self) -> str:
        """The Web API's address."""
        return f"{self.url}/api/"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/api/{method}", self._call)
        router.add_get("/api/{method}", self._call)
        router.add_get("/link", self._socket)
        router.add_get("/files-pri/{file}/{name}", self._download)
        router.add_post("/upload/v1/{file}", self._upload)

    async def start(self) -> None:
        await super().start()
        assert self._tasks is not None
        self._tasks.create_task(self._deliver(), name="simulator-events")

    async def _deliver(self) -> None:
        """Envelopes in the order in which they came about, and again where nobody acknowledged them."""
        async with aiohttp.ClientSession() as session:
            while not self.closing:
                wake = self._changed
                post = bool(self.out.request_url)
                wait = await (self.out.post_due(session) if post else self.out.deliver_due())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await wake.wait()

    def describe(self) -> str:
        chats = {name: self.texts(name) for name in self.world.channels}
        pending = [(one.id, one.attempt) for one in self.out.pending]
        return f"calls {[c.method for c in self.calls[-20:]]}, {len(self.out.sockets)} sockets, {pending}, {chats}"

    # ---- what may happen to the app ----------------------------------------------------------------

    def revoke(self, error: str = "token_revoked", *, app: bool = False) -> None:
        """From now on a token is refused with this error."""
        if app:
            self.refused_app = error
        else:
            self.refused_token = error

    def restore(self) -> None:
        """Both tokens are good again."""
        self.refused_token = self.refused_app = None

    def disconnect(self, reason: str) -> None:
        """Announces an end on every socket, and closes it a moment later."""
        self._later(self.out.disconnect_all(reason, self.hold))

    def _later(self, call: Any) -> None:
        if self._tasks is not None:
            self._tasks.create_task(call, name="simulator-socket")

    # ---- what the control API needs ------------------------------------------------------------------

    def chat(self, chat: Any) -> list[SeenMessage]:
        return self.world.visible(channel_id(chat))

    def texts(self, chat: Any) -> list[str]:
        return [seen.text for seen in self.chat(chat)]

    def cycles(self) -> int:
        return len(self.out.sockets)

    def condition(self) -> Mapping[str, Any]:
        return {
            "calls": len(self.calls),
            "sockets": len(self.out.sockets),
            "pending": len(self.out.pending),
            "acknowledged": len(self.out.acknowledged),
            "lost": len(self.out.lost),
            "pings": sum(socket.pings for socket in self.out.sockets),
            "http": self.out.http_statuses[-50:],
            "bans": len(self.world.flood.banned) if self.world.flood is not None else 0,
            "violations": self.world.flood.violations if self.world.flood is not None else 0,
        }

    def orders(self) -> Mapping[str, Order]:
        def say(order: dict[str, Any]) -> str:
            order["files"] = [(name, text.encode()) for name, text in order.pop("files", {}).items()]
            return self.say(**order)

        def flags(order: dict[str, Any]) -> None:
            for name, value in order.items():
                if name not in _FLAGS:
                    raise ValueError(f"no flag {name}; known are {', '.join(_FLAGS)}")
                setattr(self.out, name, bool(value))

        def scopes(order: dict[str, Any]) -> None:
            found = order.get("scopes")
            self.world.scopes = None if found is None else set(found)

        def flood(order: dict[str, Any]) -> None:
            self.world.flood = Flood(**order)

        return {
            "say": say,
            "flood": flood,
            "edit": lambda order: self.edit(**order),
            "press": lambda order: self.press(**order),
            "command": lambda order: self.command(**order),
            "bot_says": lambda order: self.bot_says(**order),
            "inject": lambda order: self.inject(order["event"]),
            "channel": lambda order: self.add_channel(**order),
            "socket": flags,
            "scopes": scopes,
            "request_url": lambda order: setattr(self.out, "request_url", str(order["url"])),
            "disconnect": lambda order: self.disconnect(str(order["reason"])),
            "revoke": lambda order: self.revoke(**order),
            "restore": lambda order: self.restore(),
            "archive": lambda order: self.archive(order["chat"]),
            "kick": lambda order: self.kick(order["chat"]),
            "close_channel": lambda order: self.close_channel(order["chat"], str(order["error"])),
            "reopen": lambda order: self.reopen(order["chat"]),
        }

    def where(self) -> dict[str, Any]:
        """What a client needs."""
        return {"token": self.token, "app_token": self.app_token, "signing_secret": self.out.signing_secret}

    # ---- the Web API ---------------------------------------------------------------------------------

    def refuse(self, error: ApiError) -> web.Response:
        body = json.dumps({"ok": False, "error": error.message, **error.parameters})
        status = 200 if error.in_200 else error.status
        return web.Response(status=status, text=body, content_type="application/json", headers=error.headers)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        given = await _given(request)
        fault = self.faults.pick(method, json.dumps(given, ensure_ascii=False))
        name = type(fault).__name__ if fault else ""
        self.calls.append(ChatCall(method, given, time.monotonic(), fault=name))
        self.changed()

        async def deliver() -> web.Response:
            try:
                answer = {"ok": True, **self._carry_out(method, given, request)}
            except Refusal as refusal:
                return web.json_response(refusal.body(), status=refusal.status, headers=refusal.headers)
            finally:
                self.changed()
            return web.json_response(answer, headers={"X-OAuth-Scopes": self.world.granted()})

        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)

    def _carry_out(self, method: str, given: dict[str, Any], request: web.Request) -> dict[str, Any]:
        shown = given.pop("token", None) or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if method == "apps.connections.open":
            if self.refused_app is not None or shown != self.app_token:
                wrong = "not_allowed_token_type" if shown == self.token else "invalid_auth"
                raise Refusal(self.refused_app or wrong)
            return {"url": f"ws://127.0.0.1:{self.port}/link?ticket={self.out.new_ticket()}&app_id=sim"}
        if self.refused_token is not None or shown != self.token:
            raise Refusal(self.refused_token or "invalid_auth")
        handler = METHODS.get(method)
        if handler is None:
            raise Refusal("unknown_method", req_method=method)
        return handler(self.world, given, self.tell, self.url)

    # ---- sockets and files ---------------------------------------------------------------------------

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        fault = self.faults.pick("socket", request.path_qs)

        async def deliver() -> web.Response:
            return web.Response(status=400, text="a socket cannot be delivered late")

        if fault is not None:
            return await self.misbehave(request, fault, deliver)
        return await self.out.serve(request)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        found = self.world.files.get(request.match_info["file"])
        fault = self.faults.pick("file", request.path)

        async def deliver() -> web.Response:
            if request.headers.get("Authorization") != f"Bearer {self.token}":
                return web.Response(text="<html>Sign in</html>", content_type="text/html")
            if found is None:
                return web.Response(status=404, text="not found")
            return web.Response(body=found[1], headers={"Content-Type": found[0]["mimetype"]})

        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["file"]
        content = await request.read()

        async def deliver() -> web.Response:
            if name not in self.world.uploads:
                return web.Response(status=404, text="not found")
            self.world.uploads[name] = content
            return web.Response(text=f"OK - {len(content)}")

        fault = self.faults.pick("upload", name)
        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)

    def __repr__(self) -> str:
        return f"SlackSimulator({self.port})"


async def _given(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        try:
            found = json.loads(await request.text() or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
    form = await request.post()
    return {**dict(request.query), **{k: v for k, v in form.items() if isinstance(v, str)}}
