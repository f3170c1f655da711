"""One turn's guard against loops of tool calls, in the words of the toolbox. The decisions are the policy's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hermes.core.records import ToolEffect
from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, UserItem
from hermes.policy.call_keys import Act, act_of, warned
from hermes.policy.guardrails import (
    Block,
    Guard,
    GuardSettings,
    Halt,
    Proceed,
    Warn,
    before,
    certain,
    heard,
    observe,
)
from hermes.runtime.logs import get_logger

log = get_logger(__name__)


class TurnGuard:
    """The guard of one running turn. ``effects`` says what a tool does, None for one that does not exist."""

    def __init__(self, settings: GuardSettings, effects: Callable[[str], ToolEffect | None]) -> None:
        self._guard = Guard(settings)
        self._effects = effects

    @property
    def state(self) -> Guard:
        """What the turn's calls came to so far."""
        return self._guard

    def act(self, call: ToolCall) -> Act:
        """The call as the policy knows it."""
        return act_of(call, self._effects(call.name))

    def before(self, act: Act) -> Proceed | Block | Halt:
        """Whether the call may run, all before it being observed."""
        return before(self._guard, act)

    def certain(self, flying: Sequence[Act], act: Act) -> bool:
        """Whether the call may run whatever comes of those that run now."""
        return certain(self._guard, flying, act)

    def observe(self, act: Act, result: ToolResultItem) -> ToolResultItem:
        """Counts what became of a call, in the order of the calls; the result, with a warning if one is due."""
        self._guard, decision = observe(self._guard, act, result)
        match decision:
            case Warn(kind, text):
                log.info("tool_loop_warned", tool=act.tool, kind=kind.value)
                return replace(result, text=warned(result.text, text))
            case Block(kind, _) | Halt(kind, _, _):
                log.info("tool_loop_blocked", tool=act.tool, kind=kind.value, blocks=self._guard.blocks)
                return result
            case Proceed():
                return result

    def hear(self, items: Iterable[Item]) -> None:
        """What was added to the turn besides calls and results: a person's words begin all counts anew."""
        if any(isinstance(item, UserItem) and not item.note for item in items):
            self._guard = heard(self._guard)

    def replay(self, items: Iterable[Item]) -> None:
        """Counts what an earlier process did in this turn: its own items, oldest first (R11).

        Results count in the order of their calls, up to the first call that has none yet.
        """
        waiting: list[ToolCall] = []
        found: dict[str, ToolResultItem] = {}
        for item in items:
            match item:
                case UserItem():
                    self.hear([item])
                case AssistantItem():
                    waiting, found = list(item.tool_calls), {}
                case ToolResultItem():
                    found.setdefault(item.call_id, item)
                    while waiting and waiting[0].call_id in found:
                        call = waiting.pop(0)
                        self._guard, _ = observe(self._guard, self.act(call), found[call.call_id])
