"""One turn: ask and act until there is an answer; T2 is its last act.

    claim ─► (settle what a crash left open) ─► step intent ─► pipeline ─┬─► tool calls ─► step result ─► toolbox ─┐
                                                   ▲                    └─► answer / gave up ─► T2               │
                                                   └───────────────────────────────────────────────────────────┘

The transcript on disk is the turn's memory: a resumed turn reads it and goes on (R11).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import partial
from typing import assert_never

from hermes.agent.account import Account, Money, prompt_tokens
from hermes.agent.batches import Halted, Suspended
from hermes.agent.closing import (
    Closing,
    assistant_item,
    money_sentence,
    reason_of,
    stopped_sentence,
    was_closing,
)
from hermes.agent.compactor import Compactor, Frame, TurnCompaction
from hermes.agent.endings import shown_text
from hermes.agent.journal import persist
from hermes.agent.pipeline import Pipeline
from hermes.agent.prompt import Instructions, compose
from hermes.agent.targets import Answered, Ask, GaveUp, OverBudget, Parked, Target
from hermes.agent.toolbox import Toolbox
from hermes.core.clock import Clock
from hermes.core.errors import Poison
from hermes.core.governor import Park, Parking
from hermes.core.ids import TurnId
from hermes.core.money import Limit, Purpose, Refusal, Reservation
from hermes.core.ports import Replies, TurnEnd, TurnInput, TurnObserver
from hermes.core.principals import Role
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
    ModelRequest,
    ToolResultItem,
    ToolStatus,
    UserItem,
    files_of,
    load_item,
    open_calls,
)
from hermes.core.urgency import Urgency
from hermes.policy.budget import Budget, Spent, used_up
from hermes.policy.trim import text_tokens
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

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
        money: Money,
        compactor: Compactor,
        turn_tokens: int = 0,
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
        self.money = money
        self.compactor = compactor
        self.turn_tokens = turn_tokens
        self._accounts: dict[TurnId, Account] = {}
        self._closing = Closing(turns, pipeline, money, clock)
        self._parking = parking
        self._on_park = on_park
        self.park_for = park_for
        self._on_outcome = on_outcome

    def first_step(self, claim: Claim, inputs: Sequence[TurnInput]) -> StepIntent | None:
        new = self._inputs(claim, inputs)
        tokens = 0
        if self.pipeline.targets[0].price is not None:  # the history is not read on the writer's thread
            frame = self.frame(claim.address.platform, claim.role)
            told = prompt_tokens(ModelRequest("", frame.system, tuple(one.item for one in new), frame.tools))
            tokens = sum(map(text_tokens, claim.history)) + told
        return self._intent(claim, 1, new, tokens)

    async def run(
        self,
        claim: Claim,
        inputs: Sequence[TurnInput],
        observer: TurnObserver,
        more: Callable[[], Awaitable[Sequence[TurnInput]]],
    ) -> list[OutboxRow]:
        self._checkpoints.reach("after_claim")
        going = self._open(claim, observer)
        account, deadline = going.account, going.deadline
        items: list[Item] = [load_item(text) for text in claim.history]
        new = self._inputs(claim, inputs)
        step = claim.step
        guard = await self._toolbox.guard(claim)
        urgency = claim.urgency
        while True:
            calls = open_calls(tuple(items))
            if calls:
                ran = await self._toolbox.run(claim, max(1, step - 1), calls, observer, guard)
                if isinstance(ran, Suspended):
                    return ran.rows
                if isinstance(ran, Halted):
                    return await self._say(going, ran.sentence, Outcome.FAILED_TOLD, ran.reason, ran.closing)
                items += ran.items
                going.ran.extend(ran.items)
                if open_calls(tuple(items)):
                    continue
            limit = self._used_up(going, step)
            if limit is not None:
                return await self._used_up_end(going, step, new, tuple(items), limit, deadline)
            if step > 1:
                steered = await persist(self._clock, more)
                urgency = min((urgency, *(one.row.update.urgency for one in steered)))
                new += compose(steered, self.zone)
            items += [entry.item for entry in new]
            guard.hear(entry.item for entry in new)
            reserved = await self._reserve(going, step, new, items)
            if isinstance(reserved, Refusal):
                return await self._over_budget(going, OverBudget(reserved))
            account.begun(reserved)
            self._checkpoints.reach("after_step_intent")
            answer, items = await self._call(going, items, urgency)
            new = ()
            match answer:
                case Answered(reply, target) if reply.tool_calls:
                    items.append(await self._record_step(going, step, reply, target))
                    step += 1
                case Answered(reply, target):
                    return await self._answered(going, reply, target)
                case Parked():
                    return await self._park(going, step, answer)
                case GaveUp():
                    return await self._gave_up(going, answer)
                case OverBudget():
                    return await self._over_budget(going, answer)
                case _:
                    assert_never(answer)

    def _open(self, claim: Claim, observer: TurnObserver) -> _Going:
        account = self._accounts[claim.turn_id] = self.money.open(claim.turn_id)
        account.spent = Spent(tokens=claim.spent_tokens)
        started, frame = self._clock.monotonic(), self.frame(claim.address.platform, claim.role)
        deadline = started + self.turn_deadline - claim.active_seconds
        compaction = self.compactor.turn(claim, frame, observer, deadline, account)
        return _Going(claim, observer, started, account, deadline, frame, compaction)

    async def _reserve(
        self, going: _Going, step: int, new: tuple[InputItem, ...], items: Sequence[Item]
    ) -> Reservation | Refusal:
        """The step's intent, written with its money; a new turn's first was written by its claim."""
        if going.claim.reservation is not None and step == 1:
            return going.claim.reservation
        target = self.pipeline.targets[0]
        asked = ModelRequest(target.model, going.frame.system, tuple(items), going.frame.tools)
        intent = self._intent(going.claim, step, new, self.money.tokens(target, asked))
        return await persist(self._clock, partial(self._begin_step, intent))

    async def _call(
        self, going: _Going, items: Sequence[Item], urgency: Urgency
    ) -> tuple[Answered | GaveUp | Parked | OverBudget, list[Item]]:
        """One model call; the conversation may be compacted before it and by it (R36)."""
        frame, compaction = going.frame, going.compaction
        ask = Ask(
            frame.system, await compaction.before_step(items), frame.tools, going.claim.principal_id, urgency,
            shorter=compaction.after_overflow,
        )  # fmt: skip
        answer = await self.pipeline.call(ask, going.observer, going.deadline, going.account)
        return answer, list(compaction.items)

    async def end(self, claim: Claim, end: TurnEnd) -> list[OutboxRow]:
        """R14: written by the lane. A shutdown gives the turn back; everything else is T2 with a sentence."""
        now = self._clock.now()
        account = self._accounts.pop(claim.turn_id, None)
        if end.cause is TurnCause.SHUTDOWN:
            if account is not None:
                await account.aclose()
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
            claim.turn_id, claim.epoch, end.outcome, end.reason, closing,
            account.take() if account is not None else (), end.active_seconds, replies, end.cause,
        )  # fmt: skip
        return await persist(self._clock, lambda: self._turns.finish(finish, self._clock.now()))

    async def _open_items(self, claim: Claim) -> tuple[Item, ...]:
        return tuple(load_item(text) for text in await self._turns.transcript(claim.session_id))

    def _intent(self, claim: Claim, step: int, new: tuple[InputItem, ...], tokens: int) -> StepIntent:
        """The call about to be made, with its money reserved (R16)."""
        target = self.pipeline.targets[0]
        quote = self.money.quote(claim.turn_id, Purpose.TURN, target, tokens)
        return StepIntent(claim.turn_id, claim.epoch, step, new, quote)

    def frame(self, platform: str, role: Role = Role.USER) -> Frame:
        """What goes with every call of a conversation on ``platform``."""
        return Frame(self.instructions.system(platform), self._toolbox.specs_for(role))

    def _inputs(self, claim: Claim, inputs: Sequence[TurnInput]) -> tuple[InputItem, ...]:
        if claim.goal_words:
            return (InputItem(UserItem(claim.goal_words)),)
        return compose(inputs, self.zone)

    async def _begin_step(self, intent: StepIntent) -> Reservation | Refusal:
        return await self._turns.begin_step(intent, self._clock.now())

    async def _record_step(
        self, going: _Going, step: int, reply: ModelReply, target: Target
    ) -> AssistantItem:
        item, claim = assistant_item(reply, target), going.claim
        result = StepResult(claim.turn_id, claim.epoch, step, item, going.account.take())
        await persist(self._clock, lambda: self._turns.finish_step(result, self._clock.now()))
        self._checkpoints.reach("after_step_result")
        return item

    async def _answered(self, going: _Going, reply: ModelReply, target: Target) -> list[OutboxRow]:
        items = (assistant_item(reply, target),)
        return await self._say(going, shown_text(reply), Outcome.ANSWERED, None, items)

    async def _gave_up(self, going: _Going, gave_up: GaveUp) -> list[OutboxRow]:
        return await self._say(going, gave_up.sentence, Outcome.FAILED_TOLD, gave_up.verdict.reason.value)

    async def _say(
        self, going: _Going, text: str, outcome: Outcome, reason: str | None, items: tuple[Item, ...] = ()
    ) -> list[OutboxRow]:
        """T2 with one reply; a text that cannot be rendered is told of."""
        claim = going.claim
        try:
            answer = await self._replies.answer(claim.address, claim.session_id, text)
            delivery = await self._with_files(going, answer)
        except Poison as error:
            log.error("answer_cannot_be_rendered", turn=claim.turn_id, error=str(error))
            delivery, outcome, reason = self._reply(claim, CANNOT_SHOW), Outcome.DEAD_LETTER, str(error)
        finish = TurnFinish(
            claim.turn_id, claim.epoch, outcome, reason, items, going.account.take(), self._active(going), (delivery,)
        )
        return await self._t2(finish, going.observer)

    async def _with_files(self, going: _Going, delivery: NewDelivery) -> NewDelivery:
        """What tools of the turn gave to be sent, those of an earlier process included, goes with its answer (R22)."""
        ran: Iterable[Item] = going.ran
        if going.claim.resumed:
            texts = await persist(self._clock, lambda: self._turns.turn_items(going.claim.turn_id))
            ran = map(load_item, texts)
        files = files_of(ran)
        return self._replies.with_files(delivery, files) if files else delivery

    async def _park(self, going: _Going, step: int, parked: Parked) -> list[OutboxRow]:
        """R13: the turn is one row until the upstream is back; its coroutine ends and its width is free."""
        parking, claim = self._parking, going.claim
        if parking is None:
            return await self._gave_up(going, GaveUp(parked.verdict, parked.sentence))
        await going.observer.settle()
        notice = replace(self._reply(claim, parked.sentence), priority=Priority.NOTICE)
        now = self._clock.now()
        park = Park(
            claim.turn_id, claim.epoch, step, parked.outage, self._active(going), now + self.park_for,
            going.account.take(),
        )  # fmt: skip
        rows = await persist(self._clock, lambda: parking.park(park, notice, now))
        self._accounts.pop(claim.turn_id, None)
        self._on_park()
        return rows

    def _used_up(self, going: _Going, step: int) -> Limit | None:
        """The bound that forbids step number ``step``; failed calls were none."""
        spent = replace(going.account.spent, steps=step - 1, seconds=self._active(going))
        limit = used_up(self._budget(), spent)
        return None if step == 1 and limit is Limit.TIME else limit

    def _budget(self) -> Budget:
        return Budget(self.max_steps, self.turn_deadline, self.turn_tokens)

    async def _used_up_end(
        self, going: _Going, step: int, new: tuple[InputItem, ...], items: tuple[Item, ...], limit: Limit,
        deadline: float,
    ) -> list[OutboxRow]:  # fmt: skip
        """One closing call, unless an earlier process died in it, and the sentence in any case."""
        claim, sentence = going.claim, stopped_sentence(limit, self._budget())
        said: tuple[ModelReply, Target] | None = None
        if not was_closing(items):
            system = self.instructions.system(claim.address.platform)
            said = await self._closing.ask(
                claim, step, new, items, system, limit, going.account, going.observer, deadline
            )
        if said is None:
            return await self._say(going, sentence, Outcome.FAILED_TOLD, reason_of(limit))
        text = f"{shown_text(said[0])}\n\n{sentence}"
        closing = (assistant_item(*said),)
        return await self._say(going, text, Outcome.FAILED_TOLD, reason_of(limit), closing)

    async def _over_budget(self, going: _Going, over: OverBudget) -> list[OutboxRow]:
        """Money is what ran out: no further call, one sentence; what had come is kept and shown."""
        reason, sentence = reason_of(over.refusal.limit), money_sentence(over.refusal)
        if over.part is None:
            return await self._say(going, sentence, Outcome.FAILED_TOLD, reason)
        reply, target = over.part.reply, over.part.target
        items = (assistant_item(reply, target),)
        return await self._say(going, f"{reply.text}\n\n{sentence}", Outcome.FAILED_TOLD, reason, items)

    async def _t2(self, finish: TurnFinish, observer: TurnObserver) -> list[OutboxRow]:
        await observer.settle()
        self._checkpoints.reach("before_t2")
        rows = await persist(self._clock, lambda: self._turns.finish(finish, self._clock.now()))
        self._accounts.pop(finish.turn_id, None)
        self._checkpoints.reach("after_t2")
        self._on_outcome(finish.outcome.value)
        return rows

    def _reply(self, claim: Claim, text: str) -> NewDelivery:
        return self._replies.reply(claim.address, claim.session_id, text)

    def _active(self, going: _Going) -> float:
        return going.claim.active_seconds + self._clock.monotonic() - going.started


@dataclass(frozen=True, slots=True)
class _Going:
    """A turn that runs: who looks on, when it began (monotonic), what it spends."""

    claim: Claim
    observer: TurnObserver
    started: float
    account: Account
    deadline: float
    frame: Frame
    compaction: TurnCompaction
    ran: list[Item] = field(default_factory=list)  # what its tools gave in this process


