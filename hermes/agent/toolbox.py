"""Runs the calls a model asked for: intent row → run → result row, each exactly once (promise 7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hermes.agent.journal import persist
from hermes.core.clock import Clock
from hermes.core.errors import HermesError, ToolError
from hermes.core.ids import IntentId, QuestionId, SessionId
from hermes.core.ports import Replies, Tool, TurnObserver
from hermes.core.principals import PrincipalId
from hermes.core.records import Claim, OutboxRow, Question, StartedTool, ToolEffect, ToolIntent, ToolOutcome
from hermes.core.stores import Turns
from hermes.core.transcript import ToolCall, ToolResultItem, ToolSpec, ToolStatus, without_lone_surrogates
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

CLARIFY = "clarify"
MAX_OPTIONS = 20
"""Answers that a question offers at most."""
UNKNOWN_OUTCOME = (
    "The gateway was interrupted while this call ran: its outcome is unknown. It may have taken effect. "
    "Check before you repeat it."
)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know about its call."""

    session_id: SessionId
    principal_id: PrincipalId


@dataclass(frozen=True, slots=True)
class Results:
    """All calls of a step have their results."""

    items: tuple[ToolResultItem, ...]


@dataclass(frozen=True, slots=True)
class Suspended:
    """The turn waits for a person; ``rows`` carries the question."""

    rows: list[OutboxRow]


class Toolbox:
    """The tools of this process and the only place that runs them."""

    def __init__(
        self,
        tools: Sequence[Tool],
        turns: Turns,
        replies: Replies,
        clock: Clock,
        checkpoints: Checkpoints,
        *,
        result_chars: int = 20_000,
        question_timeout: float = 3600.0,
        on_question: Callable[[SessionId], None] = lambda session: None,
    ) -> None:
        self._tools: Mapping[str, Tool] = {t.spec.name: t for t in tools}
        self._turns = turns
        self._replies = replies
        self._clock = clock
        self._checkpoints = checkpoints
        self.result_chars = result_chars
        self.question_timeout = question_timeout
        self._on_question = on_question

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """As a model sees them, in a stable order."""
        return tuple(t.spec for t in self._tools.values())

    async def run(
        self, claim: Claim, step: int, calls: Sequence[ToolCall], observer: TurnObserver
    ) -> Results | Suspended:
        """Runs the calls in order. What an earlier process started is not started again unless that is safe."""
        started = {s.call_id: s for s in claim.started}
        results: list[ToolResultItem] = []
        for call in calls:
            if call.name == CLARIFY and call.call_id not in started:
                arguments = _readable(call.arguments)
                if arguments is not None:
                    return await self._suspend(claim, step, call, arguments)
            results.append(await self._one(claim, step, call, started.get(call.call_id), observer))
        return Results(tuple(results))

    async def _one(
        self, claim: Claim, step: int, call: ToolCall, started: StartedTool | None, observer: TurnObserver
    ) -> ToolResultItem:
        tool = self._tools.get(call.name)
        effect = tool.effect if tool is not None else ToolEffect.PURE
        intent = started.intent_id if started is not None else IntentId(f"{claim.turn_id}:{step}:{call.call_id}")
        if started is None:
            record = ToolIntent(claim.turn_id, claim.epoch, step, intent, call.call_id, call.name, effect)
            await persist(self._clock, lambda: self._turns.start_tools([record], self._clock.now()))
        self._checkpoints.reach("after_tool_intent")
        if started is not None and started.effect is ToolEffect.ONCE:
            item = ToolResultItem(call.call_id, call.name, UNKNOWN_OUTCOME, ToolStatus.UNKNOWN)
        else:
            observer.on_tool(call.name, "start")
            item = await self._execute(claim, tool, call)
            observer.on_tool(call.name, item.status.value)
        self._checkpoints.reach("after_tool_effect")
        outcome = ToolOutcome(claim.turn_id, intent, item)
        await persist(self._clock, lambda: self._turns.finish_tool(outcome, self._clock.now()))
        self._checkpoints.reach("after_tool_result")
        return item

    async def _execute(self, claim: Claim, tool: Tool | None, call: ToolCall) -> ToolResultItem:
        if tool is None:
            known = ", ".join(self._tools)
            return _failed(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        try:
            arguments = _arguments(call.arguments)
            context = ToolContext(claim.session_id, claim.principal_id)
            text = await tool.run(arguments, context)
        except ToolError as error:
            return _failed(call, self._bounded(str(error)))
        except HermesError:
            raise
        except Exception as error:  # R26: toolbox, per call: a tool's fault is a result the model reads
            log.error("tool_fault", tool=call.name, error=repr(error))
            return _failed(call, self._bounded(f"The tool failed: {type(error).__name__}: {error}"))
        return ToolResultItem(call.call_id, call.name, self._bounded(without_lone_surrogates(text)))

    def _bounded(self, text: str) -> str:
        if len(text) <= self.result_chars:
            return text
        return f"{text[: self.result_chars]}\n[cut: {len(text) - self.result_chars} more characters]"

    async def _suspend(
        self, claim: Claim, step: int, call: ToolCall, arguments: Mapping[str, object]
    ) -> Suspended:
        """R13: the question is one journal row; the coroutine ends and the width is free."""
        now = self._clock.now()
        prompt = without_lone_surrogates(str(arguments.get("question") or "").strip() or "Could you tell me more?")
        raw_options = arguments.get("options")
        offered = raw_options if isinstance(raw_options, list) else []
        options = tuple(without_lone_surrogates(str(o)) for o in offered[:MAX_OPTIONS])
        intent = IntentId(f"{claim.turn_id}:{step}:{call.call_id}")
        record = ToolIntent(claim.turn_id, claim.epoch, step, intent, call.call_id, CLARIFY, ToolEffect.ONCE)
        await persist(self._clock, lambda: self._turns.start_tools([record], now))
        question = Question(
            QuestionId(0), claim.session_id, claim.turn_id, intent, call.call_id, CLARIFY, prompt, options,
            now + self.question_timeout,
        )  # fmt: skip
        text = prompt + "".join(f"\n{n}. {o}" for n, o in enumerate(options, start=1))
        reply = self._replies.reply(claim.address, claim.session_id, text)
        rows = await persist(
            self._clock, lambda: self._turns.suspend(claim.turn_id, claim.epoch, question, reply, now)
        )
        self._on_question(claim.session_id)
        return Suspended(rows)


def _arguments(text: str) -> Mapping[str, object]:
    """The call's arguments. Raises ToolError with what is wrong, for the model."""
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The arguments are not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ToolError("The arguments must be a JSON object.")
    return parsed


def _readable(text: str) -> Mapping[str, object] | None:
    try:
        return _arguments(text)
    except ToolError:
        return None


def _failed(call: ToolCall, text: str) -> ToolResultItem:
    return ToolResultItem(call.call_id, call.name, without_lone_surrogates(text), ToolStatus.ERROR)
