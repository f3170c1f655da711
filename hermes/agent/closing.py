"""The end of a budget: one closing call while there is money for it, and a sentence in any case; then stop.

A turn whose steps, tokens or time are used up asks the model once more, without tools, to say what it did
and what is left. Where money is what ran out, or the closing call fails, the sentence alone is the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never

from hermes.agent.account import Account, Money
from hermes.agent.journal import persist
from hermes.agent.pipeline import Pipeline
from hermes.agent.targets import Answered, Ask, Target
from hermes.core.clock import Clock
from hermes.core.money import Limit, Purpose, Refusal, Reservation
from hermes.core.ports import TurnObserver
from hermes.core.records import Claim, InputItem, StepIntent
from hermes.core.stores import Turns
from hermes.core.transcript import AssistantItem, Item, ModelReply, ModelRequest, UserItem
from hermes.policy.budget import Budget, dollars

CLOSING_OUTPUT = 1_024
"""Most tokens of a closing summary."""
_WHY = {
    Limit.STEPS: "all steps of this turn are used",
    Limit.TOKENS: "the tokens of this turn are used up",
    Limit.TIME: "the time of this turn is nearly over",
}
_GO_ON = "Say “go on” and I continue from here."


def closing_note(limit: Limit) -> UserItem:
    """What the model is asked with its last call."""
    why = _WHY.get(limit, "the budget of this turn is used up")
    return UserItem(
        f"[{why}: no tool can be called any more. Say briefly, to the person, what you did, what you found, "
        "and what is left to do.]",
        note=True,
    )


def was_closing(items: tuple[Item, ...]) -> bool:
    """Whether an earlier process ended in the closing call: it is not made twice."""
    return bool(items) and items[-1] in {closing_note(limit) for limit in Limit}


def reason_of(limit: Limit) -> str:
    """The turn's reason in the store."""
    return "max_turns" if limit is Limit.STEPS else f"budget_{limit.value}"


def stopped_sentence(limit: Limit, budget: Budget) -> str:
    """Why a turn stopped whose steps, tokens or time are used up."""
    match limit:
        case Limit.STEPS:
            return f"I stopped after {budget.steps} steps without a final answer. {_GO_ON}"
        case Limit.TOKENS:
            return f"I stopped: the budget of {budget.tokens:,} tokens for one turn is used up. {_GO_ON}"
        case _:
            return f"I stopped: the {budget.seconds:.0f} s that one turn may take are nearly over. {_GO_ON}"


def money_sentence(refusal: Refusal) -> str:
    """Which cap is reached, and what to do."""
    cap = dollars(refusal.cap)
    if refusal.needed > refusal.cap and refusal.left >= refusal.cap:  # nothing was spent yet
        return (
            f"One call to the model may cost up to {dollars(refusal.needed)}, which is more than the budget of {cap} "
            f"for {_SCOPE[refusal.limit]}. The owner can raise {_KEY[refusal.limit]}."
        )
    match refusal.limit:
        case Limit.TURN_USD:
            return (
                f"The budget of {cap} for one turn is used up, so I stopped here. Say “go on” to continue in a new "
                f"turn; the owner can raise {_KEY[refusal.limit]}."
            )
        case Limit.SESSION_USD:
            return (
                f"The budget of {cap} for this conversation is used up, so I stopped here. /new begins another; the "
                f"owner can raise {_KEY[refusal.limit]}."
            )
        case Limit.PERSON_DAY_USD:
            return (
                f"Your budget of {cap} for today is used up, so I stopped here. It begins anew at midnight; the owner "
                f"can raise {_KEY[refusal.limit]}."
            )
        case Limit.DAY_USD:
            return (
                f"Today's budget of {cap} for everybody is used up, so I stopped here. It begins anew at midnight; "
                f"the owner can raise {_KEY[refusal.limit]}."
            )
        case Limit.STEPS | Limit.TOKENS | Limit.TIME:
            raise ValueError(f"{refusal.limit} is no cap on money")
        case _:
            assert_never(refusal.limit)


_SCOPE = {
    Limit.TURN_USD: "one turn",
    Limit.SESSION_USD: "this conversation",
    Limit.PERSON_DAY_USD: "one person a day",
    Limit.DAY_USD: "everybody a day",
}
_KEY = {
    Limit.TURN_USD: "agent.budget.turn_usd",
    Limit.SESSION_USD: "agent.budget.session_usd",
    Limit.PERSON_DAY_USD: "agent.budget.user_day_usd",
    Limit.DAY_USD: "agent.budget.day_usd",
}


class Closing:
    """Makes the closing call: reserved, counted and journalled like any step."""

    def __init__(self, turns: Turns, pipeline: Pipeline, money: Money, clock: Clock) -> None:
        self._turns = turns
        self._pipeline = pipeline
        self._money = money
        self._clock = clock

    async def ask(
        self, claim: Claim, step: int, new: tuple[InputItem, ...], items: tuple[Item, ...], system: str, limit: Limit,
        account: Account, observer: TurnObserver, deadline: float,
    ) -> tuple[ModelReply, Target] | None:  # fmt: skip
        """The model's closing words; None where there is no money, no answer, or one that still wants tools.

        ``new`` inputs and the note are in the transcript afterwards in any case.
        """
        note = closing_note(limit)
        said = (*items, *(entry.item for entry in new), note)
        target = self._pipeline.targets[0]
        tokens = self._money.tokens(target, ModelRequest(target.model, system, said))
        quote = self._money.quote(claim.turn_id, Purpose.CLOSING, target, tokens, CLOSING_OUTPUT)
        intent = StepIntent(claim.turn_id, claim.epoch, step, (*new, InputItem(note)), quote)
        reserved = await persist(self._clock, self._begin(intent))
        if isinstance(reserved, Refusal):
            return None
        account.begun(reserved, Purpose.CLOSING)
        ask = Ask(system, said, (), claim.principal_id, claim.urgency, max_output=CLOSING_OUTPUT)
        answer = await self._pipeline.call(ask, observer, deadline, account)
        match answer:
            case Answered(reply, by) if reply.text.strip() and not reply.tool_calls:
                return reply, by
            case _:
                return None

    def _begin(self, intent: StepIntent) -> Callable[[], Awaitable[Reservation | Refusal]]:
        return lambda: self._turns.begin_step(intent, self._clock.now())


def assistant_item(reply: ModelReply, target: Target) -> AssistantItem:
    """An answer as the transcript keeps it."""
    return AssistantItem(
        reply.text, reply.tool_calls, reply.finish, target.provider.name, target.model, reply.opaque
    )
