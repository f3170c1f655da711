"""Turns that wait for an upstream: woken when it is back, at the rate the governor grants (R13, R30).

    parked ─► guard ends by itself ─► the oldest is woken: its call is the probe ─► fails: parked again
                                                                                 └► closes the circuit ─► the
                                             others, oldest first, one a principal in turn, as room is granted

Also writes through to the store what the governor learned.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from hermes.core.clock import Clock
from hermes.core.errors import StoreUnavailable
from hermes.core.governor import Admissions, ParkedTurn, Parking, StoredUpstream, UpstreamStore
from hermes.core.ids import SessionId
from hermes.policy.admission import in_turn
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

STORE_RETRY_SECONDS = 5.0
SETTLE_SECONDS = 1.0
"""A woken turn is counted as one that is about to call for so long."""
SHORTEST_LOOK, LONGEST_LOOK = 0.25, 60.0


class Outages:
    """Supervised; `changed` and `parked` may be called from anywhere on the loop and return at once."""

    def __init__(
        self,
        parking: Parking,
        admissions: Admissions,
        upstreams: UpstreamStore,
        clock: Clock,
        *,
        targets: Callable[[], Sequence[str]],
        wake: Callable[[SessionId], None],
    ) -> None:
        self._parking = parking
        self._admissions = admissions
        self._upstreams = upstreams
        self._clock = clock
        self._targets = targets
        self._wake_session = wake
        self._event = asyncio.Event()
        self._any = True  # an earlier process may have left some
        self._woken: dict[SessionId, float] = {}
        self.stopped = False

    async def load(self, into: Callable[[list[StoredUpstream]], None]) -> None:
        """Hands over what an earlier process knew; before the first turn runs. Raises StoreUnavailable."""
        into(await self._upstreams.load())

    def changed(self) -> None:
        """The governor learned something."""
        self._event.set()

    def parked(self) -> None:
        """A turn has just been parked."""
        self._any = True
        self._event.set()

    async def run(self) -> None:
        """Forever."""
        while True:
            self._event.clear()
            try:
                delay = await self._step()
            except StoreUnavailable as error:
                log.error("outages_wait_for_the_store", error=str(error))
                self._any = True
                delay = STORE_RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._event.wait()

    async def _step(self) -> float | None:
        """Does what is due; seconds until the next look, None: until something changes."""
        rows = self._admissions.unsaved()
        if rows:
            await self._upstreams.save(rows)
        if not self._any or self.stopped:
            return None
        self._any = False
        waiting = await self._parking.parked()
        left = [turn for turn in waiting if not await self._expired(turn)]
        still = await self._resume(left)
        if not still:
            self._woken.clear()
            return None
        self._any = True
        return self._next_look(still)

    async def _expired(self, turn: ParkedTurn) -> bool:
        if turn.until > self._clock.now():
            return False
        if await self._parking.expire(turn.turn_id, self._clock.now()):
            self._wake_session(turn.session_id)
        return True

    async def _resume(self, waiting: Sequence[ParkedTurn]) -> list[ParkedTurn]:
        """Wakes as many as there is room for; answers those that wait on."""
        now = self._clock.monotonic()
        self._woken = {s: at for s, at in self._woken.items() if now - at < 2 * SETTLE_SECONDS}
        about_to_call = sum(now - at < SETTLE_SECONDS for at in self._woken.values())
        room: dict[tuple[str, ...], int] = {}
        still: list[ParkedTurn] = []
        for turn in in_turn([(turn.principal_id, turn) for turn in waiting]):
            names = self._names(turn)
            left = room.setdefault(names, self._admissions.room(names) - about_to_call)
            if left <= 0 or turn.session_id in self._woken:
                still.append(turn)
                continue
            room[names] = left - 1
            if await self._parking.resume(turn.turn_id, self._clock.now()):
                self._woken[turn.session_id] = now
                log.info("parked_turn_resumes", turn=turn.turn_id, outage=turn.outage)
                self._wake_session(turn.session_id)
        return still

    def _names(self, turn: ParkedTurn) -> tuple[str, ...]:
        """Whose recovery helps it: the upstream it was parked on, and the primary."""
        return tuple(dict.fromkeys((turn.outage.rpartition("@")[0], *self._targets()[:1])))

    def _next_look(self, waiting: Sequence[ParkedTurn]) -> float:
        ends = [self._admissions.look_again(names) for names in {self._names(turn) for turn in waiting}]
        delays = [SETTLE_SECONDS if end is None else end for end in ends]
        delays += [min(turn.until for turn in waiting) - self._clock.now()]
        return min(max(min(delays), SHORTEST_LOOK), LONGEST_LOOK)
