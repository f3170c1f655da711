"""What to do after a failed call: one pure state machine, one budget, one table of cures (DESIGN §5)."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from hermes.core.failures import Verdict


class Repair(StrEnum):
    """One change that may make the next attempt succeed. Each costs no retry and has a limit per call."""

    REBUILD_TRANSPORT = "rebuild_transport"
    REFRESH_CREDENTIAL = "refresh_credential"
    ROTATE_CREDENTIAL = "rotate_credential"
    REDUCE_MAX_TOKENS = "reduce_max_tokens"
    RAISE_MAX_TOKENS = "raise_max_tokens"
    COMPACT = "compact"
    SHRINK_IMAGES = "shrink_images"
    DROP_IMAGES = "drop_images"
    MOVE_TOOL_IMAGES = "move_tool_images"
    STRIP_GRAMMAR_PATTERNS = "strip_grammar_patterns"
    DROP_THINKING_SIGNATURES = "drop_thinking_signatures"
    LOWER_CONTEXT_TIER = "lower_context_tier"
    DROP_LONG_CONTEXT_BETA = "drop_long_context_beta"
    DROP_PARAMETER = "drop_parameter"


@dataclass(frozen=True, slots=True)
class RecoveryTarget:
    """One provider + model that may serve the call; index 0 is the primary. Windows in tokens, None = unknown."""

    name: str
    context_window: int | None = None
    max_output: int | None = None


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """Bounds of one call's recovery; printed by `hermes explain policy`. Times in seconds."""

    targets: tuple[RecoveryTarget, ...]
    retries: int = 3
    base: float = 5.0
    cap: float = 60.0
    ratio: float = 0.5
    retry_after_cap: float = 120.0
    repair_limits: Mapping[Repair, int] = field(default_factory=dict)
    available: frozenset[Repair] = frozenset({Repair.REBUILD_TRANSPORT, Repair.REDUCE_MAX_TOKENS})
    can_park: bool = False


@dataclass(frozen=True, slots=True)
class RecoveryState:
    """Where one call's recovery stands. Make it with `initial`; only `plan` and `skip` make the next ones."""

    deadline: float
    target: int = 0
    retries_used: int = 0
    rebuilt: bool = False
    repairs: Mapping[Repair, int] = field(default_factory=dict)
    tried: frozenset[int] = frozenset({0})
    failures: int = 0
    spread: float | None = None
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Send the same request to the same target at `until` (the planner's clock), `seconds` from now."""

    seconds: float
    until: float


@dataclass(frozen=True, slots=True)
class Apply:
    """Make this repair, then send at once. `limit`: the number it has to obey, if the error stated one."""

    repair: Repair
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchTarget:
    """Render the request anew for `policy.targets[index]` and send at once."""

    index: int


@dataclass(frozen=True, slots=True)
class Park:
    """Suspend the turn: the outage is the provider's. `until` (planner's clock) or None = its circuit closes."""

    until: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Tell the person. `sentence_key` is for `hermes.policy.sentences.sentence`."""

    sentence_key: str
    verdict: Verdict


Plan: TypeAlias = Wait | Apply | SwitchTarget | Park | GiveUp


def initial(policy: RecoveryPolicy, deadline: float, *, prompt_tokens: int | None = None,
            target: int = 0) -> RecoveryState:
    """The state before the first attempt. `deadline` is absolute on the clock that `plan` gets as `now`."""
    return RecoveryState(deadline=deadline, target=target, tried=frozenset({target}),
                         prompt_tokens=prompt_tokens)


def plan(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, *, now: float,
         u: float) -> tuple[RecoveryState, Plan]:
    """Decide what follows a failed attempt. `now` monotonic seconds, `u` in [0, 1)."""
    return state, GiveUp(f"{verdict.reason}/{verdict.detail or ''}", verdict)


def skip(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, *, now: float,
         u: float) -> tuple[RecoveryState, Plan]:
    """The same for a target that the governor refused: no call was made, none is counted."""
    return state, GiveUp(f"{verdict.reason}/{verdict.detail or ''}", verdict)


def bound(policy: RecoveryPolicy) -> int:
    """The most calls `plan` can lead to."""
    limits = sum(policy.repair_limits.get(r, 1) for r in policy.available if r is not Repair.REBUILD_TRANSPORT)
    return len(policy.targets) * (policy.retries + 2) + limits
