"""A Telegram Bot API server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import Any

from aiohttp import web

from hermes.simulators.faults import ApiError
from hermes.simulators.loopback import Loopback
from hermes.simulators.telegram_methods import METHODS, Params
from hermes.simulators.telegram_user import TelegramUser
from hermes.simulators.telegram_world import ApiCall, Draft, Flood, Refusal, SeenMessage, World

__all__ = ["Flood", "SeenMessage", "TelegramSimulator"]

TOKEN = "424242:simulated-token-of-a-bot"
_CONFLICT = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


class TelegramSimulator(Loopback, TelegramUser):
    """`async with TelegramSimulator() as sim`, then a Bot with `sim.token`, `sim.base_url` and
    `sim.base_file_url`.

    getUpdates confirms by offset, a second poller ends the first with 409, and what the bot sends can be
    read as the user sees it. `flood` sets Telegram's limit per chat; `strict_chats` refuses chats that never
    wrote. Message threads exist once a user wrote in them.
    """

    def __init__(
        self,
        token: str = TOKEN,
        *,
        port: int = 0,
        username: str = "simulated_bot",
        flood: Flood | None = None,
        strict_chats: bool = False,
    ) -> None:
        super().__init__(port=port)
        self.token = token
        number = token.partition(":")[0]
        self.bot = {
            "id": int(number) if number.isdigit() else 424242,
            "is_bot": True,
            "first_name": "Simulated",
            "username": username,
        }
        self.world = World()
        self.world.flood, self.world.strict_chats = flood, strict_chats
        self.calls: list[ApiCall] = []
        self.polls = 0
        """getUpdates calls that wait at this moment."""
        self._revoked = False
        self._poller = 0

    @property
    def base_url(self) -> str:
        """What a client calls base_url: the token follows it."""
        return f"{self.url}/bot"

    @property
    def base_file_url(self) -> str:
        """What a client calls base_file_url."""
        return f"{self.url}/file/bot"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/bot{token}/{method}", self._call)
        router.add_get("/file/bot{token}/{path:.+}", self._download)

    def describe(self) -> str:
        chats = {chat: [seen.text for seen in self.chat(chat)] for chat in self.world.sent}
        return f"calls {[call.method for call in self.calls[-20:]]}, chats {chats}"

    def revoke(self) -> None:
        """From now on the token is refused with 401, waiting polls included."""
        self._revoked = True
        self.changed()

    def restore(self) -> None:
        """The token is good again."""
        self._revoked = False

    def chat(self, chat: int) -> list[SeenMessage]:
        """The bot's messages that stand in the chat."""
        return self.world.visible(chat)

    def texts(self, chat: int) -> list[str]:
        """Their texts."""
        return [seen.text for seen in self.world.visible(chat)]

    def drafts(self, chat: int) -> list[Draft]:
        """Every draft shown in the chat, in order."""
        return [draft for draft in self.world.drafts if draft.chat == chat]

    def called(self, method: str) -> list[ApiCall]:
        """The calls of one method, without regard to case."""
        return [call for call in self.calls if call.method.lower() == method.lower()]

    def refuse(self, error: ApiError) -> web.Response:
        body: dict[str, Any] = {"ok": False, "error_code": error.status, "description": error.message}
        if error.parameters:
            body["parameters"] = dict(error.parameters)
        return web.json_response(body, status=200 if error.in_200 else error.status, headers=error.headers)

    def _denied(self, token: str) -> ApiError | None:
        """Telegram answers 404 to what cannot be a token and 401 to one that it does not know."""
        number, _, secret = token.partition(":")
        if not (number.isdigit() and secret):
            return ApiError(404, "Not Found")
        if token != self.token or self._revoked:
            return ApiError(401, "Unauthorized")
        return None

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method, token = request.match_info["method"], request.match_info["token"]
        try:
            params = await _read_params(request)
        except ValueError:
            return self.refuse(ApiError(400, "Bad Request: can't parse request body"))
        fault = self.faults.pick(method, json.dumps(params.values, ensure_ascii=False, default=str))
        name = "" if fault is None else type(fault).__name__
        files = {key: data for key, (_, data) in params.files.items()}
        self.calls.append(ApiCall(method, params.values, time.monotonic(), files, name))
        self.changed()

        async def deliver() -> web.Response:
            denied = self._denied(token)
            if denied is not None:
                return self.refuse(denied)
            try:
                result = await self._carry_out(method.lower(), params, token)
            except Refusal as refusal:
                return self.refuse(ApiError(refusal.code, refusal.description, parameters=refusal.parameters))
            finally:
                self.changed()
            return web.json_response({"ok": True, "result": result})

        if method.lower() == "getupdates" and fault is None:
            return await self._poll(request, deliver)
        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)

    async def _poll(self, request: web.Request, deliver: Any) -> web.StreamResponse:
        """A fault that arrives while the poll waits hits it at once, as an outage would."""
        try:
            response: web.Response = await deliver()
        except _Interrupted as interruption:
            return await self.misbehave(request, interruption.fault, deliver)
        return response

    async def _carry_out(self, method: str, params: Params, token: str) -> Any:
        if method == "getupdates":
            return await self._updates(params, token)
        if method not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        return METHODS[method](self.world, params, self.bot)

    async def _updates(self, params: Params, token: str) -> list[dict[str, Any]]:
        if self.world.webhook:
            raise Refusal(409, _WEBHOOK)
        self._poller += 1
        mine = self._poller
        self.changed()  # ends an older poll
        allowed = params.data("allowed_updates", list)
        if allowed is not None:
            self.world.allowed = frozenset(allowed)
        offset = params.number("offset")
        if offset:
            self.world.confirm(offset)
        limit = max(1, min(100, params.number("limit") or 100))
        seen = self.faults.revision
        self.polls += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(50, max(0, params.number("timeout") or 0))):
                    while not self.world.pending and mine == self._poller and not self.closing:
                        await self._changed.wait()
                        if (denied := self._denied(token)) is not None:
                            raise Refusal(denied.status, denied.message)
                        if seen != self.faults.revision:
                            seen = self.faults.revision
                            if (fault := self.faults.pick("getUpdates", "")) is not None:
                                raise _Interrupted(fault)
        finally:
            self.polls -= 1
        if mine != self._poller:
            raise Refusal(409, _CONFLICT)
        return [self.world.pending[at] for at in range(min(limit, len(self.world.pending)))]

    async def _download(self, request: web.Request) -> web.StreamResponse:
        parts = request.match_info["path"].split("/")
        denied = self._denied(request.match_info["token"])
        found = self.world.files.get(parts[1]) if len(parts) == 3 else None
        fault = self.faults.pick("file", request.path)

        async def deliver() -> web.Response:
            if denied is not None or found is None:
                return self.refuse(denied or ApiError(404, "Not Found"))
            return web.Response(body=found[1], content_type="application/octet-stream")

        return await deliver() if fault is None else await self.misbehave(request, fault, deliver)


class _Interrupted(Exception):
    """A fault came for a poll that waits."""

    def __init__(self, fault: Any) -> None:
        super().__init__()
        self.fault = fault


async def _read_params(request: web.Request) -> Params:
    values: dict[str, Any] = dict(request.query)
    files: dict[str, tuple[str, bytes]] = {}
    if request.content_type == "application/json":
        body = json.loads(await request.text() or "{}")
        if not isinstance(body, dict):
            raise ValueError("not an object")
        values.update(body)
    elif request.method == "POST":
        for key, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                files[key] = (value.filename, value.file.read())
            else:
                values[key] = value if isinstance(value, str) else bytes(value).decode()
    return Params(values, files)
