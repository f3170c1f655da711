"""Compacts conversations: before a step, after an overflow, or when a person asks for it (R36).

    estimate > threshold ─► plan_compaction ─┬─► Nothing, Trim ─► the request's own trim does the rest
                                             ├─► Shorten ─► old results short, no call
                                             └─► Cut ─► summary ─► install (compare and set) ─► live history
                                                          └─ fails, lies, stalls: nothing has changed; Trim

At most two summaries a turn; a failed one is not tried again for a while, in whatever turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from hermes.agent.account import Account, Money
from hermes.agent.journal import persist
from hermes.agent.pipeline import Pipeline
from hermes.agent.summariser import Failed, Summariser, Wanted
from hermes.core.clock import Clock
from hermes.core.ids import SessionId, TurnId
from hermes.core.money import Purpose
from hermes.core.ports import TurnObserver
from hermes.core.principals import PrincipalId
from hermes.core.records import Claim
from hermes.core.snapshots import LiveHistory, Snapshot, Snapshots
from hermes.core.transcript import Item, ToolSpec, dump_item, load_item
from hermes.core.urgency import Urgency
from hermes.policy.compaction import (
    Cut,
    Nothing,
    Room,
    Shorten,
    Trim,
    compacted,
    plan_compaction,
    reserve_for,
)
from hermes.policy.estimate import frame_measure, tokens, weigher
from hermes.policy.trim import Weigh, is_summary, with_short_results
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

SUMMARIES_A_TURN = 2
REST = 300.0
"""Seconds after a failed summary in which a conversation is only trimmed."""
_RESTING = 1_000
_ROUNDS = 4
NOT_KNOWN = 32_768
"""Tokens of a window that /compress plans with where none is known."""


@dataclass(slots=True)
class CompactionSettings:
    """``compression`` of the configuration."""

    enabled: bool = True
    threshold: float = 0.75
    target_ratio: float = 0.2
    protect_last_n: int = 20


@dataclass(frozen=True, slots=True)
class Frame:
    """What goes with every call of a conversation beside its items."""

    system: str
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class _Payer:
    """Who a summary is made for, and which turn pays."""

    session: SessionId
    principal: PrincipalId
    turn: TurnId | None
    deadline: float
    urgency: Urgency = Urgency.INTERACTIVE


class Compactor:
    """One for all conversations. ``pipeline`` is that of the turns: its first target's window counts."""

    def __init__(
        self,
        snapshots: Snapshots,
        pipeline: Pipeline,
        summariser: Summariser,
        money: Money,
        clock: Clock,
        settings: CompactionSettings | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._pipeline = pipeline
        self.summariser = summariser
        self._money = money
        self._clock = clock
        self.settings = settings if settings is not None else CompactionSettings()
        self._resting: dict[SessionId, float] = {}

    def turn(
        self, claim: Claim, frame: Frame, observer: TurnObserver, deadline: float, account: Account
    ) -> TurnCompaction:
        """The compactions of one turn; ``account`` is told what they took."""
        payer = _Payer(claim.session_id, claim.principal_id, claim.turn_id, deadline, claim.urgency)
        return TurnCompaction(self, payer, frame, observer, account)

    async def compress(
        self, session: SessionId, principal: PrincipalId, frame: Frame, focus: str, deadline: float
    ) -> str:
        """/compress: a summary now. What was done, or why nothing was, in words for the person."""
        live = await self._snapshots.live(session)
        items = tuple(load_item(text) for text in live.items)
        room = self.room(frame) or self.room_of(NOT_KNOWN, frame)
        weigh = self.weigh()
        plan = plan_compaction(items, room, protect=self.settings.protect_last_n, weigh=weigh, forced=True)
        if not isinstance(plan, Cut):
            return "There is nothing to compress yet: the conversation is short as it is."
        payer = _Payer(session, principal, live.last_turn, deadline)
        after = await self.cut(items, plan, live, payer, None, focus)
        if isinstance(after, Failed):
            return f"The conversation could not be summarised: {after.why}. Nothing was changed."
        return (
            f"Compressed: {_size(items, room, weigh)} → {_size(after, room, weigh)}. "
            "What was said before is kept and can still be searched."
        )

    def room(self, frame: Frame) -> Room | None:
        """What the turns' first target leaves for items; None while its window is unknown."""
        window = self._pipeline.window()
        return None if window is None else self.room_of(window, frame)

    def room_of(self, window: int, frame: Frame) -> Room:
        """The same for a window of so many tokens."""
        target = self._pipeline.targets[0]
        taken = tokens(
            frame_measure(frame.system, frame.tools if target.tools else ()), self._pipeline.tokens.calibration(target)
        )
        s = self.settings
        return Room(window, taken, reserve_for(window, target.max_output), s.threshold, s.target_ratio)

    def weigh(self) -> Weigh:
        """Tokens of an item for the turns' first target."""
        return weigher(self._pipeline.tokens.calibration(self._pipeline.targets[0]))

    def may_summarise(self, session: SessionId) -> bool:
        """Whether no summary of this conversation has failed of late."""
        until = self._resting.get(session, 0.0)
        if until and until <= self._clock.monotonic():
            del self._resting[session]
        return session not in self._resting

    async def history(self, session: SessionId, items: Sequence[Item]) -> LiveHistory | None:
        """The conversation on disk; None where it is not what the turn has before it."""
        live = await self._snapshots.live(session)
        return live if live.items == tuple(map(dump_item, items)) else None

    async def shorten(self, items: tuple[Item, ...], plan: Shorten, payer: _Payer) -> tuple[Item, ...] | None:
        """Old results short from now on; None if nothing could be changed."""
        live = await self.history(payer.session, items)
        seq = max((s for s in live.seqs[: plan.before] if s is not None), default=0) if live is not None else 0
        if live is None or not seq:
            return None
        known = live.snapshot.results_chars
        chars = min(plan.chars, known) if known else plan.chars
        snapshot = replace(live.snapshot, results_to_seq=seq, results_chars=chars)
        if not await self._install(payer.session, live.snapshot, snapshot):
            return None
        log.info("old_results_shortened", session=payer.session, up_to=seq, chars=chars)
        return (*with_short_results(items[: plan.before], chars), *items[plan.before :])

    async def cut(
        self, items: tuple[Item, ...], plan: Cut, live: LiveHistory, payer: _Payer, account: Account | None, focus: str
    ) -> tuple[Item, ...] | Failed:
        """One summary, installed; the live items, or why there are none. A failure changes nothing."""
        covered = tuple(item for item in items[: plan.at] if not is_summary(item))
        seq = max(s for s in live.seqs[: plan.at] if s is not None)
        wanted = Wanted(
            covered, live.snapshot.text, plan.summary_tokens, focus, payer.principal, payer.urgency,
            self._pipeline.window(),
        )  # fmt: skip
        own = self._money.open(payer.turn, Purpose.SUMMARY) if payer.turn is not None else None
        try:
            text = await self.summariser.summarise(wanted, own, payer.deadline)
        finally:
            if own is not None:
                await own.aclose()
                if account is not None:
                    account.spent = account.spent.plus(tokens=own.spent.tokens, usd=own.spent.usd)
        if isinstance(text, Failed):
            self._rest(payer.session)
            return text
        snapshot = replace(live.snapshot, covers_to_seq=seq, text=text)
        if not await self._install(payer.session, live.snapshot, snapshot):
            return Failed("the conversation changed meanwhile")
        log.info("conversation_summarised", session=payer.session, up_to=seq, items=len(covered))
        return compacted(items, plan.at, text)

    async def _install(self, session: SessionId, before: Snapshot, snapshot: Snapshot) -> bool:
        fresh = replace(snapshot, id=None)
        return await persist(
            self._clock, lambda: self._snapshots.install(session, before.id, fresh, self._clock.now())
        )

    def _rest(self, session: SessionId) -> None:
        if len(self._resting) >= _RESTING:
            self._resting.pop(next(iter(self._resting)))
        self._resting[session] = self._clock.monotonic() + REST


class TurnCompaction:
    """The compactions of one turn. ``items`` is what is to be sent: the whole live conversation, compacted or not."""

    def __init__(
        self, compactor: Compactor, payer: _Payer, frame: Frame, observer: TurnObserver, account: Account
    ) -> None:
        self._compactor = compactor
        self._payer = payer
        self._frame = frame
        self._observer = observer
        self._account = account
        self._summaries = 0
        self.items: tuple[Item, ...] = ()

    async def before_step(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """``items``, compacted if they outgrew the threshold; they must be on disk already."""
        self.items = tuple(items)
        room = self._compactor.room(self._frame)
        if room is not None and self._compactor.settings.enabled:
            await self._make_room(room)
        return self.items

    async def after_overflow(self, window: int) -> tuple[Item, ...] | None:
        """The same for a prompt that was refused: it may take ``window`` tokens at most. None: nothing changed."""
        known = self._compactor.room(self._frame)
        if not self._compactor.settings.enabled:
            return None
        before = self.items
        room = self._compactor.room_of(min(window, known.window) if known else window, self._frame)
        await self._make_room(replace(room, threshold=min(room.threshold, room.target_ratio + 0.2)))
        return None if self.items is before else self.items

    async def _make_room(self, room: Room) -> None:
        weigh, settings = self._compactor.weigh(), self._compactor.settings
        for _ in range(_ROUNDS):
            plan = plan_compaction(self.items, room, protect=settings.protect_last_n, weigh=weigh)
            match plan:
                case Nothing() | Trim():
                    return
                case Shorten():
                    shorter = await self._compactor.shorten(self.items, plan, self._payer)
                case Cut():
                    shorter = await self._summary(plan, room, weigh)
                case _:
                    assert_never(plan)
            if shorter is None:
                return
            self.items = shorter

    async def _summary(self, plan: Cut, room: Room, weigh: Weigh) -> tuple[Item, ...] | None:
        session = self._payer.session
        if self._summaries >= SUMMARIES_A_TURN or not self._compactor.may_summarise(session):
            return None
        live = await self._compactor.history(session, self.items)
        if live is None:
            return None
        self._summaries += 1
        self._observer.on_notice("compact", "The conversation has grown long; summarising its older part.")
        made = await self._compactor.cut(self.items, plan, live, self._payer, self._account, "")
        if isinstance(made, Failed):
            self._observer.on_notice(
                "compact", f"No summary was made: {made.why}. The oldest messages are left out where they do not fit."
            )
            return None
        sizes = f"{_size(self.items, room, weigh)} → {_size(made, room, weigh)}"
        self._observer.on_notice("compact", f"Summarised the older part of the conversation: {sizes}.")
        return made


def _size(items: Sequence[Item], room: Room, weigh: Callable[[Item], int]) -> str:
    count = len(items)
    return f"{count} message{'' if count == 1 else 's'}, about {sum(map(weigh, items)) + room.frame:,} tokens"
