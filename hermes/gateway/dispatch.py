"""From an accepted row to a running turn: normalise, answer out of lane (R12), wake the session's lane.

    on_accepted ─► triage (one ordered queue) ─┬─► nothing to do · too old · command · answer to a question
                                               └─► lanes.wake(session) ─► claim ─► turn ─► end ─► courier

A lane runs one turn of its session at a time; the turn's task is its child, so that whoever cancels the
turn (stop, deadline, shutdown) says why first, and the lane writes the end (R14).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from hermes.core.clock import Clock
from hermes.core.errors import Poison, StoreUnavailable
from hermes.core.events import ButtonEvent, Event, MessageEvent, NothingToDo
from hermes.core.ids import InboxId, SessionId
from hermes.core.ports import TurnInput
from hermes.core.principals import Role
from hermes.core.records import Accepted, Claim, InboxRow, Outcome, Priority, StepIntent
from hermes.core.stores import NOTE_ONLY, Inbox, Outbox, Turns
from hermes.gateway.commands import Commands
from hermes.gateway.courier import Courier
from hermes.gateway.goals import GoalKeeper
from hermes.gateway.ingest import AccessBook
from hermes.gateway.lane import TurnLane, turn_input
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.questions import Questions
from hermes.gateway.replies import PlatformReplies
from hermes.gateway.session_commands import SessionCommands, is_again
from hermes.gateway.waiting import DueCommand, Entrance, Waiting
from hermes.policy.busy import QUEUED, REFUSED, Begin, BusyMode, Interrupt, Queue, Refuse, Steer, when_busy
from hermes.policy.routing import Command, Lane, command_is_stale, lane_of, parse_command, speaks
from hermes.runtime.lanes import LaneRun, Lanes
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

NORMALISE_ATTEMPTS = 3
STORE_RETRY_SECONDS = 2.0


@dataclass(slots=True)
class DispatchSettings:
    """Live settings; ``max_age`` in seconds."""

    max_age: float = 86_400.0
    max_age_suspended: bool = False  # the clock is wrong: age cannot be judged (R41)
    ready_at: float = 0.0
    busy_mode: BusyMode = BusyMode.QUEUE
    queue_limit: int = 20
    queue_notice_after: float = 3.0


@dataclass(slots=True)
class Dispatch:
    """Owns triage and the lanes."""

    inbox: Inbox
    outbox: Outbox
    turns: Turns
    platforms: PlatformBook
    access: AccessBook
    commands: Commands
    questions: Questions
    replies: PlatformReplies
    courier: Courier
    lane: TurnLane
    clock: Clock
    supervisor: Supervisor
    settings: DispatchSettings
    width: int = 256
    on_outcome: Callable[[str], None] = lambda outcome: None
    lanes: Lanes[SessionId] = field(init=False)
    _queue: deque[InboxRow] = field(default_factory=deque, init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    waiting: Waiting = field(default_factory=Waiting, init=False)
    sessions: SessionCommands | None = field(default=None, init=False)
    goals: GoalKeeper | None = field(default=None, init=False)
    _told: dict[SessionId, float] = field(default_factory=dict, init=False)
    _stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.lanes = Lanes(width=self.width, handler=self._serve, on_error=self._lane_fault)
        self.lane.more_inputs = self._steered

    def on_accepted(self, accepted: Sequence[Accepted]) -> None:
        """Rows that T1 has just committed, in order. Returns at once."""
        self._queue.extend(a.row for a in accepted if a.row.session_id is not None)
        if self._queue:
            self._wake.set()

    def readmit(self, row: InboxRow) -> None:
        """A dead letter the owner wants read once more."""
        self._again(row)

    async def recover(self) -> int:
        """After a start: triage what was not begun, resume what was not ended. Returns the sessions woken."""
        self._queue.extend(await self.inbox.backlog())
        sessions = await self.turns.unfinished_sessions()
        self._wake.set()
        goals = await self.goals.load() if self.goals is not None else []
        for session in (*sessions, *goals):
            if session not in self.questions.waiting:
                self.lanes.wake(session)
        return len(sessions)

    async def run(self) -> None:
        """The triage loop; supervised."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                row = self._queue.popleft()
                try:
                    await self._triage(row)
                except StoreUnavailable as error:
                    self._queue.appendleft(row)
                    log.error("triage_waits_for_the_store", error=str(error))
                    await self.clock.sleep(STORE_RETRY_SECONDS)

    def stop_intake(self) -> None:
        """No new turn begins; what is queued stays on disk."""
        self._stopped = True
        self.lanes.stop_intake()

    # ---- triage ----

    async def _triage(self, row: InboxRow) -> None:
        if row.session_id is None:
            return
        platform = self.platforms.find(row.update.platform)
        if platform is None:
            return  # its adapter is not configured now: the row waits on disk
        try:
            event = platform.normalise(row.update.raw)
        except Exception as error:  # R26: dispatch: whatever a raw update makes an adapter do is poison
            await self._poisoned(row, error)
            return
        try:
            await self._route(row, row.session_id, event)
        except StoreUnavailable:
            raise
        except Exception as error:  # R26: dispatch: one row's fault is not the queue's
            log.error("triage_fault", row=row.id, error=repr(error))
            await self._poisoned(row, error)

    async def _route(self, row: InboxRow, session: SessionId, event: Event) -> None:
        match event:
            case NothingToDo(reason):
                await self._finish(row, Outcome.IGNORED, reason)
            case ButtonEvent():
                if await self.questions.button(row, session, event):
                    self.on_outcome(Outcome.ANSWERED_QUESTION.value)
                else:
                    await self._finish(row, Outcome.IGNORED, "button of no open question")
                self._resume(session)
            case MessageEvent() if self._too_old(event) and not is_again(row):
                await self._tell_expired(row, session, event)
            case MessageEvent(edited=True) if not is_again(row):
                await self._edited(row, session, event)
            case MessageEvent():
                await self._message(row, session, event)

    async def _message(self, row: InboxRow, session: SessionId, event: MessageEvent) -> None:
        command = parse_command(event.text) if not is_again(row) else None
        if command is not None and self.commands.knows(command.name) and not speaks(command):
            stale = command_is_stale(event.sent_at, self.settings.ready_at, self.clock.now())
            if lane_of(command) is Lane.IN and not stale:
                self.waiting.add_command(session, row, event)
                self._when_queued(row, session, event, self.waiting.count(session))
                self.lanes.wake(session)
                return
            await self._command(row, session, event, command, stale=stale)
            if command.name == "stop" and not stale:
                self.waiting.drop(session, row.id)
            return
        if command is not None and command.name == "background" and self.sessions is not None:
            session = await self.sessions.branch(row)
            self.courier.offer(await self.sessions.tell_branched(row, event))
        elif session in self.questions.waiting and await self.questions.answer(row, session, event):
            if event.attachments:  # they follow the answer into the turn that asked
                self.waiting.add_joining(session, row.id, event)
            else:
                self.on_outcome(Outcome.ANSWERED_QUESTION.value)
            self._resume(session)
            return
        await self._join(row, session, event, command)

    async def _command(
        self, row: InboxRow, session: SessionId, event: MessageEvent, command: Command, *, stale: bool
    ) -> None:
        role = self.access.role_of(row)
        if role is None:
            await self._finish(row, Outcome.IGNORED, "access")
            return
        rows = await self.commands.run(row, session, event, command, stale=stale, role=role)
        self.on_outcome(Outcome.COMMAND.value)
        self.courier.offer(rows)

    async def _join(
        self, row: InboxRow, session: SessionId, event: MessageEvent, command: Command | None
    ) -> None:
        """The message enters a turn: its own, a later one, or the one that runs."""
        chosen = {"queue": BusyMode.QUEUE, "steer": BusyMode.STEER}.get(command.name if command else "")
        mode = chosen or self.settings.busy_mode
        now = when_busy(
            mode, running=session in self.lane.running, waiting=self.waiting.count(session),
            limit=self.settings.queue_limit,
        )  # fmt: skip
        match now:
            case Refuse(waiting):
                told = self.replies.reply(event.address, session, REFUSED.format(waiting=waiting))
                rows = await self.inbox.finish(
                    [row.id], Outcome.FAILED_TOLD, now=self.clock.now(), reason="queue_full", replies=(told,)
                )
                self.on_outcome(Outcome.FAILED_TOLD.value)
                self.courier.offer(rows)
                return
            case Begin() | Steer() | Interrupt():
                if isinstance(now, Begin) and self.sessions is not None and not self.waiting.count(session):
                    await self._fresh(session, event)
                # after a restart the turn it was to steer may not have been resumed yet
                entrance = Entrance.STEER if mode is BusyMode.STEER else Entrance.MESSAGE
                self.waiting.add(session, row.id, event, entrance)
            case Queue(place):
                self.waiting.add(session, row.id, event)
                self._when_queued(row, session, event, place)
            case _:
                assert_never(now)
        self._schedule(row, session)
        if isinstance(now, Interrupt):
            self.lane.interrupt(session)

    async def _fresh(self, session: SessionId, event: MessageEvent) -> None:
        notice = await self.sessions.fresh(session, event) if self.sessions is not None else None
        if notice is not None:
            self.courier.offer(await self.outbox.enqueue([notice], self.clock.now()))

    def moved(self, here: SessionId, there: SessionId, rows: Sequence[InboxId]) -> None:
        """Rows that wait follow their chat to another conversation."""
        self.waiting.move(here, there, rows)
        if rows:
            self.lanes.wake(there)

    def _when_queued(self, row: InboxRow, session: SessionId, event: MessageEvent, place: int) -> None:
        after = self.settings.queue_notice_after
        asyncio.get_running_loop().call_later(after, self._still_queued, row, session, event, place)

    def _still_queued(self, row: InboxRow, session: SessionId, event: MessageEvent, place: int) -> None:
        """Told only where the wait is felt: most answers are there before."""
        if self.waiting.knows(row.id) and session in self.lane.running:
            self.supervisor.spawn(self._tell_queued(session, event, place), "queue notice")

    async def _tell_queued(self, session: SessionId, event: MessageEvent, place: int) -> None:
        now = self.clock.now()
        notice = self.replies.reply(event.address, session, QUEUED.format(place=place), Priority.NOTICE)
        self.courier.offer(await self.outbox.enqueue([replace(notice, expires_at=now + 60.0)], now))

    async def _steered(self, claim: Claim) -> Sequence[TurnInput]:
        """What may join the running turn now; bound to it before it is used (R10)."""
        rows = self.waiting.steering(claim.session_id)
        if not rows:
            return ()

        def may_join(row: InboxRow) -> bool | None:
            """Nobody of a lesser role joins: the turn may do more than they may."""
            role = self.access.role_of(row)
            return False if role is None else True if role >= claim.role else None

        bound = await self.turns.bind(claim.turn_id, claim.epoch, rows, may_join, self.clock.now())
        events = self.waiting.take(row.id for row in bound)
        return tuple(self.lane.input_of(row, events.get(row.id)) for row in bound)

    def _schedule(self, row: InboxRow, session: SessionId) -> None:
        hold = self.lane.hold_for(row)
        if hold > 0:
            asyncio.get_running_loop().call_later(hold, self.lanes.wake, session, row.update.urgency)
        else:
            self.lanes.wake(session, row.update.urgency)

    def _resume(self, session: SessionId) -> None:
        self.lanes.wake(session)

    async def _edited(self, row: InboxRow, session: SessionId, event: MessageEvent) -> None:
        """R9: replaces a message whose turn has not begun, else a note in the next input; never a command."""
        replaced = await self.inbox.replace(
            row.update.platform, row.update.account, event.message_ref, row.id, self.clock.now()
        )
        self.waiting.take(replaced)
        self.waiting.add(session, row.id, event if replaced else None)
        if replaced:
            self.lanes.wake(session)
        else:
            await self.inbox.defer(row.id, NOTE_ONLY)

    def _too_old(self, event: MessageEvent) -> bool:
        age = self.clock.now() - event.sent_at
        return not self.settings.max_age_suspended and age > self.settings.max_age

    async def _tell_expired(self, row: InboxRow, session: SessionId, event: MessageEvent) -> None:
        now = self.clock.now()
        told = self._told.get(session, 0.0) > now - 600.0
        self._told[session] = now
        hours = (now - event.sent_at) / 3600.0
        text = f"I was away for too long: what you wrote {hours:.0f} hours ago is not answered. Please ask again."
        replies = () if told else (self.replies.reply(event.address, session, text),)
        rows = await self.inbox.finish([row.id], Outcome.EXPIRED_TOLD, now=now, replies=replies)
        self.on_outcome(Outcome.EXPIRED_TOLD.value)
        self.courier.offer(rows)

    async def _finish(self, row: InboxRow, outcome: Outcome, reason: str) -> None:
        await self.inbox.finish([row.id], outcome, now=self.clock.now(), reason=reason)
        self.on_outcome(outcome.value)

    async def _poisoned(self, row: InboxRow, error: Exception) -> None:
        """Three failed readings, counted on disk, make a dead letter (R1)."""
        text = str(error) if isinstance(error, Poison) else f"{type(error).__name__}: {error}"
        now = self.clock.now()
        attempts = await self.inbox.count_failure(row.id, text, now + 1.0)
        log.warning("poison", row=row.id, platform=row.update.platform, attempts=attempts, error=text)
        if attempts >= NORMALISE_ATTEMPTS:
            await self._finish(row, Outcome.DEAD_LETTER, text)
            return
        asyncio.get_running_loop().call_later(1.0, self._again, row)

    def _again(self, row: InboxRow) -> None:
        self._queue.append(row)
        self._wake.set()

    # ---- lanes ----

    async def _serve(self, session: SessionId, run: LaneRun) -> None:
        while not self._stopped:
            if (due := self.waiting.due_command(session)) is not None:
                await self._due(session, due)
                continue
            try:
                claim = await self.turns.claim(session, self.clock.now(), self._may_take, self._first_step)
            except StoreUnavailable as error:
                log.error("claim_waits_for_the_store", error=str(error))
                asyncio.get_running_loop().call_later(STORE_RETRY_SECONDS, self.lanes.wake, session)
                return
            if claim is None:
                if await self._goal_goes_on(session):
                    continue
                return
            events = self.waiting.take(row.id for row in claim.rows)
            going_on = await self.lane.run_turn(claim, events)
            in_lane = self.waiting.next_command(session) is not None
            again = claim.resumed or claim.more or in_lane
            if not going_on or not (again or await self._goal_goes_on(session)):
                return  # what came meanwhile has woken this lane again

    async def _goal_goes_on(self, session: SessionId) -> bool:
        return self.goals is not None and not self._stopped and await self.goals.after(session)

    async def _due(self, session: SessionId, due: DueCommand) -> None:
        """A command in its place; its row ends whatever it does, or the lane would stand still before it."""
        command = parse_command(due.event.text)
        try:
            if command is None:
                await self._finish(due.row, Outcome.IGNORED, "no command any more")
            else:
                await self._command(due.row, session, due.event, command, stale=False)
        except StoreUnavailable as error:
            log.error("command_waits_for_the_store", error=str(error))
            await self.clock.sleep(STORE_RETRY_SECONDS)
            return
        except Exception as error:  # R26: dispatch: one row's fault is not its lane's
            log.error("command_fault", row=due.row.id, error=repr(error))
            await self._finish(due.row, Outcome.FAILED_TOLD, f"internal:{type(error).__name__}")
        self.waiting.take([due.row.id])

    def _may_take(self, row: InboxRow) -> Role | bool | None:
        """A row enters a turn only after triage: until then it may be a command or an answer (R12).

        Runs on the writer's thread; looks at memory only.
        """
        if row.session_id is None or not self.waiting.may_begin(row.session_id, row.id):
            return None
        return self.access.role_of(row) or False

    def _first_step(self, claim: Claim) -> StepIntent | None:
        """On the writer's thread: only what is in memory already is looked at."""
        known = [(row, self.waiting.event(row.id)) for row in claim.rows]
        inputs = [turn_input(row, event) for row, event in known if event is not None]
        return self.lane.first_step(claim, inputs) if len(inputs) == len(known) else None

    def _lane_fault(self, session: SessionId, error: BaseException) -> None:
        log.error("lane_fault", session=session, error=repr(error))
