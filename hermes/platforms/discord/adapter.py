"""The Discord platform: one gateway session for what comes, REST for the history and for what goes.

    receive ── a frame, or one page of a history ─► events in order ─► Batch with cursors ── (T1) ─► confirm
    send ── payload of render ─► create with enforced nonce | edit | delete | reaction ─► message id

Discord keeps nothing for us and is told nothing: after each gap every channel is read from its cursor on, and its
live events wait behind that (R4, R5). Nothing here retries: each failure is told once, as facts.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp.abc import AbstractResolver

from hermes.core.delivery import Operation
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, AttachmentRef, Batch, Event, RawUpdate
from hermes.core.ports import MenuEntry, Outgoing, Receipt
from hermes.core.records import OutgoingPart
from hermes.platforms.discord.calls import channel_of, with_buttons
from hermes.platforms.discord.channels import Channels
from hermes.platforms.discord.commands import application_commands, fingerprint
from hermes.platforms.discord.envelope import PLATFORM, SAID, Envelopes
from hermes.platforms.discord.failures import FailureReader
from hermes.platforms.discord.fields import account_of, kind_of, made_at, mappings
from hermes.platforms.discord.ghosts import Ears
from hermes.platforms.discord.history import History
from hermes.platforms.discord.interactions import Pressed
from hermes.platforms.discord.limits import Limits
from hermes.platforms.discord.normalise import normalise
from hermes.platforms.discord.render import render
from hermes.platforms.discord.rest import Rest
from hermes.platforms.discord.sending import Sends
from hermes.platforms.discord.session import Point, Session
from hermes.platforms.outfiles import file_part

API_ADDRESS = "https://discord.com/api/v10"
CLOSE_LIMIT = 5.0
TYPING_LIMIT = 5.0
ANSWERS = 20  # interactions answered before one cycle; the rest show "did not respond"
MOST_EVENTS = 200  # of one batch
FRESH = 10.0  # seconds: a message that our create made is younger, one that its nonce found is likely older
SESSION = "session"
"""The cursor under which the session itself is written: a process that comes soon resumes it."""
CURSORS_EVERY = 30.0  # seconds after which cursors without a message of ours are written


class DiscordPlatform:
    """One bot. ``api_url`` and ``gateway_url`` replace Discord's own. ``wall`` gives unix seconds."""

    name = PLATFORM
    delivers_at_commit = False
    creates_are_safe = True
    file_part = staticmethod(file_part)

    def __init__(
        self,
        token: str,
        *,
        api_url: str = "",
        gateway_url: str = "",
        limits: Limits | None = None,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._address = (api_url or API_ADDRESS).rstrip("/")
        self._gateway = gateway_url
        self.limits = limits or Limits()
        self._network = (resolver, proxy)
        self._wall = wall
        self._envelopes = Envelopes(account_of(token))
        self.failures = FailureReader(token)
        self._channels = Channels()
        self._late: deque[tuple[str, Any, Point | None]] = deque()
        self._seen: Point | None = None
        """The session's last event that was handed on."""
        self._new_session = False
        self._connected = False
        self._unconfirmed: Batch | None = None
        self._failed: PlatformFailure | None = None
        self._history_turn = False
        self._ready: list[RawUpdate] = []
        self._ready_presses: list[Pressed] = []
        self._pressed: list[Pressed] = []
        self._cursors_at = time.monotonic()
        self._ears = self._fresh_ears()
        self._rest, self._session, self._history, self._sends = self._fresh()

    def _fresh(self) -> tuple[Rest, Session, History, Sends]:
        resolver, proxy = self._network
        bounds = self.limits
        rest = Rest(
            self._token, self._address, connections=bounds.connections, connect_timeout=bounds.connect,
            read_timeout=bounds.request, resolver=resolver, proxy=proxy,
        )  # fmt: skip
        session = Session(
            rest, self._token, self.failures, stall_after=bounds.stall_after,
            open_limit=bounds.connect + bounds.request, pause=bounds.identify_pause, draw=random.random,
        )  # fmt: skip
        history = History(rest, self.failures, bounds.request)
        return rest, session, history, Sends(rest, self.failures, history, bounds.request, self._wall)

    def _fresh_ears(self) -> Ears:
        return Ears(self.limits.echo, self.limits.audit, time.monotonic())

    @property
    def account(self) -> str:
        """The bot's user id: the first part of its token says it, and ``connect`` makes sure."""
        return self._envelopes.account

    async def connect(self) -> None:
        """Proves the token, opens a session and waits for its READY. Raises PlatformFailure."""
        await self._rest.open()
        me = await self._ask("/users/@me")
        if not isinstance(me, dict) or not isinstance(me.get("id"), str):
            raise PlatformFailure(self.failures.garbage("users/@me"))
        self._envelopes.account = me["id"]
        door = await self._ask("/gateway/bot")
        if not isinstance(door, dict) or not isinstance(door.get("url"), str):
            raise PlatformFailure(self.failures.garbage("gateway/bot"))
        left = door.get("session_start_limit")
        if isinstance(left, dict) and left.get("remaining") == 0:
            raise PlatformFailure(self.failures.no_starts_left(float(left.get("reset_after", 0)) / 1000))
        self._connected = True
        await self._session.open(self._gateway or door["url"], pinned=bool(self._gateway))

    def resume_from(self, cursors: Mapping[str, str]) -> None:
        """See ``ports.CatchesUp``. Before the first ``connect``, the session of an earlier process is taken up."""
        if not self._connected and SESSION in cursors:
            self._session.resume_after(cursors[SESSION])
        self._channels.restore(cursors)
        if self._channels.salt is None:
            self._channels.new_salt(f"{random.getrandbits(64):x}")

    # ---- what comes -------------------------------------------------------------------------------

    async def receive(self) -> Batch:
        """What came with the next frame, and at most one page of a history. Raises PlatformFailure."""
        if self._unconfirmed is not None:
            return self._unconfirmed  # T1 failed: the same once more
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        await self._answer_pressed()
        looked = self._ears.look(time.monotonic(), self._channels.lively)
        if looked is not None:
            self._channels.known[looked].behind = True
        await self._poll()
        await self._drain()
        if self._ears.deaf(time.monotonic()):
            await self._session.abandon()
            raise PlatformFailure(self.failures.ghost())
        if not self._ready or self._history_turn:
            self._ready += await self._catch_up()
        self._history_turn = not self._history_turn  # a busy connection does not keep the gaps open for ever
        return self._batch()

    async def _poll(self) -> None:
        """Takes the frames that have come; when there is nothing else to do, waits for one.

        A failure is told in the next cycle when this one still has something to hand on.
        """
        try:
            if not self._waiting:
                behind = self._channels.next_behind(time.monotonic()) is not None
                await self._session.poll(0.0 if behind else None)
            while len(self._session.events) < MOST_EVENTS and self._session.is_open:
                if not await self._session.poll(0.0):
                    break
        except PlatformFailure as failure:
            if not self._waiting:
                raise
            self._failed = failure

    @property
    def _waiting(self) -> bool:
        """Whether something has come that was not handed on yet."""
        return bool(self._ready or self._late or self._session.events)

    def _batch(self) -> Batch:
        token = Token(tuple(self._ready_presses))
        batch = Batch(tuple(self._ready), token, self._due_cursors(bool(self._ready)))
        self._ready, self._ready_presses = [], []
        if batch.updates or batch.cursors:
            self._unconfirmed = batch
        return batch

    def confirm(self, batch: Batch) -> None:
        """The batch is on disk: interactions in it may be answered."""
        self._unconfirmed = None
        if isinstance(batch.token, Token):
            self._pressed = [*self._pressed, *batch.token.pressed][:ANSWERS]

    async def _drain(self) -> None:
        """Turns events into updates, in their order; what was turned is kept should a later one fail."""
        for source in (self._late, self._session.events):
            while source and len(self._ready) < MOST_EVENTS:
                name, data, point = source[0]
                await self._place(name, data)
                source.popleft()
                if source is self._session.events:
                    self._ears.told(time.monotonic())
                    self._seen = point
                    self._new_session = self._new_session or name == "READY"
                found = self._event(name, data)
                if found is not None:
                    self._ready.append(found)
                    if name == "INTERACTION_CREATE":
                        self._ready_presses.append(Pressed.of(data))

    def _event(self, name: str, data: Any) -> RawUpdate | None:
        """One event's update; None for what is no message."""
        if not isinstance(data, Mapping):
            return None if name == "RESUMED" else self._message(name, data)
        match name:
            case "READY":
                self._channels.gap()
            case "GUILD_CREATE":
                self._channels.guild(data)
            case "CHANNEL_CREATE" | "THREAD_CREATE":
                self._channels.channel(data)
            case "THREAD_LIST_SYNC":
                for thread in mappings(data.get("threads")):
                    self._channels.channel({"guild_id": data.get("guild_id"), **thread})
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self._channels.gone(data)
            case "INTERACTION_CREATE":
                parent = self._channels.of(data).parent
                return self._envelopes.interaction(data, parent=parent, received_at=self._wall())
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE" if self._channels.live(name, data):
                return self._message(name, data)
        return None

    def _message(self, name: str, data: Any) -> RawUpdate | None:
        """A message's update; None for our own, for what nobody said, and for an embed that was added."""
        if isinstance(data, Mapping):
            author = data.get("author")
            if isinstance(author, Mapping) and author.get("id") == self.account:
                return None
            if (kind_of(data) or 0) not in SAID:
                return None
            if name == "MESSAGE_UPDATE" and data.get("edited_timestamp") is None:
                return None
        parent = self._channels.of(data).parent if isinstance(data, Mapping) else None
        return self._envelopes.message(name, data, parent=parent, received_at=self._wall())

    async def _place(self, name: str, data: Any) -> None:
        """Asks, once, what a channel hangs in that no event told of: a thread that was archived."""
        if not name.startswith("MESSAGE_") or not isinstance(data, Mapping):
            return
        if self._channels.is_placed(data):
            return
        channel = self._channels.of(data)
        found = await self._history.channel(channel.id)
        channel.placed = True
        if found is not None:
            self._channels.channel({**found, "last_message_id": None}, guild=channel.guild)

    async def _catch_up(self) -> list[RawUpdate]:
        """Reads one channel that is behind; its held events come after what the history told."""
        now = time.monotonic()
        channel = self._channels.next_behind(now)
        if channel is None:
            return []
        bounds = self.limits
        oldest = self._wall() - bounds.catch_up_age
        read = await self._history.since(channel.id, channel.mark or 0, oldest, bounds.catch_up_messages)
        if read is None:
            if self._channels.unreadable(channel, now, self._history.wait):
                self._late.extend((*held, None) for held in self._channels.caught_up(channel))
            return []
        members: Mapping[str, Any] = {}
        if channel.guild is not None and bounds.roles:
            members = await self._history.members(channel.guild, read)
        found = []
        for message in read:
            if channel.guild is not None:
                author = mappings([message.get("author")])
                member = members.get(author[0].get("id", "")) if author else None
                message = {**message, "guild_id": channel.guild, "member": member}
            found.append(self._message("MESSAGE_CREATE", message))
            self._channels.advance(channel, int(message["id"]))
        self._late.extend((*held, None) for held in self._channels.caught_up(channel))
        if self._ears.missed(channel.id, self._wall(), [made_at(str(one["id"])) for one in read]):
            await self._session.abandon()
            self._failed = PlatformFailure(self.failures.ghost())
        return [update for update in found if update is not None]

    def _due_cursors(self, with_updates: bool) -> dict[str, str]:
        """Marks that have moved, now and then; with them the session, when nothing of it waits behind a gap."""
        due = self._channels.urgent or time.monotonic() - self._cursors_at >= CURSORS_EVERY
        if not (self._channels.dirty and (due or with_updates)) and not self._new_session:
            return {}
        found = self._channels.cursors()
        session = None if self._seen is None else self._session.after(self._seen)
        if session is not None and not self._late and self._channels.complete():
            found[SESSION] = session
            self._new_session = False
        if found:
            self._cursors_at = time.monotonic()
        return found

    async def _answer_pressed(self) -> None:
        """Ends the waiting sign on buttons and commands whose update is on disk; best effort."""
        pressed, self._pressed = self._pressed, []
        for one in pressed:
            with contextlib.suppress(PlatformFailure):  # an old one cannot be answered; a dead link shows itself
                await one.answer(self._rest, self.failures)

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
        """One create, edit, delete or reaction. Raises PlatformFailure."""
        receipt = await self._sends.send(outgoing, self.account, self._channels.salt or "")
        fresh = outgoing.operation is Operation.CREATE and self._wall() - made_at(receipt.message_ref) < FRESH
        if fresh:  # no event tells of a message that was there already
            self._ears.said(time.monotonic())
        return receipt

    async def typing(self, address: Address) -> None:
        """Shown for ten seconds or until the next message. Raises PlatformFailure."""
        channel = channel_of(address)
        shown = self._rest.call("POST", f"/channels/{channel}/typing", route=("typing", channel))
        await self.failures.guard("typing", shown, TYPING_LIMIT)

    async def download(self, attachment: AttachmentRef, limit: int) -> bytes:
        """An inbound file of at most ``limit`` bytes, at the address it has now. Raises PlatformFailure."""
        if attachment.size is not None and attachment.size > limit:
            raise PlatformFailure(self.failures.bound("download", f"the file is over {limit} bytes"))
        address = await self._history.address_of(attachment.ref)
        return await self.failures.guard(
            "download", self._rest.fetch(address, limit), self.limits.request
        )

    async def publish_commands(self, entries: Sequence[MenuEntry]) -> bool:
        """See ``ports.CommandMenu``: written only when Discord shows another list. Raises PlatformFailure."""
        application = await self._ask("/applications/@me")
        if not isinstance(application, dict) or not isinstance(application.get("id"), str):
            raise PlatformFailure(self.failures.garbage("applications/@me"))
        path = f"/applications/{application['id']}/commands"
        commands = application_commands(entries)
        if fingerprint(await self._ask(path)) == fingerprint(commands):
            return False
        put = self._rest.call("PUT", path, body=commands, route=("commands", ""))
        await self.failures.guard("commands", put, self.limits.request)
        return True

    # ---- its life ---------------------------------------------------------------------------------

    async def rebuild(self) -> None:
        """New session, new sockets; what was received and not confirmed comes again."""
        await self.aclose()
        self._late.extend(self._session.events)
        self._failed, self._seen, self._ears = None, None, self._fresh_ears()
        self._rest, self._session, self._history, self._sends = self._fresh()

    async def aclose(self) -> None:
        """Session, socket, its thread and every connection end within ``CLOSE_LIMIT`` seconds."""
        with contextlib.suppress(PlatformFailure):
            await self.failures.guard("close", self._session.aclose(), CLOSE_LIMIT)
        await self._rest.close()

    async def _ask(self, path: str) -> Any:
        bound = self.limits.request + self.limits.connect
        return await self.failures.guard(path, self._rest.call("GET", path), bound)


@dataclass(frozen=True, slots=True)
class Token:
    """What ``confirm`` needs of a batch."""

    pressed: tuple[Pressed, ...] = ()
