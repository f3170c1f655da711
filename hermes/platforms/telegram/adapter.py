"""The Telegram platform: our own ``getUpdates`` loop, one call at a time, over ``telegram.Bot``.

    receive ── offset ─► getUpdates ─► envelopes ─► Batch ── (T1 by the caller) ─► confirm: offset raised
    send ── payload of render ─► sendMessage | editMessageText | deleteMessage ─► message id

An update counts as received only when a later call carries a higher offset (R1, R3), so nothing is
acknowledged before ``confirm``. Nothing here retries: each failure is told once, as facts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp.abc import AbstractResolver

from hermes.core.delivery import Operation
from hermes.core.door import CallAnswer, Called
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, AttachmentRef, Batch, Event
from hermes.core.ports import Outgoing, Receipt
from hermes.core.records import OutgoingPart
from hermes.platforms.outfiles import file_part, upload_seconds
from hermes.platforms.telegram.calls import request_of, thread_of, with_buttons
from hermes.platforms.telegram.envelope import PLATFORM, SERVED, Envelopes
from hermes.platforms.telegram.failures import FailureReader
from hermes.platforms.telegram.normalise import normalise
from hermes.platforms.telegram.render import render
from hermes.platforms.telegram.transport import AiohttpRequest, ApiBot, close_within
from hermes.platforms.telegram.webhook import SECRET_HEADER, Delivery, Mailbox, Webhook

API_ADDRESS = "https://api.telegram.org"
POLL_MARGIN = 15.0  # seconds after the poll's own time-out at which it counts as stalled
POOL_TIMEOUT = 5.0
SEND_MARGIN = 5.0  # seconds above the sum of the transport's limits, so that those speak first
TYPING_LIMIT = 5.0
DOWNLOAD_LIMIT = 600.0  # whoever wants the file gives up sooner
ANSWER_LIMIT = 2.0  # seconds for telling a pressed button that it was heard
ANSWERS = 20  # presses told so before one poll; the rest stop blinking by themselves
CLOSE_LIMIT = 5.0
OFFSET_LIFETIME = 5 * 86400.0
"""After a week without an update Telegram numbers anew, perhaps lower: an old offset would then discard."""
QUICK_POLL = 0.2  # seconds: an empty answer sooner than this is not a long poll
QUICK_POLLS = 3
QUICK_POLL_PAUSE = 1.0


class TelegramPlatform:
    """One bot. ``base_url`` is a Bot API server's address up to and without ``/bot<token>``.

    ``poll_timeout`` in whole seconds; ``connections`` bounds concurrent sends. With a ``webhook`` Telegram
    calls us: the web server hands each request to ``take``. ``wall`` gives unix seconds.
    """

    name = PLATFORM
    delivers_at_commit = False
    creates_are_safe = False
    file_part = staticmethod(file_part)

    def __init__(
        self,
        token: str,
        *,
        base_url: str = "",
        poll_timeout: float = 25.0,
        connections: int = 32,
        connect_timeout: float = 10.0,
        read_timeout: float = 20.0,
        poll_margin: float = POLL_MARGIN,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
        webhook: Webhook | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._address = (base_url or API_ADDRESS).rstrip("/")
        self._poll_timeout = int(poll_timeout)
        self._poll_margin = poll_margin
        self._connections = connections
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._send_limit = POOL_TIMEOUT + connect_timeout + read_timeout + SEND_MARGIN
        self._resolver = resolver
        self._proxy = proxy
        self._webhook = webhook
        self._mailbox = Mailbox()
        self._wall = wall
        head = token.partition(":")[0]
        self._envelopes = Envelopes(head if head.isdigit() else "")
        self.failures = FailureReader(PLATFORM, token)
        self._offset: int | None = None
        self._offset_at = 0.0
        self._quick_polls = 0
        self._pressed: list[str] = []
        self._requests: tuple[AiohttpRequest, AiohttpRequest] | None = None
        self._bot = self._new_bot()

    @property
    def account(self) -> str:
        """The bot's id; it is the part of the token before the colon, so it is known from the start."""
        return self._envelopes.account

    def _new_bot(self) -> ApiBot:
        def pool(connections: int) -> AiohttpRequest:
            return AiohttpRequest(
                connections=connections,
                connect_timeout=self._connect_timeout,
                pool_timeout=POOL_TIMEOUT,
                read_timeout=self._read_timeout,
                resolver=self._resolver,
                proxy=self._proxy,
            )

        polls, sends = pool(2), pool(self._connections)
        self._requests = (polls, sends)
        return ApiBot(
            self._token,
            base_url=f"{self._address}/bot",
            base_file_url=f"{self._address}/file/bot",
            request=sends,
            get_updates_request=polls,
        )

    async def connect(self) -> None:
        """getMe proves the token. Raises PlatformFailure."""
        for request in self._requests or ():
            await request.initialize()
        me = await self._call("getMe", {}, limit=self._send_limit)
        if not isinstance(me, dict) or not isinstance(me.get("id"), int):
            raise PlatformFailure(self.failures.garbage("getMe"))
        self._envelopes.account = str(me["id"])
        self._envelopes.username = str(me.get("username") or "")
        if self._webhook is not None:
            await self._call("setWebhook", self._webhook_data(self._webhook), limit=self._send_limit)

    @staticmethod
    def _webhook_data(webhook: Webhook) -> dict[str, Any]:
        return {
            "url": webhook.url,
            "secret_token": webhook.secret,
            "allowed_updates": list(SERVED),
            "drop_pending_updates": False,
        }

    async def receive(self) -> Batch:
        """One long poll; updates not yet confirmed come again. Raises PlatformFailure."""
        if self._quick_polls >= QUICK_POLLS:
            await asyncio.sleep(QUICK_POLL_PAUSE)  # a server that does not hold the poll must not spin us
        await self._answer_buttons()
        if self._webhook is not None:
            return await self._called()
        begun = time.monotonic()
        try:
            answer = await self._poll()
        except PlatformFailure as failure:
            if not self.failures.is_webhook_conflict(failure.facts):
                raise
            await self._call("deleteWebhook", {"drop_pending_updates": False}, limit=self._send_limit)
            answer = await self._poll()
        if not isinstance(answer, list):
            raise PlatformFailure(self.failures.garbage("getUpdates"))
        quick = not answer and time.monotonic() - begun < QUICK_POLL
        self._quick_polls = self._quick_polls + 1 if quick else 0
        return self._batch(answer, ())

    def _batch(self, updates: list[Any], deliveries: tuple[Delivery, ...]) -> Batch:
        now = self._wall()
        token = Token(_next_offset(updates), _presses(updates), deliveries)
        return Batch(tuple(self._envelopes.of(update, now) for update in updates), token)

    async def _called(self) -> Batch:
        """What Telegram brought. An idle cycle is complete when Telegram still knows our address."""
        deliveries = await self._mailbox.take(self._poll_timeout or 1)
        if not deliveries:
            info = await self._call("getWebhookInfo", {}, limit=self._send_limit)
            url = info.get("url") if isinstance(info, dict) else None
            if self._webhook is None or url != self._webhook.url:
                raise PlatformFailure(self.failures.webhook_lost())
        return self._batch([delivery.update for delivery in deliveries], deliveries)

    async def take(self, update: object, secret: str) -> bool | None:
        """An update that a request to our webhook brought: True when it is on disk, False for "come again",
        None when the request does not show our secret. ``secret`` is the request's header."""
        if self._webhook is None or not self._webhook.knows(secret):
            return None
        return await self._mailbox.put(update)

    async def called(self, request: Called) -> CallAnswer:
        """See ``door.IsCalled``: 200 when the update is on disk, 503 for "come again"; a forged call is refused."""
        shown = request.headers.get(SECRET_HEADER, "")
        if self._webhook is None or not self._webhook.knows(shown):
            return CallAnswer(401)
        try:
            update = json.loads(request.body)
        except (ValueError, RecursionError):
            return CallAnswer(400)
        return CallAnswer(200 if await self.take(update, shown) else 503)

    async def _poll(self) -> Any:
        data: dict[str, Any] = {"timeout": self._poll_timeout, "allowed_updates": list(SERVED)}
        if self._offset is not None and time.monotonic() - self._offset_at < OFFSET_LIFETIME:
            data["offset"] = self._offset
        limit = self._poll_timeout + self._poll_margin
        return await self._call("getUpdates", data, limit=limit, read_timeout=limit)

    def confirm(self, batch: Batch) -> None:
        """The next poll tells Telegram that we have this batch."""
        if not isinstance(batch.token, Token):
            return
        self._mailbox.confirm(batch.token.deliveries)
        self._pressed = [*self._pressed, *batch.token.presses][:ANSWERS]
        if batch.token.next_offset is not None:
            self._offset = batch.token.next_offset
            self._offset_at = time.monotonic()

    async def _answer_buttons(self) -> None:
        """Ends the waiting sign on pressed buttons whose update is on disk; best effort."""
        pressed, self._pressed = self._pressed, []
        for query in pressed:
            try:
                await self._call("answerCallbackQuery", {"callback_query_id": query}, limit=ANSWER_LIMIT)
            except PlatformFailure:
                return  # an old query cannot be answered, and a dead link shows itself in the poll

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
        """One create, edit or delete. Raises PlatformFailure."""
        method, data = request_of(outgoing)
        answer = await self._call(method, data, limit=self._send_limit + upload_seconds(outgoing))
        if outgoing.operation is not Operation.CREATE:
            return Receipt(outgoing.message_ref or "")
        message_id = answer.get("message_id") if isinstance(answer, dict) else None
        if not isinstance(message_id, int):
            raise PlatformFailure(self.failures.garbage(method))
        return Receipt(str(message_id))

    async def typing(self, address: Address) -> None:
        """Shown for five seconds or until the next message. Raises PlatformFailure."""
        data = {"chat_id": address.chat_id, "action": "typing", **thread_of(address)}
        await self._call("sendChatAction", data, limit=TYPING_LIMIT)

    async def download(self, attachment: AttachmentRef, limit: int) -> bytes:
        """An inbound file of at most ``limit`` bytes (Telegram gives bots 20 MB). Raises PlatformFailure."""
        described = await self._call("getFile", {"file_id": attachment.ref}, limit=self._send_limit)
        path = described.get("file_path") if isinstance(described, dict) else None
        size = described.get("file_size") if isinstance(described, dict) else None
        if not isinstance(path, str):
            raise PlatformFailure(self.failures.garbage("getFile"))
        if isinstance(size, int) and size > limit:
            raise PlatformFailure(
                self.failures.refused("getFile", f"the file has {size} bytes, over {limit}")
            )
        fetched = self._bot.request.retrieve(f"{self._address}/file/bot{self._token}/{path}")
        content = await self.failures.guard("download", fetched, DOWNLOAD_LIMIT)
        if len(content) > limit:
            raise PlatformFailure(self.failures.refused("download", f"the file is over {limit} bytes"))
        return content

    async def rebuild(self) -> None:
        """New client, new sessions, new sockets; what was received and not confirmed comes again."""
        await self.aclose()
        self._quick_polls = 0
        self._bot = self._new_bot()

    async def aclose(self) -> None:
        """Every connection is closed within ``CLOSE_LIMIT`` seconds."""
        self._mailbox.give_back()
        for request in self._requests or ():
            await close_within(request, CLOSE_LIMIT)

    async def _call(
        self, method: str, data: dict[str, Any], *, limit: float, read_timeout: float | None = None
    ) -> Any:
        return await self.failures.guard(method, self._bot.call(method, data, read_timeout), limit)


@dataclass(frozen=True, slots=True)
class Token:
    """What ``confirm`` needs of a batch: its confirming offset, pressed buttons, requests that wait."""

    next_offset: int | None
    presses: tuple[str, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


def _presses(updates: list[Any]) -> tuple[str, ...]:
    queries = [u.get("callback_query") for u in updates if isinstance(u, dict)]
    names = [q.get("id") for q in queries if isinstance(q, dict)]
    return tuple(name for name in names if isinstance(name, str))


def _next_offset(updates: list[Any]) -> int | None:
    """One more than the newest number; None when no update has one."""
    numbers = [u.get("update_id") for u in updates if isinstance(u, dict)]
    known = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool)]
    return max(known) + 1 if known else None
