"""The Slack platform: envelopes by Socket Mode or HTTP for what comes, the Web API for the history and what goes.

    receive ── what came, and one channel's history ─► updates in order ─► Batch with cursors ── (T1) ─► confirm
    send ── payload of render ─► chat.postMessage with our nonce in its metadata | update | delete | reaction ─► ts

An envelope is acknowledged after T1 only; Slack brings again what was not (R1). After each gap every channel is read
from its cursor on, and its live events wait behind that (R4, R5). Nothing here retries: each failure is told once, as
facts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp.abc import AbstractResolver

from hermes.core.delivery import Operation, Sent
from hermes.core.door import CallAnswer, Called
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, AttachmentRef, Batch, ButtonEvent, Event
from hermes.core.ports import Outgoing, Receipt
from hermes.core.records import OutgoingPart
from hermes.platforms.outfiles import OutFile, file_of, file_part, upload_seconds
from hermes.platforms.slack.calls import request_of, thread_of, with_buttons
from hermes.platforms.slack.channels import Channels
from hermes.platforms.slack.envelope import PLATFORM, Envelopes, Ourselves
from hermes.platforms.slack.failures import FailureReader
from hermes.platforms.slack.files import send_file
from hermes.platforms.slack.history import CannotLook, History
from hermes.platforms.slack.intake import Arrived, ByRequest, BySocket, Intake
from hermes.platforms.slack.names import Names
from hermes.platforms.slack.normalise import normalise
from hermes.platforms.slack.reader import Reader
from hermes.platforms.slack.render import escaped, render
from hermes.platforms.slack.socket import SocketMode
from hermes.platforms.slack.web_api import WebApi
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

CLOSE_LIMIT = 5.0
TYPING_LIMIT = 5.0
NAME_LIMIT = 2.0  # seconds: what a person calls themselves must not hold back what they say
NEEDED_SCOPE = "chat:write"
DOUBTS = 1000
TYPING_STATUS = "is thinking…"
_DONE = {"reactions.add": "already_reacted", "reactions.remove": "no_reaction"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds and counts; see ``config``. ``audit``: silence after which the history is looked at."""

    request: float = 30.0
    connect: float = 10.0
    ping_interval: float = 10.0
    catch_up_messages: int = 200
    catch_up_age: float = 86_400.0
    audit: float = 60.0
    connections: int = 32


@dataclass(frozen=True, slots=True)
class Keys:
    """What proves who we are: ``app_token`` for Socket Mode, ``signing_secret`` for HTTP."""

    bot_token: str
    app_token: str = ""
    signing_secret: str = ""


