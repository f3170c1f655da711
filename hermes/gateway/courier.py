"""From the outbox to a receipt: per-chat order, priority between chats, one bounded set of workers (R20).

        T2 / notices ──offer──► chat queues (by seq) ──ready heap (priority, seq)──► ≤ workers
                                      ▲                                                 │
          timer (not_before, ban) ────┤              pending → sending → send_with_retry ┤
          link came up ───────────────┘                                                 ▼
                                                             delivered · pending again · held · failed

A row becomes ``sending`` right before its bytes (R18). Within a chat, sequence decides; a chat that must
wait (flood ban, time-out to be marked, link down) delays nobody else.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hermes.core.clock import Clock
from hermes.core.errors import StoreUnavailable
from hermes.core.records import OutboxRow, Priority
from hermes.core.stores import Outbox
from hermes.gateway.pacer import Pacer
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.sweep import Bury, Delivered, Hold, PutBack, Sweep, WaitForLink
from hermes.policy.delivery import MARK_DELAY
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

ChatKey = tuple[str, str, str]
_RANK = {priority: rank for rank, priority in enumerate(Priority)}
_STORE_RETRY_SECONDS = 1.0
_RANK_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 3600.0
"""A wait that was stored is looked at again at least this often: the wall clock may have been set (R41)."""


@dataclass(slots=True)
class _Chat:
    rows: deque[OutboxRow]
    busy: bool = False
    timer: asyncio.TimerHandle | None = None
    booked: float | None = None  # its place under the pacer's rates, monotonic seconds


class Courier:
    """Sends what the outbox holds until each row has its end. ``workers`` bounds concurrent sends."""

    def __init__(
        self,
        outbox: Outbox,
        platforms: PlatformBook,
        sweep: Sweep,
        pacer: Pacer,
        clock: Clock,
        supervisor: Supervisor,
        *,
        workers: int = 64,
        on_delivered: Callable[[OutboxRow], None] = lambda row: None,
        on_lost: Callable[[OutboxRow, str], None] = lambda row, reason: None,
    ) -> None:
        self._outbox = outbox
        self._platforms = platforms
        self._sweep = sweep
        self._pacer = pacer
        self._clock = clock
        self._supervisor = supervisor
        self._workers = workers
        self._on_delivered = on_delivered
        self._on_lost = on_lost
        self._chats: dict[ChatKey, _Chat] = {}
        self._ready: list[tuple[int, int, ChatKey]] = []
        self._waiting_for_link: dict[str, set[ChatKey]] = {}
        self._working = 0
        self._stopping = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        platforms.on_up(self._link_up)

    @property
    def backlog(self) -> int:
        """Chats with something to send, those that wait included."""
        return len(self._chats)

    @property
    def working(self) -> int:
        """Sends under way."""
        return self._working

    def holds(self, key: ChatKey) -> bool:
        """Whether something waits to be sent to a chat, or is on its way."""
        return key in self._chats

    def offer(self, rows: Iterable[OutboxRow]) -> None:
        """Rows just committed as ``pending``; rows of a store-destined platform are only announced."""
        for row in rows:
            platform = self._platforms.find(row.address.platform)
            if platform is not None and platform.delivers_at_commit:
                self._on_delivered(row)
                continue
            key = (row.address.platform, row.address.account, row.address.chat_id)
            chat = self._chats.get(key)
            if chat is None:
                chat = self._chats[key] = _Chat(deque())
            _insert(chat.rows, row)
            if not chat.busy and chat.timer is None:
                self._enqueue(key, chat)
        self._start_workers()

    async def drain(self, seconds: float) -> bool:
        """Waits until nothing can be sent any more, at most ``seconds``; rows that wait stay on disk."""
        try:
            async with asyncio.timeout(seconds):
                while self._ready or self._working:
                    self._quiet.clear()
                    await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """No further sends begin; what waits is on disk."""
        self._stopping = True
        for chat in self._chats.values():
            if chat.timer is not None:
                chat.timer.cancel()
        self._ready.clear()

    def _enqueue(self, key: ChatKey, chat: _Chat) -> None:
        head = chat.rows[0]
        chat.busy = True
        heapq.heappush(self._ready, (_RANK[head.priority], head.seq, key))

    def _start_workers(self) -> None:
        while self._ready and self._working < self._workers and not self._stopping:
            _, _, key = heapq.heappop(self._ready)
            self._working += 1
            self._supervisor.spawn(self._work(key), "courier.chat")

    async def _work(self, first: ChatKey) -> None:
        key: ChatKey | None = first
        try:
            while key is not None:
                await self._serve(key)
                key = heapq.heappop(self._ready)[2] if self._ready and not self._stopping else None
        finally:
            self._working -= 1
            if not self._ready and not self._working:
                self._quiet.set()
            self._start_workers()

    async def _serve(self, key: ChatKey) -> None:
        """Sends the chat's head; then the chat goes back among the ready ones, or waits."""
        chat = self._chats[key]
        row = chat.rows[0]
        if not self._may_go(row):
            self._park(key, chat)
            return
        if self._waits(key, chat, row):
            return
        try:
            await self._pacer.quiet(key)
            if self._waits(key, chat, row):  # a ban that was told meanwhile
                return
            chat.booked = None
            with self._pacer.calling(key, row.operation.value):
                await self._send(key, chat, row)
        except StoreUnavailable as error:
            log.error("outbox_unavailable", error=str(error))
            self._sleep(key, chat, _STORE_RETRY_SECONDS)
            return
        except Exception as error:  # R26: courier, per row: a fault of ours must not stop the chat for ever
            log.error("delivery_fault", seq=row.seq, error=repr(error))
            await self._end(chat, row, Bury(f"internal error: {type(error).__name__}"))
        self._next(key, chat)

    def _waits(self, key: ChatKey, chat: _Chat, row: OutboxRow) -> bool:
        """Whether the head is to be sent later; then the chat sleeps until that time.

        When a whole account opens again, final answers come before notices: the chats of the others wake later.
        """
        until = max(row.not_before, self._pacer.blocked_until(key, row.operation.value))
        wait = until - self._clock.now()
        if wait <= 0:
            now = self._clock.monotonic()
            if chat.booked is None:
                chat.booked = now + self._pacer.book(key, row.operation.value)
            wait = chat.booked - now
        if wait <= 0:
            return False
        late = _RANK[row.priority] * _RANK_SECONDS if self._pacer.everything_until(key) else 0.0
        self._sleep(key, chat, min(wait + late, LONGEST_WAIT_SECONDS))
        return True

    def _may_go(self, row: OutboxRow) -> bool:
        """A possible repeat is its row's last try: it waits for a proof that the platform answers again."""
        platform = row.address.platform
        if not self._platforms.is_up(platform):
            return False
        doubtful_since = row.not_before - MARK_DELAY
        return not row.marked or self._platforms.proven_at(platform) >= doubtful_since

    async def _send(self, key: ChatKey, chat: _Chat, row: OutboxRow) -> None:
        now = self._clock.now()
        if row.expires_at <= now:
            await self._end(chat, row, Bury("older than the age bound"))
            return
        if not await self._outbox.start_sending(row.seq, now):
            _remove(chat.rows, row.seq)  # withdrawn meanwhile
            return
        if row.marked:  # a draft's receipt may have come since: then it is an edit and no repeat
            row = await self._outbox.reread(row.seq) or row
        await self._end(chat, row, await self._sweep.send(row))

    async def _end(self, chat: _Chat, row: OutboxRow, end: Delivered | PutBack | WaitForLink | Hold | Bury) -> None:
        now = self._clock.now()
        match end:
            case Delivered(receipt):
                await self._outbox.delivered(row.seq, receipt, now)
                _remove(chat.rows, row.seq)
                self._on_delivered(row)
            case PutBack(not_before, attempts, marked):
                await self._outbox.put_back(
                    row.seq, not_before=not_before, attempts=attempts, marked=marked, now=now
                )
                chat.rows[0] = replace(row, not_before=not_before, attempts=attempts, marked=marked)
            case WaitForLink(not_before):
                await self._outbox.put_back(
                    row.seq, not_before=not_before, attempts=row.attempts, marked=row.marked, now=now
                )
                chat.rows[0] = replace(row, not_before=not_before)
            case Hold(reason):
                await self._outbox.hold(row.seq, reason, now)
                _remove_delivery(chat.rows, row)
                self._on_lost(row, reason)
            case Bury(reason):
                await self._outbox.bury(row.seq, reason, now)
                _remove_delivery(chat.rows, row)
                self._on_lost(row, reason)

    def _next(self, key: ChatKey, chat: _Chat) -> None:
        chat.busy = False
        if not chat.rows:
            del self._chats[key]  # an idle chat costs no memory
        elif not self._stopping:
            self._enqueue(key, chat)

    def _sleep(self, key: ChatKey, chat: _Chat, seconds: float) -> None:
        chat.busy = False
        if not self._stopping:
            chat.timer = asyncio.get_running_loop().call_later(seconds, self._awake, key)

    def _park(self, key: ChatKey, chat: _Chat) -> None:
        """Until the link is up; the age bound is looked at when it is, or after a minute."""
        self._waiting_for_link.setdefault(key[0], set()).add(key)
        self._sleep(key, chat, 60.0)

    def _awake(self, key: ChatKey) -> None:
        chat = self._chats.get(key)
        if chat is None or chat.busy:
            return
        if chat.timer is not None:
            chat.timer.cancel()
            chat.timer = None
        row = chat.rows[0]
        if row.expires_at <= self._clock.now() and not self._may_go(row):
            self._supervisor.spawn(self._expire(key, chat, row), "courier.expire")
            return
        self._enqueue(key, chat)
        self._start_workers()

    async def _expire(self, key: ChatKey, chat: _Chat, row: OutboxRow) -> None:
        chat.busy = True
        await self._end(chat, row, Bury("older than the age bound"))
        self._next(key, chat)
        self._start_workers()

    def _link_up(self, platform: str) -> None:
        for key in self._waiting_for_link.pop(platform, set()):
            self._awake(key)


def _insert(rows: deque[OutboxRow], row: OutboxRow) -> None:
    """By sequence; nearly always at the end."""
    if not rows or rows[-1].seq < row.seq:
        rows.append(row)
        return
    if any(r.seq == row.seq for r in rows):
        return
    ordered = sorted([*rows, row], key=lambda r: r.seq)
    rows.clear()
    rows.extend(ordered)


def _remove(rows: deque[OutboxRow], seq: int) -> None:
    kept = [r for r in rows if r.seq != seq]
    rows.clear()
    rows.extend(kept)


def _remove_delivery(rows: deque[OutboxRow], row: OutboxRow) -> None:
    kept = [r for r in rows if r.delivery_id != row.delivery_id or r.part < row.part]
    rows.clear()
    rows.extend(kept)
