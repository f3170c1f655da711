"""From what Slack brought, and what stands in its history, to updates in order; what is behind a gap waits.

Nothing is dropped on the way: what was turned into an update is kept until a batch takes it, whatever fails between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hermes.core.errors import PlatformFailure
from hermes.core.events import RawUpdate
from hermes.platforms.slack.channels import Channel, Channels
from hermes.platforms.slack.envelope import Envelopes, is_named
from hermes.platforms.slack.history import REFUSES_US, History
from hermes.platforms.slack.intake import Arrived
from hermes.platforms.slack.names import Names
from hermes.platforms.slack.stamps import is_stamp
from hermes.runtime.logs import get_logger

log = get_logger(__name__)
GRACE = 10.0  # seconds that an event may be on its way before its message counts as missed


class Bounds(Protocol):
    """Of the adapter's limits, what reading needs."""

    @property
    def catch_up_messages(self) -> int: ...

    @property
    def catch_up_age(self) -> float: ...

    @property
    def audit(self) -> float: ...


@dataclass(slots=True)
class Reader:
    """One account's stream. ``wall`` gives unix seconds."""

    envelopes: Envelopes
    channels: Channels
    history: History
    bounds: Bounds
    wall: Callable[[], float]
    names: Names
    _updates: list[RawUpdate] = field(default_factory=list)
    _done: list[Arrived] = field(default_factory=list)
    _list_due: bool = False
    _not_before: float = 0.0
    _heard_at: float = field(default_factory=time.monotonic)
    _audited: int = 0

    @property
    def busy(self) -> bool:
        """Whether there is something to do without waiting for Slack."""
        now = time.monotonic()
        behind = now >= self._not_before and self.channels.next_behind(now) is not None
        return bool(self._updates or self._done or behind or (self._list_due and now >= self._not_before))

    def gap(self) -> None:
        """Something may have been missed: every channel is read from its mark on."""
        self.channels.gap()
        self._list_due = True

    async def take(self, arrived: list[Arrived]) -> None:
        """What Slack brought, in order."""
        await self.names.learn([one.payload.get("event") for one in arrived if isinstance(one.payload, Mapping)])
        for one in arrived:
            self._place(one)

    def ready(self) -> tuple[list[RawUpdate], tuple[Arrived, ...], dict[str, str]]:
        """The next batch: updates, what is to be acknowledged once they are on disk, and cursors."""
        updates, done = self._updates, tuple(self._done)
        self._updates, self._done = [], []
        return updates, done, self.channels.cursors()

    # ---- live -------------------------------------------------------------------------------------

    def _place(self, one: Arrived) -> None:
        now = self.wall()
        match one.kind:
            case "interactive":
                self._hand_on(self.envelopes.button(one.payload, now), one)
            case "slash_commands":
                self._hand_on(self.envelopes.command(one.payload, now), one)
            case "events_api":
                self._event(one)
            case _:
                self._hand_on(None, one)

    def _event(self, one: Arrived, *, held: bool = False) -> None:
        payload = one.payload
        event = payload.get("event") if isinstance(payload, Mapping) else payload
        name = event.get("channel") if isinstance(event, Mapping) else None
        if not isinstance(event, Mapping) or event.get("type") not in ("message", "app_mention"):
            self._hand_on(None if isinstance(event, Mapping) else self.envelopes.event(event, self.wall()), one)
            return
        channel = self.channels.of(name, event.get("channel_type")) if isinstance(name, str) else None
        if channel is not None and not held and self.channels.hold(channel, one):
            return
        update = self.envelopes.event(event, self.wall())
        ts, plain = event.get("ts"), event.get("subtype") not in ("message_changed", "message_deleted")
        if channel is not None and plain and is_stamp(ts):
            if ts in channel.told:
                update = None  # the history told of it already
            self._spoken(channel, str(ts), update)
        self._hand_on(update, one)

    def _spoken(self, channel: Channel, ts: str, update: RawUpdate | None) -> None:
        """The mark moves on, and a thread in which we are spoken to is one we take part in."""
        self.channels.advance(channel, ts)
        if update is None or update.chat is None or update.chat.thread_id is None or update.identity is None:
            return
        if update.addressed and (update.identity.is_ourselves or not update.identity.is_bot):
            self.channels.speak_in(channel.id, update.chat.thread_id, ts)

    def _hand_on(self, update: RawUpdate | None, one: Arrived | None) -> None:
        if update is not None:
            self._updates.append(update)
        if one is not None:
            self._done.append(one)

    # ---- the history ------------------------------------------------------------------------------

    async def read_on(self) -> None:
        """Lists the channels after a gap, then reads one that is behind. Raises PlatformFailure."""
        now = time.monotonic()
        if now < self._not_before:
            return
        if self._list_due:
            await self._list()
            return
        channel = self.channels.next_behind(now)
        if channel is not None:
            await self._catch_up(channel)

    async def _list(self) -> None:
        begun = self.wall()
        try:
            found = await self.history.channels()
        except PlatformFailure as failure:
            if failure.facts.status != 429:
                raise
            self._not_before = time.monotonic() + (failure.facts.retry_after or 1.0)
            return
        self._list_due = False
        if found is not None:
            self.channels.list_all(found, begun)

    async def _catch_up(self, channel: Channel) -> None:
        """Its held events come after what the history told."""
        bounds = self.bounds
        oldest = self.wall() - bounds.catch_up_age
        left_out = self.history.skipped
        read = await self.history.since(
            channel.id, channel.mark or "0.0", oldest, bounds.catch_up_messages, self.channels.threads_of(channel.id)
        )
        if read is None:
            now = time.monotonic()
            if self.history.limited:
                self._not_before = now + self.history.wait
            elif self.channels.unreadable(channel, now, self.history.wait):
                log.warning("slack_history_refused", channel=channel.id, error=self.history.refusal)
                self._release(self.channels.caught_up(channel, frozenset()))
            return
        if self.history.skipped > left_out:
            log.warning("slack_history_left_out", channel=channel.id, messages=self.history.skipped - left_out)
        await self.names.learn(read)
        for message in read:
            event = {**message, "channel": channel.id, "channel_type": channel.kind, "type": "message"}
            update = self.envelopes.event(event, self.wall())
            self._spoken(channel, message["ts"], update)
            self._hand_on(update, None)
        self._release(self.channels.caught_up(channel, frozenset(str(one["ts"]) for one in read)))

    def _release(self, held: list[Any]) -> None:
        for one in held:
            self._event(one, held=True)

    async def audit(self, *, quiet: bool) -> str | None:
        """After a silence one channel's history is looked at: a message that no event told of means that we are
        connected and not heard. Returns that channel's id. Raises PlatformFailure when Slack refuses us."""
        now = time.monotonic()
        if not quiet or self.busy:
            self._heard_at = now
            return None
        if now - self._heard_at < self.bounds.audit:
            return None
        self._heard_at = now
        spoken = self.channels.last_spoken()
        if not spoken:
            return None
        self._audited += 1
        channel = spoken[0] if self._audited % 2 else spoken[self._audited // 2 % len(spoken)]
        try:
            found = await self.history.newest(channel.id, channel.mark or "0.0")
        except PlatformFailure as failure:
            if failure.facts.code in REFUSES_US:
                raise
            return None  # the socket was proved by its ping: this call's trouble is no trouble of the link
        grace = min(GRACE, self.bounds.audit / 4)
        missed = [one for one in found or () if self._is_missed(one, channel, grace)]
        return channel.id if missed else None

    def _is_missed(self, message: Mapping[str, Any], channel: Channel, grace: float) -> bool:
        us = self.envelopes.us
        if float(message["ts"]) > self.wall() - grace or message.get("user") == us.user or message.get("bot_id"):
            return False
        if message.get("subtype") not in (None, "file_share"):
            return False
        return channel.kind == "im" or is_named(us.user, str(message.get("text")))
