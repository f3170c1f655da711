"""The judge of standing goals: one small call beside the turn, through the same pipeline and ledger."""

from __future__ import annotations

from typing import assert_never

from hermes.agent.account import Money
from hermes.agent.closing import money_sentence
from hermes.agent.pipeline import Pipeline
from hermes.agent.targets import Answered, Ask, GaveUp, OverBudget, Parked
from hermes.core.clock import Clock
from hermes.core.goals import Judgement, NoJudgement, Unjudged
from hermes.core.money import Purpose
from hermes.core.transcript import UserItem
from hermes.core.urgency import Urgency
from hermes.policy.goals import JUDGE, judge_words, read_judgement

JUDGE_OUTPUT = 1_024
"""Most tokens of a judgement; models that think first need more than the line that is asked for."""
JUDGE_SECONDS = 300.0


class Silent:
    """Looks on at a call nobody is shown."""

    def on_text(self, text: str) -> None:
        """Nothing is shown."""

    def on_restart(self) -> None:
        """Nothing was shown."""

    def on_notice(self, kind: str, text: str) -> None:
        """Nobody waits for it."""

    def on_tool(self, name: str, phase: str) -> None:
        """No tools."""

    async def settle(self) -> None:
        """No draft."""


class PipelineJudge:
    """Implements ``core.goals.GoalJudge``."""

    def __init__(self, pipeline: Pipeline, money: Money, clock: Clock) -> None:
        self._pipeline = pipeline
        self._money = money
        self._clock = clock

    async def judge(self, unjudged: Unjudged) -> Judgement | NoJudgement:
        account = self._money.open(unjudged.turn_id, Purpose.JUDGE)
        ask = Ask(
            JUDGE, (UserItem(judge_words(unjudged)),), (), unjudged.goal.principal_id, Urgency.BACKGROUND,
            max_output=JUDGE_OUTPUT,
        )
        try:
            answer = await self._pipeline.call(ask, Silent(), self._clock.monotonic() + JUDGE_SECONDS, account)
        finally:
            await account.aclose()
        match answer:
            case Answered(reply):
                return read_judgement(reply.text)
            case GaveUp(_, sentence) | Parked(_, _, sentence):
                return NoJudgement(sentence)
            case OverBudget(refusal):
                return NoJudgement(money_sentence(refusal))
            case _:
                assert_never(answer)