class SlackPlatform:
    """One app in one workspace. ``base_url`` replaces Slack's own. ``wall`` gives unix seconds."""

    name = PLATFORM
    delivers_at_commit = False
    file_part = staticmethod(file_part)
    creates_are_safe = True  # a create that may have arrived is looked for before it goes again (R18)

    def __init__(
        self,
        keys: Keys,
        *,
        base_url: str = "",
        limits: Limits | None = None,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._base_url = base_url
        self.limits = limits or Limits()
        self._network = (resolver, proxy)
        self._wall = wall
        self.failures = FailureReader(keys.bot_token, keys.app_token, keys.signing_secret)
        self._channels = Channels()
        names = Names(self._about)
        self._envelopes = Envelopes(
            Ourselves(), self._channels.kind_of, self._channels.takes_part, names.of
        )
        self._unconfirmed: Batch | None = None
        self._due: list[Arrived] = []
        self._doubtful: dict[str, None] = {}
        self._born = wall()
        self._no_typing = False
        self._history = History(self._form)
        self._reader = Reader(self._envelopes, self._channels, self._history, self.limits, wall, names)
        self._api, self._intake = self._fresh()

    def _fresh(self) -> tuple[WebApi, Intake]:
        resolver, proxy = self._network
        bounds = self.limits
        api = WebApi(
            self._keys.bot_token, base_url=self._base_url, connections=bounds.connections,
            connect_timeout=bounds.connect, read_timeout=bounds.request, resolver=resolver, proxy=proxy,
        )  # fmt: skip
        if not self._keys.app_token:
            return api, ByRequest(self._keys.signing_secret, self._wall, bounds.ping_interval)
        socket = SocketMode(
            api, self._keys.app_token, self.failures, ping_interval=bounds.ping_interval,
            open_limit=bounds.connect + bounds.request,
        )  # fmt: skip
        return api, BySocket(socket)

    @property
    def account(self) -> str:
        """The bot's user id; known after ``connect``."""
        return self._envelopes.us.user

    async def connect(self) -> None:
        """Proves the tokens and their scopes, opens a socket and waits for its greeting. Raises PlatformFailure."""
        await self._api.open()
        answer, headers = await self.failures.guard(
            "auth.test", self._api.call("auth.test", form={}), self._call_limit
        )
        user, team = answer.get("user_id"), answer.get("team_id")
        if not isinstance(user, str) or not isinstance(team, str):
            raise PlatformFailure(self.failures.garbage("auth.test"))
        scopes = headers.get("x-oauth-scopes")
        if scopes is not None and NEEDED_SCOPE not in {scope.strip() for scope in scopes.split(",")}:
            raise PlatformFailure(self.failures.missing_scope(NEEDED_SCOPE, scopes))
        self._envelopes.us = Ourselves(user, team, str(answer.get("bot_id") or ""))
        await self._intake.open()
        self._reader.gap()
        if isinstance(self._intake, BySocket) and self._intake.socket.connections > 1:
            # each gets a part of what people say; a socket of ours that Slack did not see die is counted too
            log.warning("slack_other_sockets", sockets=self._intake.socket.connections)

    def resume_from(self, cursors: Mapping[str, str]) -> None:
        """See ``ports.CatchesUp``."""
        self._channels.restore(cursors)
        self._reader.gap()

    # ---- what comes -------------------------------------------------------------------------------

    async def receive(self) -> Batch:
        """What has come, and at most one channel's history. Raises PlatformFailure."""
        if self._unconfirmed is not None:
            return self._unconfirmed  # T1 failed: the same once more
        due, self._due = self._due, []
        await self._intake.acknowledge(due)
        gaps = self._intake.gaps
        arrived = await self._intake.take(wait=not self._reader.busy)
        if self._intake.gaps != gaps:
            self._reader.gap()
        await self._reader.take(arrived)
        await self._reader.read_on()
        ghost = await self._reader.audit(quiet=not arrived)
        if ghost is not None:
            await self._intake.close()
            self._reader.gap()
            raise PlatformFailure(self.failures.ghost(ghost))
        updates, done, cursors = self._reader.ready()
        batch = Batch(tuple(updates), done, cursors)
        if updates or cursors:
            self._unconfirmed = batch
        return batch

    def confirm(self, batch: Batch) -> None:
        """The batch is on disk: Slack may be told so."""
        self._unconfirmed = None
        if not isinstance(batch.token, tuple):
            return
        if isinstance(self._intake, ByRequest):
            self._intake.stored(list(batch.token))
        else:
            self._due.extend(batch.token)

    async def called(self, request: Called) -> CallAnswer:
        """See ``ports.IsCalled``: in mode http, a request to our address."""
        if isinstance(self._intake, ByRequest):
            return await self._intake.called(request)
        return CallAnswer(404)

    # ---- what it means, and what goes -------------------------------------------------------------

    def normalise(self, raw: str) -> Event:
        """See ``normalise.normalise``. Raises Poison."""
        return normalise(raw)

    def render(self, text: str) -> tuple[OutgoingPart, ...]:
        """See ``render.render``. Raises Poison."""
        return render(text)

    def with_buttons(
        self, parts: tuple[OutgoingPart, ...], options: Sequence[tuple[str, str]]
    ) -> tuple[OutgoingPart, ...]:
        """See ``calls.with_buttons``. Raises Poison."""
        return with_buttons(parts, options)

    async def send(self, outgoing: Outgoing) -> Receipt:
        """One create, edit, delete or reaction. Raises PlatformFailure.

        A create that may have arrived before is looked for first; where we may not look, it goes with the mark.
        """
        create = outgoing.operation is Operation.CREATE
        file = file_of(outgoing)
        if file is not None:
            return await self._send_file(file, outgoing)
        method, body = request_of(outgoing)
        if create and self._may_stand_there(outgoing):
            try:
                found = await self._history.ours(outgoing.address, outgoing.nonce, outgoing.since or self._wall())
            except CannotLook:
                method, body = request_of(replace(outgoing, marked=True))
            else:
                if found is not None:
                    return await self._found(outgoing, found)
                method, body = request_of(replace(outgoing, marked=False))
        try:
            answer = await self._json(method, body)
        except PlatformFailure as failure:
            if failure.facts.code is not None and failure.facts.code == _DONE.get(method):
                return Receipt(outgoing.message_ref or "")
            if create and failure.facts.sent is Sent.MAYBE_SENT:
                self._doubt(outgoing.nonce)
            raise
        self._doubtful.pop(outgoing.nonce, None)
        if not create:
            return Receipt(outgoing.message_ref or "")
        ts = answer.get("ts")
        if not isinstance(ts, str):
            self._doubt(outgoing.nonce)
            raise PlatformFailure(self.failures.garbage(method))
        if outgoing.address.thread_id is not None:
            self._channels.speak_in(outgoing.address.chat_id, outgoing.address.thread_id, ts)
        return Receipt(ts)

    async def _send_file(self, file: OutFile, outgoing: Outgoing) -> Receipt:
        limit = self._call_limit + upload_seconds(outgoing)

        async def upload(address: str, content: bytes) -> None:
            await self.failures.guard("upload", self._api.upload(address, content), limit)

        marked = self._may_stand_there(outgoing)
        try:
            return await send_file(file, outgoing.address, marked, self._form, upload, self.failures)
        except PlatformFailure as failure:
            if failure.facts.sent is Sent.MAYBE_SENT:
                self._doubt(outgoing.nonce)
            raise

    def _may_stand_there(self, outgoing: Outgoing) -> bool:
        """A send of ours that nobody saw the end of, or one that an earlier process may have made."""
        earlier = outgoing.since is not None and outgoing.since < self._born
        return earlier or outgoing.marked or outgoing.nonce in self._doubtful

    def _doubt(self, nonce: str) -> None:
        self._doubtful[nonce] = None
        if len(self._doubtful) > DOUBTS:
            self._doubtful.pop(next(iter(self._doubtful)))

    async def _found(self, outgoing: Outgoing, message: Mapping[str, Any]) -> Receipt:
        """It did arrive. A draft that arrived is made to say what it is to say now."""
        ts = str(message["ts"])
        method, body = request_of(replace(outgoing, operation=Operation.EDIT, message_ref=ts, marked=False))
        if message.get("text") != body["text"] or body["blocks"]:
            await self._json(method, body)
        self._doubtful.pop(outgoing.nonce, None)
        return Receipt(ts)

    async def typing(self, address: Address) -> None:
        """A line under the thread, where Slack shows one to apps; nothing elsewhere. Raises PlatformFailure."""
        if address.thread_id is None or self._no_typing:
            return
        form = {"channel_id": address.chat_id, "thread_ts": address.thread_id, "status": TYPING_STATUS}
        try:
            await self._json("assistant.threads.setStatus", form, limit=TYPING_LIMIT)
        except PlatformFailure as failure:
            if failure.facts.status == 429 or failure.facts.code is None:
                raise
            self._no_typing = True  # the app is no assistant, or this is none of its threads

    async def whisper(self, event: ButtonEvent, raw: str, text: str) -> None:
        """See ``ports.Whispers``. Raises PlatformFailure."""
        where = {"channel": event.address.chat_id, "user": event.identity.user_id, **thread_of(event.address)}
        await self._json("chat.postEphemeral", {**where, "text": escaped(text)}, limit=TYPING_LIMIT)

    async def download(self, attachment: AttachmentRef, limit: int) -> bytes:
        """An inbound file of at most ``limit`` bytes. Raises PlatformFailure."""
        if attachment.size is not None and attachment.size > limit:
            raise PlatformFailure(self.failures.bound("download", f"the file is over {limit} bytes"))
        answer = await self._form("files.info", {"file": attachment.ref})
        file = answer.get("file")
        address = (file.get("url_private_download") or file.get("url_private")) if isinstance(file, dict) else None
        if not isinstance(address, str):
            raise PlatformFailure(self.failures.garbage("files.info"))
        return await self.failures.guard("download", self._api.fetch(address, limit), None)

    # ---- its life ---------------------------------------------------------------------------------

    def use(self, limits: Limits) -> None:
        """Bounds in force from the next cycle on; those of connections from the next rebuild on."""
        self.limits = limits
        self._reader.bounds = limits

    async def rebuild(self) -> None:
        """New client, new sockets; what was received and not confirmed comes again."""
        await self.aclose()
        self._due.clear()
        self._api, self._intake = self._fresh()

    async def aclose(self) -> None:
        """Sockets and every connection end within ``CLOSE_LIMIT`` seconds."""
        with contextlib.suppress(PlatformFailure):
            await self.failures.guard("close", self._intake.close(), CLOSE_LIMIT)
        await self._api.close()

    @property
    def _call_limit(self) -> float:
        return self.limits.connect + self.limits.request

    async def _form(self, method: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        answer, _ = await self.failures.guard(method, self._api.call(method, form=form), self._call_limit)
        return answer

    async def _about(self, user: str) -> Mapping[str, Any]:
        call = self._api.call("users.info", form={"user": user})
        answer, _ = await self.failures.guard("users.info", call, NAME_LIMIT)
        return answer

    async def _json(
        self, method: str, body: Mapping[str, Any], *, limit: float | None = None
    ) -> Mapping[str, Any]:
        call = self._api.call(method, body=body)
        answer, _ = await self.failures.guard(method, call, limit or self._call_limit)
        return answer
