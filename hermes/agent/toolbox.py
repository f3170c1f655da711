"""Runs the calls a model asked for: intent row → run → result row, each exactly once (promise 7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hermes.agent.batches import Batch, Halted, Results, Suspended
from hermes.agent.guarding import TurnGuard
from hermes.agent.journal import persist
from hermes.core.clock import Clock
from hermes.core.errors import HermesError, ToolError
from hermes.core.ids import IntentId, QuestionId, SessionId
from hermes.core.ports import Replies, Tool, ToolOutput, TurnObserver
from hermes.core.principals import PrincipalId, Role
from hermes.core.records import Claim, Priority, Question, StartedTool, ToolEffect, ToolIntent, ToolOutcome
from hermes.core.stores import Turns
from hermes.core.transcript import (
    ToolCall,
    ToolResultItem,
    ToolSpec,
    ToolStatus,
    load_item,
    without_lone_surrogates,
)
from hermes.policy.buttons import buttons
from hermes.policy.guardrails import GuardSettings
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
        guardrails: GuardSettings | None = None,
        max_parallel: int = 8,
        guest_tools: Sequence[str] = (CLARIFY,),
        on_question: Callable[[SessionId], None] = lambda session: None,
    ) -> None:
        self._tools: Mapping[str, Tool] = {t.spec.name: t for t in tools}
        self._turns = turns
        self._replies = replies
        self._clock = clock
        self._checkpoints = checkpoints
        self.result_chars = result_chars
        self.question_timeout = question_timeout
        self.guardrails = guardrails or GuardSettings()
        self.max_parallel = max_parallel
        self.guest_tools = frozenset(guest_tools)
        self._on_question = on_question

    def specs_for(self, role: Role) -> tuple[ToolSpec, ...]:
        """What a turn of this role may use, as a model sees it, in a stable order."""
        return tuple(t.spec for name, t in self._tools.items() if self._may_use(role, name))

    def _may_use(self, role: Role, name: str) -> bool:
        return role > Role.GUEST or name in self.guest_tools

    async def guard(self, claim: Claim) -> TurnGuard:
        """The guard of a claimed turn; a resumed one knows what an earlier process did in it (R11)."""
        guard = TurnGuard(self.guardrails, self._effect)
        if claim.resumed:
            items = await persist(self._clock, lambda: self._turns.turn_items(claim.turn_id))
            guard.replay(load_item(text) for text in items)
        return guard

    async def run(
        self, claim: Claim, step: int, calls: Sequence[ToolCall], observer: TurnObserver, guard: TurnGuard
    ) -> Results | Suspended | Halted:
        """Runs the calls of one step as ``batches`` says, under the turn's guard.

        What an earlier process started is not started again unless that is safe. Raises LostFence and
        StoreUnavailable.
        """
        return await Batch(_Step(self, claim, step, observer), guard, self.max_parallel).run(calls)

    def _effect(self, name: str) -> ToolEffect | None:
        tool = self._tools.get(name)
        return tool.effect if tool is not None else None

    async def _execute(self, claim: Claim, call: ToolCall) -> ToolResultItem:
        tool = self._tools.get(call.name)
        if tool is None or not self._may_use(claim.role, call.name):
            known = ", ".join(spec.name for spec in self.specs_for(claim.role))
            return _failed(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        try:
            arguments = _arguments(call.arguments)
            context = ToolContext(claim.session_id, claim.principal_id)
            said = await tool.run(arguments, context)
        except ToolError as error:
            return _failed(call, self._bounded(str(error)))
        except HermesError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _failed(call, "The tool failed: it was cancelled from inside.")  # nobody cancelled this call
        except Exception as error:  # R26: toolbox, per call: a tool's fault is a result the model reads
            log.error("tool_fault", tool=call.name, error=repr(error))
            return _failed(call, self._bounded(f"The tool failed: {type(error).__name__}: {error}"))
        output = said if isinstance(said, ToolOutput) else ToolOutput(said)
        text = self._bounded(without_lone_surrogates(output.text))
        return ToolResultItem(call.call_id, call.name, text, images=output.images, files=output.files)

    def _bounded(self, text: str) -> str:
        if len(text) <= self.result_chars:
            return text
        return f"{text[: self.result_chars]}\n[cut: {len(text) - self.result_chars} more characters]"


class _Step:
    """The calls of one step: implements ``batches.Acts``."""

    def __init__(self, box: Toolbox, claim: Claim, step: int, observer: TurnObserver) -> None:
        self._box = box
        self._claim = claim
        self._step = step
        self._observer = observer
        self._started: Mapping[IntentId, StartedTool] = {s.intent_id: s for s in claim.started}

    def waits_for_person(self, call: ToolCall) -> bool:
        return (
            call.name == CLARIFY
            and self._intent(call) not in self._started
            and _readable(call.arguments) is not None
        )

    async def start(self, calls: Sequence[ToolCall]) -> None:
        box, new = self._box, [self._record(c) for c in calls if self._intent(c) not in self._started]
        if new:
            await persist(box._clock, lambda: box._turns.start_tools(new, box._clock.now()))
        box._checkpoints.reach("after_tool_intent")

    async def perform(self, call: ToolCall) -> ToolResultItem | HermesError:
        started = self._started.get(self._intent(call))
        if started is not None and started.effect is ToolEffect.ONCE:
            item = ToolResultItem(call.call_id, call.name, UNKNOWN_OUTCOME, ToolStatus.UNKNOWN)
        else:
            self._observer.on_tool(call.name, "start")
            try:
                item = await self._box._execute(self._claim, call)
            except HermesError as error:
                return error
            self._observer.on_tool(call.name, item.status.value)
        self._box._checkpoints.reach("after_tool_effect")
        return item

    async def keep(self, call: ToolCall, item: ToolResultItem) -> None:
        box, outcome = self._box, ToolOutcome(self._claim.turn_id, self._intent(call), item)
        await persist(box._clock, lambda: box._turns.finish_tool(outcome, box._clock.now()))
        box._checkpoints.reach("after_tool_result")

    async def skip(self, call: ToolCall, item: ToolResultItem) -> None:
        if self._intent(call) in self._started:  # begun under other settings, and not to be begun again
            await self.keep(call, item)
            return
        box, claim = self._box, self._claim
        await persist(
            box._clock,
            lambda: box._turns.skip_tools(claim.turn_id, claim.epoch, self._step, [item], box._clock.now()),
        )
        self._observer.on_tool(call.name, item.status.value)
        box._checkpoints.reach("after_tool_result")

    async def suspend(self, call: ToolCall) -> Suspended:
        """R13: the question is one journal row; the coroutine ends and the width is free."""
        box, claim, now = self._box, self._claim, self._box._clock.now()
        arguments = _readable(call.arguments) or {}
        prompt = without_lone_surrogates(str(arguments.get("question") or "").strip() or "Could you tell me more?")
        raw_options = arguments.get("options")
        offered = raw_options if isinstance(raw_options, list) else []
        options = tuple(without_lone_surrogates(str(o)) for o in offered[:MAX_OPTIONS])
        record = self._record(call)
        await persist(box._clock, lambda: box._turns.start_tools([record], now))
        question = Question(
            QuestionId(0), claim.session_id, claim.turn_id, record.intent_id, call.call_id, CLARIFY, prompt, options,
            now + box.question_timeout,
        )  # fmt: skip
        text = prompt + "".join(f"\n{n}. {o}" for n, o in enumerate(options, start=1))
        choices = buttons(record.intent_id, options)
        asked = box._replies.reply(claim.address, claim.session_id, text, options=choices)
        reply = replace(asked, priority=Priority.APPROVAL)
        await self._observer.settle()
        rows = await persist(
            box._clock, lambda: box._turns.suspend(claim.turn_id, claim.epoch, question, reply, now)
        )
        box._on_question(claim.session_id)
        return Suspended(rows)

    def _intent(self, call: ToolCall) -> IntentId:
        return IntentId(f"{self._claim.turn_id}:{self._step}:{call.call_id}")

    def _record(self, call: ToolCall) -> ToolIntent:
        effect = self._box._effect(call.name) or ToolEffect.PURE
        claim = self._claim
        return ToolIntent(
            claim.turn_id, claim.epoch, self._step, self._intent(call), call.call_id, call.name, effect
        )


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
