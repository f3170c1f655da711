"""One turn: ask and act until there is an answer; T2 is its last act.

    claim ─► (settle what a crash left open) ─► step intent ─► pipeline ─┬─► tool calls ─► step result ─► toolbox ─┐
                                                   ▲                    └─► answer / gave up ─► T2               │
                                                   └───────────────────────────────────────────────────────────┘

The transcript on disk is the turn's memory: a resumed turn reads it and goes on (R11).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial

from hermes.agent.endings import shown_text
from hermes.agent.journal import persist
from hermes.agent.pipeline import Pipeline
from hermes.agent.prompt import Instructions, compose
from hermes.agent.targets import Answered, Ask, GaveUp, Parked, Target
from hermes.agent.toolbox import Suspended, Toolbox
from hermes.core.clock import Clock
from hermes.core.errors import Poison
from hermes.core.governor import Park, Parking
from hermes.core.ports import Replies, TurnEnd, TurnInput, TurnObserver
from hermes.core.records import (
    Claim,
    InputItem,
    NewDelivery,
    OutboxRow,
    Outcome,
    Priority,
    StepIntent,
    StepResult,
    TurnCause,
    TurnFinish,
)
from hermes.core.stores import Turns
from hermes.core.transcript import (
    AssistantItem,
    Item,
    ModelReply,
    ToolResultItem,
    ToolStatus,
    Usage,
    load_item,
    open_calls,
)
from hermes.policy.trim import estimate_tokens
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

STEPS_SENTENCE = "I stopped after {steps} steps without a final answer. Say “go on” and I continue from here."
CANNOT_SHOW = "There is an answer, but it cannot be shown here. The owner finds it in the session's history."


class TurnLoop:
    """Implements ``ports.TurnRunner``."""

    def __init__(
        self,
        turns: Turns,
        pipeline: Pipeline,
        toolbox: Toolbox,
        replies: Replies,
        clock: Clock,
        checkpoints: Checkpoints,
        *,
        instructions: Instructions,
        max_steps: int = 40,
        turn_deadline: float = 1800.0,
        zone: tzinfo = UTC,
        on_outcome: Callable[[str], None] = lambda outcome: None,
        parking: Parking | None = None,
        on_park: Callable[[], None] = lambda: None,
        park_for: float = 86_400.0,
    ) -> None:
        self._turns = turns
        self.pipeline = pipeline
        self._toolbox = toolbox
        self._replies = replies
        self._clock = clock
        self._checkpoints = checkpoints
        self.instructions = instructions
        self.max_steps = max_steps
        self.turn_deadline = turn_deadline
        self.zone = zone
        self._parking = parking
        self._on_park = on_park
        self.park_for = park_for
        self._on_outcome = on_outcome

    def first_step(self, claim: Claim, inputs: Sequence[TurnInput]) -> StepIntent | None:
        return self._intent(claim, 1, compose(inputs, self.zone), sum(map(len, claim.history)) // 4)

    async def run(
        self,
        claim: Claim,
        inputs: Sequence[TurnInput],
        observer: TurnObserver,
        more: Callable[[], Awaitable[Sequence[TurnInput]]],
    ) -> list[OutboxRow]:
        self._checkpoints.reach("after_claim")
        started = self._clock.monotonic()
        deadline = started + self.turn_deadline - claim.active_seconds
        items: list[Item] = [load_item(text) for text in claim.history]
        new = compose(inputs, self.zone)
        step = claim.step
        while True:
            calls = open_calls(tuple(items))
            if calls:
                ran = await self._toolbox.run(claim, max(1, step - 1), calls, observer)
                if isinstance(ran, Suspended):
                    return ran.rows
                items += ran.items
                if open_calls(tuple(items)):
                    continue
            if step > self.max_steps:
                return await self._out_of_steps(claim, new, step, observer, started)
            if step > 1:
                new += compose(await persist(self._clock, more), self.zone)
            items += [entry.item for entry in new]
            if not (claim.begun and step == 1):
                intent = self._intent(claim, step, new, _tokens_if_priced(self.pipeline.targets[0], items))
                await persist(self._clock, partial(self._begin_step, intent))
            self._checkpoints.reach("after_step_intent")
            system = self.instructions.system(claim.address.platform)
            ask = Ask(system, tuple(items), self._toolbox.specs, claim.principal_id)
            answer = await self.pipeline.call(ask, observer, deadline)
            new = ()
            match answer:
                case Parked():
                    return await self._park(claim, step, answer, observer, started)
                case GaveUp():
                    return await self._gave_up(claim, answer, observer, started)
                case Answered(reply, target) if reply.tool_calls:
                    items.append(await self._record_step(claim, step, reply, target))
                    step += 1
                case Answered(reply, target):
                    return await self._answered(claim, reply, target, observer, started)

    async def end(self, claim: Claim, end: TurnEnd) -> list[OutboxRow]:
        """R14: written by the lane. A shutdown gives the turn back; everything else is T2 with a sentence."""
        now = self._clock.now()
        if end.cause is TurnCause.SHUTDOWN:
            await self._turns.release(claim.turn_id, claim.epoch, end.active_seconds, now)
            return []
        history = await self._open_items(claim)
        closing = tuple(
            ToolResultItem(c.call_id, c.name, "Not finished: the turn was ended.", ToolStatus.UNKNOWN)
            for c in open_calls(history)
        )
        # to a /stop the command itself has answered
        replies = () if end.cause is TurnCause.STOP else (self._reply(claim, end.sentence),)
        finish = TurnFinish(
            claim.turn_id, claim.epoch, end.outcome, end.reason, closing, None, 0.0, end.active_seconds,
            replies, end.cause,
        )  # fmt: skip
        return await persist(self._clock, lambda: self._turns.finish(finish, self._clock.now()))

    async def _open_items(self, claim: Claim) -> tuple[Item, ...]:
        return tuple(load_item(text) for text in await self._turns.transcript(claim.session_id))

    def _intent(self, claim: Claim, step: int, new: tuple[InputItem, ...], tokens: int) -> StepIntent:
        """The call about to be made, with its money reserved (R16)."""
        target = self.pipeline.targets[0]
        reserved = _cost(target, tokens, target.max_output or 0)
        return StepIntent(
            claim.turn_id, claim.epoch, step, new, target.provider.name, target.model, reserved
        )

    async def _begin_step(self, intent: StepIntent) -> None:
        await self._turns.begin_step(intent, self._clock.now())

    async def _record_step(self, claim: Claim, step: int, reply: ModelReply, target: Target) -> AssistantItem:
        item = _assistant_item(reply, target)
        result = StepResult(claim.turn_id, claim.epoch, step, item, reply.usage, _paid(target, reply.usage))
        await persist(self._clock, lambda: self._turns.finish_step(result, self._clock.now()))
        self._checkpoints.reach("after_step_result")
        return item

    async def _answered(
        self, claim: Claim, reply: ModelReply, target: Target, observer: TurnObserver, started: float
    ) -> list[OutboxRow]:
        item = _assistant_item(reply, target)
        outcome, reason = Outcome.ANSWERED, None
        try:
            delivery = self._reply(claim, shown_text(reply))
        except Poison as error:
            log.error("answer_cannot_be_rendered", turn=claim.turn_id, error=str(error))
            delivery, outcome, reason = self._reply(claim, CANNOT_SHOW), Outcome.DEAD_LETTER, str(error)
        finish = TurnFinish(
            claim.turn_id, claim.epoch, outcome, reason, (item,), reply.usage, _paid(target, reply.usage),
            self._active(claim, started), (delivery,),
        )  # fmt: skip
        return await self._t2(finish, observer)

    async def _gave_up(
        self, claim: Claim, gave_up: GaveUp, observer: TurnObserver, started: float
    ) -> list[OutboxRow]:
        finish = TurnFinish(
            claim.turn_id, claim.epoch, Outcome.FAILED_TOLD, gave_up.verdict.reason.value, (), Usage(), 0.0,
            self._active(claim, started), (self._reply(claim, gave_up.sentence),),
        )  # fmt: skip
        return await self._t2(finish, observer)

    async def _park(
        self, claim: Claim, step: int, parked: Parked, observer: TurnObserver, started: float
    ) -> list[OutboxRow]:
        """R13: the turn is one row until the upstream is back; its coroutine ends and its width is free."""
        parking = self._parking
        if parking is None:
            return await self._gave_up(claim, GaveUp(parked.verdict, parked.sentence), observer, started)
        await observer.settle()
        notice = replace(self._reply(claim, parked.sentence), priority=Priority.NOTICE)
        now = self._clock.now()
        park = Park(
            claim.turn_id, claim.epoch, step, parked.outage, self._active(claim, started), now + self.park_for
        )
        rows = await persist(self._clock, lambda: parking.park(park, notice, now))
        self._on_park()
        return rows

    async def _out_of_steps(
        self, claim: Claim, new: tuple[InputItem, ...], step: int, observer: TurnObserver, started: float
    ) -> list[OutboxRow]:
        sentence = STEPS_SENTENCE.format(steps=self.max_steps)
        finish = TurnFinish(
            claim.turn_id, claim.epoch, Outcome.FAILED_TOLD, "max_turns", (), Usage(), 0.0,
            self._active(claim, started), (self._reply(claim, sentence),),
        )  # fmt: skip
        return await self._t2(finish, observer)

    async def _t2(self, finish: TurnFinish, observer: TurnObserver) -> list[OutboxRow]:
        await observer.settle()
        self._checkpoints.reach("before_t2")
        rows = await persist(self._clock, lambda: self._turns.finish(finish, self._clock.now()))
        self._checkpoints.reach("after_t2")
        self._on_outcome(finish.outcome.value)
        return rows

    def _reply(self, claim: Claim, text: str) -> NewDelivery:
        return self._replies.reply(claim.address, claim.session_id, text)

    def _active(self, claim: Claim, started: float) -> float:
        return claim.active_seconds + self._clock.monotonic() - started


def _assistant_item(reply: ModelReply, target: Target) -> AssistantItem:
    return AssistantItem(
        reply.text, reply.tool_calls, reply.finish, target.provider.name, target.model, reply.opaque
    )


def _tokens_if_priced(target: Target, items: Sequence[Item]) -> int:
    return estimate_tokens(items) if target.price_input else 0


def _cost(target: Target, tokens_in: int, tokens_out: int) -> float:
    return (tokens_in * target.price_input + tokens_out * target.price_output) / 1_000_000


def _paid(target: Target, usage: Usage) -> float:
    return _cost(target, usage.input_tokens, usage.output_tokens)
