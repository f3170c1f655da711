"""Asks a model for a summary, chunk by chunk, and believes only what can be one (R36).

The material is cut to the summarising model's own window. No secret goes in, and none comes out: what is sent and
what comes back pass the redactor (R40).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from hermes.agent.account import Account
from hermes.agent.pipeline import Pipeline
from hermes.agent.targets import Answered, Ask, GaveUp, OverBudget, Parked
from hermes.core.clock import Clock
from hermes.core.failures import Reason
from hermes.core.ports import TurnObserver
from hermes.core.transcript import FinishReason, Item, UserItem
from hermes.core.urgency import Urgency
from hermes.policy.estimate import measure, tokens
from hermes.policy.summary import SYSTEM, Lie, chunked, clipped, lie, lines_of, question
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

UNKNOWN_WINDOW = 8_192
"""Tokens of a summarising model of which nothing is known."""
_SHARE = 0.8
"""Of that window that a request is planned for: what is left is for the estimate's error."""
_MESSAGE_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to summarise: the covered items, the summary so far, most tokens of the new one, what to dwell on; and
    for whom. ``window``: tokens of the window the conversation outgrew, if one is known."""

    items: tuple[Item, ...]
    before: str
    tokens: int
    focus: str
    principal: str
    urgency: Urgency = Urgency.INTERACTIVE
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No summary, and why, in words for a person."""

    why: str


class Quiet:
    """Nobody watches a summary being written."""

    def on_text(self, text: str) -> None:
        """Not shown."""

    def on_restart(self) -> None:
        """Nothing was shown."""

    def on_notice(self, kind: str, text: str) -> None:
        """Not shown."""

    def on_tool(self, name: str, phase: str) -> None:
        """No tool is offered."""

    async def settle(self) -> None:
        """Nothing is on its way."""


class Summariser:
    """Implements the calls. ``pipeline`` may be replaced at a reload; ``timeout`` in seconds, for all its calls."""

    def __init__(
        self,
        pipeline: Pipeline,
        clock: Clock,
        redact: Callable[[str], str],
        *,
        max_calls: int = 8,
        timeout: float = 120.0,
    ) -> None:
        self.pipeline = pipeline
        self._clock = clock
        self._redact = redact
        self.max_calls = max_calls
        self.timeout = timeout

    async def summarise(self, wanted: Wanted, account: Account | None, deadline: float) -> str | Failed:
        """The new summary; ends by ``deadline`` (monotonic) and within ``timeout`` whatever the model does."""
        now = self._clock.monotonic()
        end = min(deadline, now + self.timeout)
        try:
            async with asyncio.timeout(max(0.0, end - now)):
                made = await self._within(wanted, account, end)
        except TimeoutError:
            made = Failed("the model took too long")
        if isinstance(made, Failed):
            log.warning("summary_failed", target=self.pipeline.targets[0].name, why=made.why)
        return made

    async def _within(self, wanted: Wanted, account: Account | None, end: float) -> str | Failed:
        window = self.pipeline.window() or wanted.window or UNKNOWN_WINDOW
        left, observer = self.max_calls, Quiet()
        lines = [self._redact(line) for line in lines_of(wanted.items)]
        covered = sum(map(self._count, lines)) + self._count(wanted.before)
        for _ in range(2):  # the second time with the window that the first refusal told of
            chunks = chunked(lines, self._room(wanted, window), left, self._count)
            if not chunks:
                return Failed("what is to be summarised does not fit the model's window")
            notes: str | Failed = self._redact(wanted.before)
            for chunk in chunks:
                assert isinstance(notes, str)
                left -= 1
                notes = await self._notes(wanted, notes, chunk, observer, account, end)
                if not isinstance(notes, str):
                    break
            if isinstance(notes, str):
                return notes if self._count(notes) < covered else Failed(Lie.TOO_LONG.value)
            known = self.pipeline.window()
            if not isinstance(notes, _Overflow) or left < 1:
                return notes
            window = min(known or window, notes.window or window, int(window * 0.7))
        return Failed("what is to be summarised does not fit the model's window")

    async def _notes(
        self, wanted: Wanted, notes: str, chunk: str, observer: TurnObserver, account: Account | None, end: float
    ) -> str | Failed:
        asked = question(notes, chunk, wanted.tokens, self._redact(wanted.focus))
        ask = Ask(
            SYSTEM, (UserItem(asked),), (), wanted.principal, wanted.urgency, max_output=_output(wanted.tokens)
        )
        answer = await self.pipeline.call(ask, observer, end, account)
        match answer:
            case Answered(reply):
                said = self._redact(reply.text)
                size = self._count(said)
                found = lie(said, f"{notes}\n{chunk}", size, self._count(chunk) + self._count(notes))
                if reply.finish is FinishReason.CONTENT_FILTER:
                    found = Lie.REFUSAL
                return Failed(found.value) if found is not None else clipped(said, wanted.tokens, self._count)
            case GaveUp(verdict, _) if verdict.reason is Reason.CONTEXT_OVERFLOW:
                return _Overflow("what is to be summarised does not fit the model's window", verdict.limit)
            case GaveUp(verdict, _) | Parked(verdict):
                return Failed(f"the model could not be asked ({verdict.reason.value})")
            case OverBudget():
                return Failed("the budget does not allow it")

    def _room(self, wanted: Wanted, window: int) -> int:
        """Tokens that a chunk may take beside the question, the summary so far and the answer."""
        around = self._count(SYSTEM) + self._count(question("", "", wanted.tokens, wanted.focus)) + _MESSAGE_TOKENS
        return int(window * _SHARE) - around - wanted.tokens - _output(wanted.tokens)

    def _count(self, text: str) -> int:
        if not text:
            return 0
        return tokens(measure(text), self.pipeline.tokens.calibration(self.pipeline.targets[0]))


@dataclass(frozen=True, slots=True)
class _Overflow(Failed):
    window: int | None = None


def _output(summary: int) -> int:
    """Tokens that an answer may take: models do not keep to a number of words."""
    return summary * 3 // 2
