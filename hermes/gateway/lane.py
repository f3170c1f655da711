"""One claimed turn from its start to its end, whoever ends it (R14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hermes.core.clock import Clock
from hermes.core.errors import LostFence, LostOwnership, Poison, StoreDamaged, StoreUnavailable
from hermes.core.events import Event, MessageEvent
from hermes.core.ids import InboxId, SessionId
from hermes.core.ports import TurnEnd, TurnInput, TurnRunner
from hermes.core.records import Claim, InboxRow, OutboxRow, Outcome, StepIntent, TurnCause
from hermes.gateway.attachments import Attachments
from hermes.gateway.courier import Courier
from hermes.gateway.ingest import is_burst
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.view import Views
from hermes.policy.routing import parse_command, speaks
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

SENTENCES = {
    TurnCause.STOP: "Stopped.",
    TurnCause.DEADLINE: "This took longer than one turn may take, so I stopped. Ask again with a smaller step.",
    TurnCause.INTERRUPT: "Interrupted.",
    TurnCause.OUTAGE: "The model could not be reached for too long, so this is not answered. Please ask again.",
}
STORE_RETRY_SECONDS = 2.0
PARKED_SENTENCE = (
    "I put this request aside: three times in a row the gateway crashed while a tool ran for it. "
    "The owner finds it with `hermes dead-letters list`."
)
FAULT_SENTENCE = "Something inside the gateway failed while I worked on this, so there is no answer. Please try again."


async def nothing_more(claim: Claim) -> Sequence[TurnInput]:
    """No message joins the turn."""
    return ()


def turn_input(row: InboxRow, event: Event) -> TurnInput:
    """What a person said to the model; ``/steer TEXT`` and ``/queue TEXT`` say their text."""
    if isinstance(event, MessageEvent) and not event.edited:
        command = parse_command(event.text)
        if command is not None and speaks(command):
            event = replace(event, text=command.argument)
    return TurnInput(row, event)


@dataclass(slots=True)
class Running:
    """A turn under way."""

    claim: Claim
    started: float
    task: asyncio.Task[list[OutboxRow] | Exception] | None = None
    cause: TurnCause | None = None

    def cancel(self, cause: TurnCause) -> None:
        """The cause first, then the cancellation; a second cause does not overwrite the first."""
        if self.cause is None:
            self.cause = cause
        if self.task is not None:
            self.task.cancel()


class TurnLane:
    """Runs claimed turns; knows which are running and why one was cancelled."""

    def __init__(
        self,
        runner: TurnRunner,
        platforms: PlatformBook,
        views: Views,
        courier: Courier,
        clock: Clock,
        supervisor: Supervisor,
        *,
        turn_deadline: float = 1800.0,
        on_outcome: Callable[[str], None] = lambda outcome: None,
        on_escalate: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._runner = runner
        self._platforms = platforms
        self._views = views
        self._courier = courier
        self._clock = clock
        self._supervisor = supervisor
        self.turn_deadline = turn_deadline
        self.merge_window = 0.4
        self.attachments: Attachments | None = None
        self.more_inputs: Callable[[Claim], Awaitable[Sequence[TurnInput]]] = nothing_more
        self._on_outcome = on_outcome
        self._on_escalate = on_escalate
        self._running: dict[SessionId, Running] = {}
        self._alone = asyncio.Lock()

    @property
    def running(self) -> Mapping[SessionId, Running]:
        """Turns under way by session."""
        return self._running

    def hold_for(self, row: InboxRow) -> float:
        """Seconds a row waits for its siblings (R7); 0 for all but bursts."""
        return self.merge_window + 0.01 if is_burst(row.update) else 0.0

    def stop(self, session: SessionId) -> bool:
        """Cancels the session's turn for /stop; False if none runs."""
        return self._cancel(session, TurnCause.STOP)

    def interrupt(self, session: SessionId) -> bool:
        """Cancels the session's turn for the message that came; False if none runs."""
        return self._cancel(session, TurnCause.INTERRUPT)

    def _cancel(self, session: SessionId, cause: TurnCause) -> bool:
        running = self._running.get(session)
        if running is None:
            return False
        running.cancel(cause)
        return True

    def cancel_all(self, cause: TurnCause) -> int:
        """Cancels every running turn, e.g. at the end of a drain."""
        for running in tuple(self._running.values()):
            running.cancel(cause)
        return len(self._running)

    def first_step(self, claim: Claim, inputs: Sequence[TurnInput]) -> StepIntent | None:
        """What a new turn's first step is, for its claim's transaction; what is attached must be fetched first."""
        if any(isinstance(i.event, MessageEvent) and i.event.attachments for i in inputs):
            return None
        return self._runner.first_step(claim, inputs)

    async def run_turn(self, claim: Claim, events: Mapping[InboxId, Event | None]) -> bool:
        """Runs one turn to its end. False when the lane must not claim again now (released, lost)."""
        if claim.suspect:
            async with self._alone:  # R15: suspects resume one at a time
                return await self._run(claim, events)
        return await self._run(claim, events)

    async def _run(self, claim: Claim, events: Mapping[InboxId, Event | None]) -> bool:
        running = Running(claim, self._clock.monotonic())
        self._running[claim.session_id] = running
        view = self._views.open(claim)
        loop = asyncio.get_running_loop()
        left = max(0.0, self.turn_deadline - claim.active_seconds)
        deadline = loop.call_later(left, running.cancel, TurnCause.DEADLINE)
        try:
            if claim.parked:
                return await self._end(running, None, PARKED_SENTENCE, Outcome.DEAD_LETTER, "parked after crashes")
            if claim.cause is not None:
                outcome = Outcome.EXPIRED_TOLD if claim.cause is TurnCause.OUTAGE else Outcome.STOPPED
                return await self._end(
                    running, claim.cause, SENTENCES.get(claim.cause, "Stopped."), outcome, claim.cause.value
                )
            inputs = tuple(self.input_of(row, events.get(row.id)) for row in claim.rows)
            running.task = self._supervisor.spawn(self._guard(claim, inputs, view), "turn")
            await asyncio.wait([running.task])
            return await self._conclude(running)
        finally:
            deadline.cancel()
            view.close()
            if running.task is not None and not running.task.done():
                running.task.cancel()
            self._running.pop(claim.session_id, None)

    def input_of(self, row: InboxRow, event: Event | None) -> TurnInput:
        """A row as a turn's input; read again where its meaning is not in memory. Raises Poison."""
        if event is None:
            event = self._platforms.get(row.update.platform).normalise(row.update.raw)
        return turn_input(row, event)

    async def _guard(
        self, claim: Claim, inputs: tuple[TurnInput, ...], view: object
    ) -> list[OutboxRow] | Exception:
        try:
            more = partial(self._more, claim)
            complete = await self.received(inputs)
            return await self._runner.run(claim, complete, view, more)  # type: ignore[arg-type]  # a view observes
        except Exception as error:  # R26: dispatch, per turn: the lane decides what its chat is told
            return error

    async def _more(self, claim: Claim) -> Sequence[TurnInput]:
        return await self.received(await self.more_inputs(claim))

    async def received(self, inputs: Sequence[TurnInput]) -> Sequence[TurnInput]:
        """The inputs with what their attachments came to; waits while the store takes nothing."""
        while self.attachments is not None:
            try:
                return await self.attachments.receive(inputs)
            except StoreDamaged:
                raise
            except StoreUnavailable as error:
                log.error("attachments_wait_for_the_store", error=str(error))
                await self._clock.sleep(STORE_RETRY_SECONDS)
        return inputs

    async def _conclude(self, running: Running) -> bool:
        assert running.task is not None
        if running.task.cancelled():
            return await self._cancelled(running)
        result = running.task.result()
        match result:
            case list():
                self._courier.offer(result)  # how the turn ended was counted by the runner
                return True
            case LostFence() if running.cause is not None:
                return await self._cancelled(running)
            case LostFence():
                log.info("turn_lost_its_fence", turn=running.claim.turn_id)
                return False
            case LostOwnership() | StoreUnavailable():
                self._on_escalate(result)
                return False
            case _:
                log.error("turn_fault", turn=running.claim.turn_id, error=repr(result), exc_info=result)
                return await self._end(
                    running, None, FAULT_SENTENCE, Outcome.FAILED_TOLD, f"internal:{type(result).__name__}"
                )

    async def _cancelled(self, running: Running) -> bool:
        cause = running.cause or TurnCause.SHUTDOWN
        if cause is TurnCause.SHUTDOWN:
            await self._runner.end(
                running.claim, TurnEnd(cause, "", Outcome.STOPPED, "released", self._active(running))
            )
            return False
        outcome = Outcome.STOPPED if cause is not TurnCause.DEADLINE else Outcome.FAILED_TOLD
        return await self._end(running, cause, SENTENCES.get(cause, "Stopped."), outcome, cause.value)

    async def _end(
        self, running: Running, cause: TurnCause | None, sentence: str, outcome: Outcome, reason: str
    ) -> bool:
        end = TurnEnd(cause, sentence, outcome, reason, self._active(running))
        try:
            rows = await self._runner.end(running.claim, end)
        except (LostFence, Poison) as error:
            log.info("turn_end_lost", turn=running.claim.turn_id, error=str(error))
            return False
        self._courier.offer(rows)
        self._on_outcome(outcome.value)
        return True

    def _active(self, running: Running) -> float:
        return running.claim.active_seconds + self._clock.monotonic() - running.started
