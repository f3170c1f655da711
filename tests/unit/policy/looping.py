"""Turns as lists of calls with what would come of each, played call by call under a guard."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolCall, ToolResultItem, ToolStatus
from hermes.policy.call_keys import Act, act_of
from hermes.policy.guardrails import Block, Guard, GuardSettings, Halt, Proceed, Warn, before, observe

PURE, IDEMPOTENT, ONCE = ToolEffect.PURE, ToolEffect.IDEMPOTENT, ToolEffect.ONCE
OK, ERROR = ToolStatus.OK, ToolStatus.ERROR
KINDS = {"read": PURE, "search": PURE, "poll": PURE, "put": IDEMPOTENT, "write": ONCE, "shell": ONCE, "send": ONCE}


@dataclass(frozen=True)
class Play:
    """A call and what it would give if it ran."""

    tool: str
    arguments: object
    text: str = "ok"
    status: ToolStatus = OK

    @property
    def act(self) -> Act:
        raw = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        return act_of(ToolCall("c", self.tool, raw), KINDS.get(self.tool))

    def result(self) -> ToolResultItem:
        return ToolResultItem("c", self.tool, self.text, self.status)


def fails(tool: str, arguments: object, text: str = "no") -> Play:
    return Play(tool, arguments, text, ERROR)


@dataclass
class Played:
    """What came of each call: ``ran``, ``warned`` (and ran), ``blocked``, ``halted``."""

    guard: Guard
    ends: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def ran(self) -> int:
        return sum(end in ("ran", "warned") for end in self.ends)


def play(plays: Iterable[Play], settings: GuardSettings | None = None, *, until_halt: bool = True) -> Played:
    """Plays the calls one by one, up to the halt."""
    played = Played(Guard(settings or GuardSettings()))
    for one in plays:
        decision = before(played.guard, one.act)
        if not isinstance(decision, Proceed):
            refused = ToolResultItem("c", one.tool, decision.text, ToolStatus.NOT_RUN)
            played.guard, again = observe(played.guard, one.act, refused)
            assert again == decision
            played.ends.append("halted" if isinstance(decision, Halt) else "blocked")
            played.kinds.append(decision.kind.value)
            played.texts.append(decision.text)
            if isinstance(decision, Halt) and until_halt:
                break
            continue
        played.guard, after = observe(played.guard, one.act, one.result())
        assert not isinstance(after, Block | Halt)
        played.ends.append("warned" if isinstance(after, Warn) else "ran")
        played.kinds.append(after.kind.value if isinstance(after, Warn) else "")
        played.texts.append(after.text if isinstance(after, Warn) else "")
    return played
