"""Which messages of which channel we have: watermarks, gaps, and what waits behind a gap (R4, R5). Pure.

A channel's *mark* is contiguous: everything said in it up to there, threads included, was handed on. After a gap
every channel is *behind*: its live events wait until its history was read from the mark to now. Cursors are named
``C1`` (value: mark and kind), ``C1/THREAD`` (a thread we speak in; value: its last message) and ``*`` (when the list
of channels was complete: one that is met later began after that).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes.platforms.slack.stamps import is_stamp, later, order, stamp_of

LISTED = "*"
HELD = 256
"""Live events that one channel keeps while it catches up; what exceeds it is not acknowledged and comes again."""
GIVE_UP_AFTER = 3
THREADS_KEPT = 2000
THREADS_READ = 20
"""Threads of one channel that are read after a gap, those spoken in last."""
KINDS = frozenset({"im", "mpim", "channel", "group"})


@dataclass(slots=True)
class Channel:
    """One channel. ``mark``: the newest message we have; None: none was ever looked for."""

    id: str
    kind: str
    mark: str | None = None
    behind: bool = False
    stuck: bool = False
    """Its history could not be read: live events go on, and the cursor on disk stays before the gap."""
    attempts: int = 0
    not_before: float = 0.0
    held: list[Any] = field(default_factory=list)
    told: frozenset[str] = frozenset()
    """Messages that the history told of: their events, should they come still, tell nothing new."""


class Channels:
    """All channels of one account, and the cursors that are to be written with the next batch."""

    def __init__(self) -> None:
        self.known: dict[str, Channel] = {}
        self.threads: dict[tuple[str, str], str] = {}
        self.listed: str | None = None
        self._dirty: set[str] = set()

    # ---- what is on disk --------------------------------------------------------------------------

    def restore(self, cursors: Mapping[str, str]) -> None:
        """Marks as T1 wrote them; one that has moved on in memory since stays as it is."""
        found: dict[tuple[str, str], str] = {}
        for name, value in cursors.items():
            mark, _, kind = value.partition(" ")
            channel, _, thread = name.partition("/")
            if not is_stamp(mark):
                continue
            if name == LISTED:
                self.listed = self.listed or mark
            elif thread:
                found[channel, thread] = mark
            else:
                known = self.known.setdefault(channel, Channel(channel, kind))
                known.mark = known.mark or mark
        newest = sorted((found | self.threads).items(), key=lambda one: order(one[1]))[-THREADS_KEPT:]
        self.threads = dict(newest)  # those spoken in longest ago are dropped first

    def cursors(self) -> dict[str, str]:
        """What is to be written now; forgets that it was due."""
        found: dict[str, str] = {}
        for name in self._dirty:
            channel, _, thread = name.partition("/")
            known = self.known.get(channel)
            if name == LISTED and self.listed is not None:
                found[name] = self.listed
            elif thread and (channel, thread) in self.threads:
                found[name] = self.threads[channel, thread]
            elif not thread and known is not None and known.mark is not None and not known.stuck:
                found[name] = f"{known.mark} {known.kind}"
        self._dirty.clear()
        return found

    @property
    def dirty(self) -> bool:
        """Whether a cursor is due."""
        return bool(self._dirty)

    # ---- what Slack tells -------------------------------------------------------------------------

    def kind_of(self, channel: str) -> str:
        """im, mpim, channel or group; ids of direct messages begin with D."""
        known = self.known.get(channel)
        return known.kind if known is not None else "im" if channel.startswith("D") else "channel"

    def gap(self) -> None:
        """A new connection: every channel may hold messages that no event told of."""
        for channel in self.known.values():
            channel.stuck, channel.attempts, channel.not_before = False, 0, 0.0
            channel.behind = channel.mark is not None

    def list_all(self, found: Mapping[str, str], now: float) -> None:
        """Every channel we are in, with its kind. One that we did not know began after the last list; at the very
        first start everything in it was said before we came."""
        since = self.listed
        for name, kind in found.items():
            if name in self.known:
                self.known[name].kind = kind
                continue
            mark = since or stamp_of(now)
            self.known[name] = Channel(name, kind, mark, behind=since is not None)
            self._dirty.add(name)
        self.listed = stamp_of(now)
        self._dirty.add(LISTED)

    # ---- messages ---------------------------------------------------------------------------------

    def of(self, name: str, kind: object = None) -> Channel:
        """The channel, met for the first time perhaps."""
        channel = self.known.get(name)
        if channel is None:
            channel = self.known[name] = Channel(name, self.kind_of(name))
        if isinstance(kind, str) and kind in KINDS:
            channel.kind = kind
        return channel

    def hold(self, channel: Channel, item: Any) -> bool:
        """Whether an event has to wait behind its channel's catching up; it is kept if there is room."""
        if channel.behind and len(channel.held) < HELD:
            channel.held.append(item)
        return channel.behind

    def advance(self, channel: Channel, ts: str) -> None:
        """Everything up to this message is handed on."""
        if channel.mark is None or later(ts, channel.mark):
            channel.mark = ts
            self._dirty.add(channel.id)

    def takes_part(self, channel: str, thread: str) -> bool:
        """Whether we speak in a thread."""
        return (channel, thread) in self.threads

    def speak_in(self, channel: str, thread: str, ts: str) -> None:
        """We were addressed in a thread, or answered there."""
        known = self.threads.pop((channel, thread), None)
        self.threads[channel, thread] = ts if known is None or later(ts, known) else known
        if known != self.threads[channel, thread]:
            self._dirty.add(f"{channel}/{thread}")
        if len(self.threads) > THREADS_KEPT:
            self.threads.pop(next(iter(self.threads)))

    def threads_of(self, channel: str) -> list[str]:
        """The threads to read after a gap, those spoken in last."""
        found = [(order(ts), thread) for (place, thread), ts in self.threads.items() if place == channel]
        return [thread for _, thread in sorted(found, reverse=True)[:THREADS_READ]]

    # ---- catching up ------------------------------------------------------------------------------

    def next_behind(self, now: float) -> Channel | None:
        """The channel to read now: one whose people wait first, then direct messages, then by recency."""
        due = [c for c in self.known.values() if c.behind and c.not_before <= now]
        return max(due, key=_urgency, default=None)

    def last_spoken(self) -> list[Channel]:
        """All channels with a mark that are not behind, the most recent first."""
        found = [c for c in self.known.values() if c.mark is not None and not c.behind and not c.stuck]
        return sorted(found, key=lambda c: order(c.mark or "0.0"), reverse=True)

    def caught_up(self, channel: Channel, told: frozenset[str]) -> list[Any]:
        """The channel has no gap any more; what waited behind it."""
        held, channel.held = channel.held, []
        channel.behind, channel.attempts, channel.told = False, 0, told
        return held

    def unreadable(self, channel: Channel, now: float, wait: float) -> bool:
        """The history was refused; whether it is given up until the next gap."""
        channel.attempts += 1
        channel.not_before = now + wait
        if channel.attempts < GIVE_UP_AFTER:
            return False
        channel.stuck = True
        return True


def _urgency(channel: Channel) -> tuple[bool, bool, tuple[int, int]]:
    return bool(channel.held), channel.kind == "im", order(channel.mark or "0.0")
