"""When a chat may be written to: open at first, learning only from what the platform says (R20).

Every call that a person can see goes through here: final parts, notices, drafts, typing, edits, reactions.

    courier ── blocked_until? ── book ── quiet ── calling ──► platform.send ── 429 ──► refused ─► bans, on disk
    drafts, typing, receipts ── spare? (else not now) ── calling ──► …

What may be left out (drafts, typing, receipts) never waits and is never in the way: it is not done while the chat is
closed, while another call to the chat is under way, or while something is to be delivered there. So no call begins
before the answer to the last one in its chat is known, and a ban is never broken by a call that did not know of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.core.clock import Clock
from hermes.core.delivery import DeliveryFacts
from hermes.core.events import Address
from hermes.core.stores import Outbox
from hermes.gateway.dead_chats import DeadChats
from hermes.policy import pacing
from hermes.policy.delivery import MAX_RETRY_AFTER, classify_delivery
from hermes.policy.pacing import EVERYWHERE, Pace

ChatKey = tuple[str, str, str]
QUIET_SECONDS = 2.0
"""How long a delivery waits for a sign of typing that is on its way to the same chat."""
_KEPT = 10_000
_RECENT_CALLS = 512


class Pacer:
    """Flood bans by chat, by act and by account, kept on disk; fixed rates only where configured.

    ``intervals`` maps a platform to (seconds between two sends to one chat, sends a second overall);
    0 means open.
    """

    def __init__(
        self,
        outbox: Outbox,
        clock: Clock,
        dead: DeadChats,
        intervals: dict[str, tuple[float, float]] | None = None,
    ) -> None:
        self.dead = dead
        self._outbox = outbox
        self._clock = clock
        self.intervals = intervals or {}
        self.delivering: Callable[[ChatKey], bool] = lambda key: False
        """Whether something waits to be delivered to a chat; set by who knows the courier."""
        self._bans: dict[ChatKey, float] = {}
        self._paces: dict[ChatKey, Pace] = {}
        self._next: dict[ChatKey, float] = {}
        self._calls: dict[ChatKey, int] = {}
        self._quiet: dict[ChatKey, asyncio.Event] = {}
        self._recent: dict[tuple[str, str], deque[tuple[float, str]]] = {}

    async def load(self) -> None:
        """Bans that an earlier process was told of, at most a day from now (R41); after each the pace is gentle."""
        now = self._clock.now()
        await self.dead.load()
        found = await self._outbox.bans(now)
        self._bans = {key: min(until, now + MAX_RETRY_AFTER) for key, until in found.items()}
        self._paces = {key: pacing.slowed(Pace()) for key in self._bans}

    def blocked_until(self, key: ChatKey, act: str = "create") -> float:
        """Unix seconds; 0 when ``act`` (an Operation's value, or ``typing``) is open in this chat."""
        if not self._bans:
            return 0.0
        return max(self._open_at((*key[:2], place)) for place in pacing.places(key[2], act))

    def everything_until(self, key: ChatKey) -> float:
        """Unix seconds until which all chats of this chat's account are closed; 0 when they are open."""
        return self._open_at((key[0], key[1], EVERYWHERE)) if self._bans else 0.0

    async def refused(self, address: Address, act: str, facts: DeliveryFacts, otherwise: float = 0.0) -> float:
        """A call failed: a flood refusal closes what it names and slows it down afterwards.

        Returns until when (unix seconds), 0 for any other failure. ``otherwise``: seconds where none were stated.
        """
        stated = facts.retry_after if facts.retry_after is not None else classify_delivery(facts).retry_after
        if stated is None and not otherwise:
            return 0.0
        wait = min(MAX_RETRY_AFTER, stated if stated is not None else otherwise) + pacing.MARGIN
        until = self._clock.now() + wait
        name = pacing.closed_by(facts, address.chat_id, act)
        recent = list(self._recent.get((address.platform, address.account), ()))
        unsaid = name == address.chat_id and not pacing.says_what(facts)
        if unsaid and pacing.is_for_all(recent, name, self._clock.monotonic()):
            name = EVERYWHERE
        place = (address.platform, address.account, name)
        if not self._open_at(place):  # else: other calls of the same moment, for which the pace is no slower
            self._paces[place] = pacing.slowed(self._paces.get(place, Pace()))
            self._next.pop(place, None)
        self._bans[place] = max(until, self._bans.get(place, 0.0))
        self._bound()
        await self._outbox.ban(Address(*place), until, self._clock.now())
        return until

    async def quiet(self, key: ChatKey) -> None:
        """Waits, at most ``QUIET_SECONDS``, until no call to this chat is under way."""
        if key not in self._calls:
            return
        event = self._quiet.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await event.wait()
        except TimeoutError:
            return

    def book(self, key: ChatKey, act: str = "create") -> float:
        """Takes the next place under the configured and the learned rates: seconds until it; 0 where there are none."""
        if not self.intervals and not self._paces:
            return 0.0
        now = self._clock.monotonic()
        gaps = list(self._gaps(key, act))
        at = max([now, *(self._next.get(place, 0.0) for place, _ in gaps)])
        for place, gap in gaps:
            self._next[place] = at + gap
        self._bound()
        return at - now

    def spare(self, key: ChatKey, act: str) -> bool:
        """Whether something that may as well be left out can be done now; if so its place is taken."""
        if self.dead.reason(key) or key in self._calls or self.delivering(key) or self.blocked_until(key, act):
            return False
        now = self._clock.monotonic()
        gaps = list(self._gaps(key, act)) if self.intervals or self._paces else []
        if any(self._next.get(place, 0.0) > now for place, _ in gaps):
            return False
        for place, gap in gaps:
            self._next[place] = now + gap
        return True

    @contextmanager
    def calling(self, key: ChatKey, act: str = "create") -> Iterator[None]:
        """While a call to this chat is under way. A call that ends well makes the pace a little faster."""
        self._calls[key] = self._calls.get(key, 0) + 1
        recent = self._recent.setdefault(key[:2], deque(maxlen=_RECENT_CALLS))
        recent.append((self._clock.monotonic(), key[2]))
        before = dict.fromkeys(self._slow(key, act)) if self._paces else {}
        bans = {place: self._bans.get(place) for place in before}
        try:
            yield
            for place in before:
                if self._bans.get(place) == bans[place]:
                    self._pass(place)
        finally:
            self._calls[key] -= 1
            if not self._calls[key]:
                del self._calls[key]
                event = self._quiet.pop(key, None)
                if event is not None:
                    event.set()

    def _open_at(self, place: ChatKey) -> float:
        until = self._bans.get(place, 0.0)
        if until and until <= self._clock.now():
            del self._bans[place]
            return 0.0
        return until

    def _gaps(self, key: ChatKey, act: str) -> Iterator[tuple[ChatKey, float]]:
        """Each place of a call that has an interval, in seconds."""
        per_chat, per_second = self.intervals.get(key[0], (0.0, 0.0))
        fixed = {key[2]: per_chat, EVERYWHERE: 1.0 / per_second if per_second else 0.0}
        for name in pacing.places(key[2], act):
            place = (key[0], key[1], name)
            gap = max(fixed.get(name, 0.0), self._paces.get(place, Pace()).interval)
            if gap:
                yield place, gap

    def _slow(self, key: ChatKey, act: str) -> Iterator[ChatKey]:
        for name in pacing.places(key[2], act):
            place = (key[0], key[1], name)
            if place in self._paces:
                yield place

    def _pass(self, place: ChatKey) -> None:
        pace = pacing.passed(self._paces.get(place, Pace()))
        if pace.interval:
            self._paces[place] = pace
        else:
            self._paces.pop(place, None)

    def _bound(self) -> None:
        """What was learned of chats long ago is forgotten before it grows without end."""
        now = self._clock.monotonic()
        if len(self._next) > _KEPT:
            self._next = {place: at for place, at in self._next.items() if at > now}
        while len(self._paces) > _KEPT:
            self._paces.pop(next(iter(self._paces)))
