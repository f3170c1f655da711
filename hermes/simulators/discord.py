"""A Discord on loopback: REST API, gateway and file server on one port."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from hermes.simulators.chatting import ChatCall, ChatSimulator, Order
from hermes.simulators.discord_gateway import MESSAGE_CONTENT, PRIVILEGED, Gateway
from hermes.simulators.discord_rest import LIMITED, ROUTES, Method, Request, read_body
from hermes.simulators.discord_user import DiscordUser
from hermes.simulators.discord_world import BOT, Buckets, Channel, Refusal, SeenMessage, World
from hermes.simulators.faults import ApiError, Fault

__all__ = ["TOKEN", "Buckets", "DiscordSimulator"]

TOKEN = "NDI0MjQy.simulated.token-of-a-discord-bot"


class DiscordSimulator(DiscordUser, ChatSimulator):
    """`async with DiscordSimulator() as sim`, then a client with `sim.token`, `sim.api_url`, `sim.gateway_url`.

    A chat that is not known is the private chat of the user with that id. Faults are ordered by the names of
    discord_rest.ROUTES; `gateway` is the opening of a socket, `file` a download. `buckets` sets a rate limit.
    """

    def __init__(
        self,
        token: str = TOKEN,
        *,
        port: int = 0,
        heartbeat_interval: float = 41.25,
        buckets: Buckets | None = None,
        bot: int = BOT,
    ) -> None:
        super().__init__(port=port)
        self.token = token
        self.world = World(bot)
        self.world.buckets = buckets
        self.gateway = Gateway(token, self.changed, self.hold)
        self.gateway.heartbeat_interval = heartbeat_interval
        self.calls: list[ChatCall] = []
        self._outgoing: asyncio.Queue[tuple[str, dict[str, Any], int]] = asyncio.Queue()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, valid once it was started."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        """The REST API's address with its version."""
        return f"{self.url}/api/v10"

    base_url = api_url

    @property
    def gateway_url(self) -> str:
        """The gateway's address."""
        return f"ws://127.0.0.1:{self.port}/"

    def routes(self, router: web.UrlDispatcher) -> None:
        for (method, path), (name, handler) in ROUTES.items():
            router.add_route(method, f"/api/v10/{path}", partial(self._call, name, handler))
        router.add_get("/api/v10/gateway/bot", partial(self._call, "gateway_bot", self._gateway_bot))
        router.add_get("/", self._socket)
        router.add_get("/attachments/{channel}/{file}/{name}", self._download)
        router.add_route("*", "/api/v10/{path:.*}", self._nothing)

    async def start(self) -> None:
        await super().start()
        assert self._tasks is not None
        self._tasks.create_task(self._dispatch(), name="simulator-dispatch")

    def emit(self, event: str, data: dict[str, Any], intent: int) -> None:
        self._outgoing.put_nowait((event, json.loads(json.dumps(data)), intent))
        self.changed()

    async def _dispatch(self) -> None:
        """Events in the order in which they came about."""
        while not self.closing:
            if self._outgoing.empty():
                await self._changed.wait()
                continue
            await self.gateway.dispatch(*self._outgoing.get_nowait())

    def describe(self) -> str:
        chats = {number: self.texts(number) for number in self.world.channels}
        sockets = f"{len(self.gateway.sockets)} sockets, {self.gateway.listeners} sessions"
        return f"calls {[call.method for call in self.calls[-20:]]}, {sockets}, chats {chats}"

    def revoke(self) -> None:
        """From now on the token is refused: 401, and 4004 on the gateway."""
        self.gateway.revoked = True
        self._later(partial(self.gateway.close_all, 4004, "Authentication failed."))

    def restore(self) -> None:
        """The token is good again."""
        self.gateway.revoked = False

    def disallow_content(self) -> None:
        """The switch for message content is off in the developer portal: 4014."""
        self.gateway.allowed_intents = PRIVILEGED & ~MESSAGE_CONTENT
        self._later(partial(self.gateway.close_all, 4014, "Disallowed intent(s)."))

    def allow_content(self) -> None:
        """The switch is on again."""
        self.gateway.allowed_intents = PRIVILEGED

    def close_sockets(self, code: int) -> None:
        """Closes every gateway socket with a code."""
        self._later(partial(self.gateway.close_all, code))

    def ask(self, op: int, data: Any = None) -> None:
        """Sends every gateway socket an opcode: 7 (reconnect) or 9 (invalid session; `data`: resumable)."""
        self._later(partial(self.gateway.ask_all, op, data))

    def _later(self, call: Any) -> None:
        if self._tasks is not None:
            self._tasks.create_task(call(), name="simulator-gateway")

    def chat(self, chat: Any) -> list[SeenMessage]:
        return self.world.visible(int(chat))

    def texts(self, chat: Any) -> list[str]:
        return [seen.text for seen in self.world.visible(int(chat))]

    def cycles(self) -> int:
        return self.gateway.listeners

    def condition(self) -> Mapping[str, Any]:
        return {
            "calls": len(self.calls),
            "sockets": len(self.gateway.sockets),
            "listening_sessions": self.gateway.listeners,
            "identifies": len(self.gateway.identifies),
            "resumes": self.gateway.resumes,
            "heartbeats": sum(socket.heartbeats for socket in self.gateway.sockets),
            "answered": self.world.answered,
            "commands": [command["name"] for command in self.world.commands],
            "violations": self.world.buckets.violations if self.world.buckets is not None else 0,
        }

    def orders(self) -> Mapping[str, Order]:
        def say(order: dict[str, Any]) -> int:
            order["files"] = [(name, text.encode()) for name, text in order.pop("files", {}).items()]
            return self.say(**order)

        def flags(order: dict[str, Any]) -> None:
            for name, value in order.items():
                if name not in ("mute", "ghost", "deaf"):
                    raise ValueError(f"no flag {name}; known are deaf, ghost, mute")
                setattr(self.gateway, name, bool(value))

        return {
            "say": say,
            "edit": lambda order: self.edit(**order),
            "press": lambda order: self.press(**order),
            "command": lambda order: self.command(**order),
            "inject": lambda order: self.inject(str(order["event"]), order["data"]),
            "guild": lambda order: self.add_guild(int(order["guild"]), order.get("channels", ())),
            "thread": lambda order: self.add_thread(int(order["parent"]), int(order["thread"])),
            "gateway": flags,
            "close_sockets": lambda order: self.close_sockets(int(order["code"])),
            "ask": lambda order: self.ask(int(order["op"]), order.get("data")),
            "forget": lambda order: self.gateway.forget(),
            "limit": lambda order: setattr(self.world, "buckets", Buckets(**order) if order else None),
            "revoke": lambda order: self.revoke(),
            "restore": lambda order: self.restore(),
            "disallow_content": lambda order: self.disallow_content(),
            "allow_content": lambda order: self.allow_content(),
            "block": lambda order: self.block(int(order["chat"])),
            "kick": lambda order: self.kick(int(order["chat"])),
            "reopen": lambda order: self.reopen(int(order["chat"])),
        }

    def refuse(self, error: ApiError) -> web.Response:
        code = int(error.code) if error.code is not None and error.code.isdigit() else 0
        body = {"message": error.message, "code": code, **error.parameters}
        status = 200 if error.in_200 else error.status
        return _json(body, status, error.headers)

    async def _call(self, name: str, handler: Method, request: web.Request) -> web.StreamResponse:
        try:
            read = await self._read(request)
        except ValueError:
            return self.refuse(ApiError(400, "The request body contains invalid JSON.", code="50109"))
        fault = self.faults.pick(name, json.dumps([*request.match_info.values(), read.body], ensure_ascii=False))
        given = {"body": read.body, **request.match_info, **request.query}
        files = {key: data for key, (_, _, data) in read.files.items()}
        self.calls.append(ChatCall(name, given, time.monotonic(), files, type(fault).__name__ if fault else ""))
        self.changed()

        async def deliver() -> web.Response:
            try:
                return self._carry_out(name, handler, read, request)
            except Refusal as refusal:
                return _json(refusal.body(), refusal.status, refusal.headers)
            finally:
                self.changed()

        if self.gateway.deaf:
            return await self.stall(request, 3600.0, after_headers=False)
        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)

    def _carry_out(self, name: str, handler: Method, read: Request, request: web.Request) -> web.Response:
        open_to_all = name == "callback"  # the interaction's own token is the credential
        authorised = request.headers.get("Authorization") == f"Bot {self.token}" and not self.gateway.revoked
        if not (open_to_all or authorised):
            raise Refusal(401, 0, "401: Unauthorized")
        headers: dict[str, str] = {}
        if name in LIMITED and self.world.buckets is not None:
            headers |= self.world.buckets.take(f"{name}-{request.match_info['channel']}", time.monotonic())
        result = handler(self.world, read, self._tell)
        if result is None:
            return web.Response(status=204, headers=headers)
        return _json(result, 200, headers)

    async def _read(self, request: web.Request) -> Request:
        files: dict[str, tuple[str, str, bytes]] = {}
        text = ""
        if request.content_type == "multipart/form-data":
            for key, value in (await request.post()).items():
                if isinstance(value, web.FileField):
                    files[key] = (value.filename, value.content_type, value.file.read())
                elif key == "payload_json":
                    text = value if isinstance(value, str) else bytes(value).decode()
        elif request.can_read_body:
            text = await request.text()
        return Request(read_body(text), dict(request.match_info), dict(request.query), files, self.url)

    def _gateway_bot(self, world: World, request: Request, tell: Any) -> Any:
        left = max(0, self.gateway.session_limit)
        limit = {"total": 1000, "remaining": left, "reset_after": 14_400_000, "max_concurrency": 1}
        return {"url": self.gateway_url, "shards": 1, "session_start_limit": limit}

    def _ready(self, session: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        first = {
            "v": 10,
            "user": self.world.bot,
            "guilds": [{"id": str(guild), "unavailable": True} for guild in self.world.guilds],
            "session_id": session,
            "resume_gateway_url": self.gateway_url,
            "application": {"id": self.world.bot["id"], "flags": 1 << 19},
            "private_channels": [],
        }
        return first, [self.guild_json(guild) for guild in self.world.guilds]

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        fault: Fault | None = self.faults.pick("gateway", request.path_qs)

        async def deliver() -> web.Response:
            return web.Response(status=400, text="a socket cannot be delivered late")

        if fault is not None:
            return await self.misbehave(request, fault, deliver)
        return await self.gateway.serve(request, self._ready)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        found = self.world.files.get(int(request.match_info["file"]))
        fault = self.faults.pick("file", request.path)

        async def deliver() -> web.Response:
            expired = int(request.query.get("ex", "0"), 16) < time.time()
            if found is None or expired:
                return web.Response(status=404, text="This content is no longer available.")
            return web.Response(body=found[2], headers={"Content-Type": found[1]})

        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)

    async def _nothing(self, request: web.Request) -> web.Response:
        return self.refuse(ApiError(404, "404: Not Found"))

    def __repr__(self) -> str:
        return f"DiscordSimulator({self.port})"

    def where(self) -> dict[str, Any]:
        """The addresses a client needs."""
        return {"api_url": self.api_url, "gateway_url": self.gateway_url, "token": self.token}

    def channel(self, number: int) -> Channel:
        """The channel of that id."""
        return self.world.channels[number]


def _json(body: Any, status: int, headers: Mapping[str, str]) -> web.Response:
    """A JSON answer; its type is exactly `application/json`: clients compare for equality."""
    exact = {**headers, "Content-Type": "application/json"}
    return web.Response(status=status, body=json.dumps(body).encode(), headers=exact)
