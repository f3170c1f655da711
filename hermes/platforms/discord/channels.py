"""Which messages of which channel we have: watermarks, gaps, and what waits behind a gap (R4, R5). Pure.

A channel's *mark* is contiguous: every message up to it was handed on or needed not to be. After a gap a channel
that may hold newer messages is *behind*: its live events wait until the history was read from the mark to now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from hermes.platforms.discord.fields import is_snowflake, kind_of, mappings

READABLE = frozenset({0, 1, 2, 3, 5, 10, 11, 12, 13})
"""Types of channel that hold messages; the others (categories, forums) hold channels."""
THREADS = frozenset({10, 11, 12})
HELD = 256
"""Live events that one channel keeps while it catches up; what exceeds it is found in the history."""
GIVE_UP_AFTER = 3
GUILD, SALT = "guild ", "salt"
_PRIVATE = "private"


@dataclass(slots=True)
class Channel:
    """One channel. ``mark`` is the id of the newest message we have; None: none was ever looked for."""

    id: str
    guild: str | None = None
    parent: str | None = None
    placed: bool = False
    """Whether it is known what kind of channel it is, and what it hangs in."""
    mark: int | None = None
    behind: bool = False
    stuck: bool = False
    """Its history could not be read: live events go on, and the cursor on disk stays before the gap."""
    attempts: int = 0
    not_before: float = 0.0
    held: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)


class Channels:
    """All channels of one account, and the cursors that are to be written with the next batch."""

    def __init__(self) -> None:
        self.known: dict[str, Channel] = {}
        self.dirty: set[str] = set()
        self.urgent = False
        """Something is dirty without which a later process would take the old for new."""
        self.salt: str | None = None
        self._guilds: set[str] = set()

    # ---- what is on disk --------------------------------------------------------------------------

    def restore(self, cursors: Mapping[str, str]) -> None:
        """Marks as T1 wrote them; one that has moved on in memory since stays as it is."""
        for name, value in cursors.items():
            if name == SALT:
                self.salt = value
            elif name.startswith(GUILD):
                self._guilds.add(name.removeprefix(GUILD))
            elif is_snowflake(name):
                mark, _, guild = value.partition(" ")
                channel = self.known.setdefault(name, Channel(name))
                if channel.mark is None and is_snowflake(mark):
                    channel.mark = int(mark)
                    channel.guild = None if guild == _PRIVATE else guild or channel.guild

    def cursors(self) -> dict[str, str]:
        """What is to be written now; forgets that it was due."""
        found = {}
        for name in self.dirty:
            channel = self.known.get(name)
            if name.startswith(GUILD):
                found[name] = "known"
            elif name == SALT:
                found[name] = self.salt or ""
            elif channel is not None and channel.mark is not None and not channel.stuck:
                found[name] = f"{channel.mark} {channel.guild or _PRIVATE}"
        self.dirty.clear()
        self.urgent = False
        return found

    def new_salt(self, salt: str) -> None:
        """What makes this store's nonces differ from those of another one for the same bot."""
        self.salt, self.urgent = salt, True
        self.dirty.add(SALT)

    # ---- what the gateway tells -------------------------------------------------------------------

    def gap(self) -> None:
        """A new session: private chats may hold messages that no event told of; guilds will tell of theirs."""
        for channel in self.known.values():
            channel.stuck, channel.attempts, channel.not_before = False, 0, 0.0
            if channel.mark is not None and channel.guild is None:
                channel.behind = True

    def guild(self, data: Mapping[str, Any]) -> None:
        """A guild told its channels and threads, each with the id of its last message."""
        name = data.get("id")
        if not is_snowflake(name) or data.get("unavailable") is True:
            return
        guild = str(name)
        fresh = guild not in self._guilds
        self._guilds.add(guild)
        if fresh:
            self.urgent = True
            self.dirty.add(GUILD + guild)
        for one in (*mappings(data.get("channels")), *mappings(data.get("threads"))):
            self.channel(one, guild=guild, baseline=fresh)

    def channel(self, data: Mapping[str, Any], *, guild: str | None = None, baseline: bool = False) -> None:
        """A channel or thread exists. ``baseline``: what it holds was said before we came."""
        name, last = data.get("id"), data.get("last_message_id")
        place = guild or (str(data["guild_id"]) if is_snowflake(data.get("guild_id")) else None)
        if not is_snowflake(name) or kind_of(data) not in READABLE:
            return
        channel = self.known.setdefault(str(name), Channel(str(name)))
        channel.guild, channel.placed = place or channel.guild, True
        if kind_of(data) in THREADS and is_snowflake(data.get("parent_id")):
            channel.parent = str(data["parent_id"])
        newest = int(str(last)) if is_snowflake(last) else 0
        if channel.mark is None:
            channel.mark = newest if baseline else 0
            self.dirty.add(channel.id)
        if newest > channel.mark:
            channel.behind = True

    def gone(self, data: Mapping[str, Any]) -> None:
        """A channel or thread was deleted."""
        self.known.pop(str(data.get("id")), None)

    # ---- messages ---------------------------------------------------------------------------------

    def of(self, data: Mapping[str, Any]) -> Channel:
        """The channel of a message, met for the first time perhaps: a private chat that somebody opened."""
        name = str(data.get("channel_id"))
        channel = self.known.get(name)
        if channel is None:
            channel = self.known[name] = Channel(name)
        if is_snowflake(data.get("guild_id")):
            channel.guild = str(data["guild_id"])
        return channel

    def live(self, name: str, data: Mapping[str, Any]) -> bool:
        """Whether an event may be handed on now; otherwise it is kept behind its channel's catching up."""
        channel = self.of(data)
        if channel.behind:
            if len(channel.held) < HELD:
                channel.held.append((name, data))
            return False
        if name == "MESSAGE_CREATE" and is_snowflake(data.get("id")):
            self.advance(channel, int(str(data["id"])))
        return True

    def advance(self, channel: Channel, number: int) -> None:
        """Everything up to this message is handed on."""
        if channel.mark is None or number > channel.mark:
            channel.mark = number
            self.dirty.add(channel.id)

    def next_behind(self, now: float) -> Channel | None:
        """The channel to read now: one whose people wait first."""
        due = [c for c in self.known.values() if c.behind and c.not_before <= now]
        return max(due, key=lambda c: (len(c.held) > 0, c.guild is None, c.mark or 0), default=None)

    def is_placed(self, data: Mapping[str, Any]) -> bool:
        """Whether a message's channel needs no asking after: a private chat hangs in nothing."""
        channel = self.of(data)
        return channel.placed or channel.guild is None

    def caught_up(self, channel: Channel) -> list[tuple[str, Mapping[str, Any]]]:
        """The channel has no gap any more; what waited behind it, without what the history told already."""
        held, channel.held = channel.held, []
        channel.behind, channel.attempts = False, 0
        mark = channel.mark or 0
        return [
            (name, data)
            for name, data in held
            if name != "MESSAGE_CREATE" or not is_snowflake(data.get("id")) or int(str(data["id"])) > mark
        ]

    def lively(self, count: int) -> list[str]:
        """The channels with the newest messages that we know of, newest first."""
        heard = [channel for channel in self.known.values() if channel.mark and not channel.stuck]
        return [channel.id for channel in nlargest(count, heard, key=lambda c: c.mark or 0)]

    def complete(self) -> bool:
        """Whether no event waits behind a gap: all that came was handed on."""
        return not any(channel.behind or channel.held for channel in self.known.values())

    def unreadable(self, channel: Channel, now: float, wait: float) -> bool:
        """The history was refused; whether it is given up until the next gap."""
        channel.attempts += 1
        channel.not_before = now + wait
        if channel.attempts < GIVE_UP_AFTER:
            return False
        channel.stuck = True
        return True

