"""What to do after a failed call: one pure state machine, one budget, one table of cures (DESIGN §5).

For ANY sequence of failures the planner gives up within `bound(policy)` calls: each failed call leads to
exactly one of a wait (at most `retries` a target), a transport rebuild (one a target), a repair (within its
limit, over all targets), a switch (to a target not tried before, and never to one that is the same backend
under another name) or an end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from hermes.core.failures import Reason, Verdict
from hermes.policy.backends import Backend, pointless
from hermes.policy.backoff import backoff
from hermes.policy.cures import DEFAULT_LIMITS, NEEDS_IMAGES, SMALLEST_OUTPUT, Repair, cures, small_limit

__all__ = [
    "Apply",
    "GiveUp",
    "Park",
    "Plan",
    "RecoveryPolicy",
    "RecoveryState",
    "RecoveryTarget",
    "Repair",
    "SwitchTarget",
    "Wait",
    "backends_of",
    "bound",
    "first_action",
    "first_target",
    "initial",
    "others",
    "plan",
    "skip",
]

PROVIDER_WIDE = frozenset({Reason.OVERLOADED, Reason.SERVER_ERROR, Reason.TIMEOUT, Reason.RATE_LIMIT})
"""Failures that may be an outage of the provider: with no other target the turn is parked (R13)."""

DEADLINE_KEY = "deadline"
"""`GiveUp.sentence_key` when the next step would pass the deadline."""


@dataclass(frozen=True, slots=True)
class RecoveryTarget:
    """One provider + model that may serve the call; index 0 is the primary. Tokens, None = unknown.

    Without a `backend` a target is taken for a server of its own."""

    name: str
    context_window: int | None = None
    max_output: int | None = None
    backend: Backend | None = None


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """Bounds of one call's recovery; printed by `hermes explain policy`. Times in seconds.

    `retries` are those after the first attempt, per target. A stated wait above `retry_after_cap` is not sat
    out: another target, else the park, else a sentence. `repair_limits` override `DEFAULT_LIMITS`.
    `available` are the repairs that the caller can carry out; others are skipped. With
    `prefer_bigger_window` an overflow goes to a target with a larger known window before it is compacted.
    `continuations`: how often an answer that the output limit cut off is asked to go on; those calls did not
    fail and are none of `bound`.
    """

    targets: tuple[RecoveryTarget, ...]
    retries: int = 3
    base: float = 5.0
    cap: float = 60.0
    ratio: float = 0.5
    retry_after_cap: float = 120.0
    repair_limits: Mapping[Repair, int] = field(default_factory=dict)
    available: frozenset[Repair] = frozenset({Repair.REBUILD_TRANSPORT, Repair.REDUCE_MAX_TOKENS})
    can_park: bool = False
    prefer_bigger_window: bool = False
    continuations: int = 3

    def limit(self, repair: Repair) -> int:
        """How often `repair` may be made for one call."""
        return max(0, self.repair_limits.get(repair, DEFAULT_LIMITS.get(repair, 1)))


@dataclass(frozen=True, slots=True)
class RecoveryState:
    """Where one call's recovery stands. Make it with `initial`; only `plan` and `skip` make the next ones.

    `target` is the index in use, `retries_used` and `rebuilt` belong to it. `left`: with which verdict each
    other one was given up. `spread` is the call's one draw.
    """

    deadline: float
    target: int = 0
    retries_used: int = 0
    rebuilt: bool = False
    repairs: Mapping[Repair, int] = field(default_factory=dict)
    small: Mapping[tuple[Reason, str | None], int] = field(default_factory=dict)
    tried: frozenset[int] = frozenset({0})
    left: Mapping[int, Verdict] = field(default_factory=dict)
    failures: int = 0
    spread: float | None = None
    prompt_tokens: int | None = None
    has_images: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Send the same request to the same target at `until` (the planner's clock), `seconds` from now."""

    seconds: float
    until: float


@dataclass(frozen=True, slots=True)
class Apply:
    """Make this repair, then send at once. `limit`: the number to obey, if the error stated one
    (REDUCE_MAX_TOKENS without one: halve)."""

    repair: Repair
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchTarget:
    """Render the request anew for `policy.targets[index]` and send at once."""

    index: int


@dataclass(frozen=True, slots=True)
class Park:
    """Suspend the turn: the outage is the provider's. `until` (planner's clock) or None = its circuit
    closes."""

    until: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Tell the person. `sentence_key` is for `hermes.policy.sentences.sentence`."""

    sentence_key: str
    verdict: Verdict


Plan: TypeAlias = Wait | Apply | SwitchTarget | Park | GiveUp


def initial(
    policy: RecoveryPolicy,
    deadline: float,
    *,
    prompt_tokens: int | None = None,
    target: int = 0,
    has_images: bool = False,
) -> RecoveryState:
    """The state before the first attempt. `deadline` is absolute on the clock that `plan` gets as `now`."""
    if not 0 <= target < len(policy.targets):
        raise ValueError(f"target {target} is not one of the {len(policy.targets)} targets of the policy")
    return RecoveryState(
        deadline=deadline,
        target=target,
        tried=frozenset({target}),
        prompt_tokens=prompt_tokens,
        has_images=has_images,
    )


def bound(policy: RecoveryPolicy) -> int:
    """The most calls `plan` can lead to: targets × (retries + 1 + 1 rebuild) + Σ repair limits. A backend under
    two names is one target."""
    repairs = sum(policy.limit(r) for r in policy.available if r is not Repair.REBUILD_TRANSPORT)
    return backends_of(policy) * (max(0, policy.retries) + 2) + repairs


def backends_of(policy: RecoveryPolicy) -> int:
    """How many targets one call may be made to: of those that are wholly the same only one."""
    known = {(b.kind, b.address.rstrip("/"), b.model, b.keys) for t in policy.targets if (b := t.backend) is not None}
    return len(known) + sum(target.backend is None for target in policy.targets)


def plan(
    policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, *, now: float, u: float
) -> tuple[RecoveryState, Plan]:
    """Decide what follows a failed attempt. `now`: seconds on the deadline's clock, `u` in [0, 1).

    The first `u` of a call is kept for all its retries: a client that drew early stays early, so the send
    times of many clients that failed together are spread evenly over the whole range (independent draws pile
    up in its middle).
    """
    state = replace(state, failures=state.failures + 1, spread=u if state.spread is None else state.spread)
    if now >= state.deadline:
        return state, GiveUp(DEADLINE_KEY, verdict)
    for step in (_bigger_window_first, _repair, _wait, _rebuild, _switch):
        found = step(policy, state, verdict, now)
        if found is not None:
            return found
    return state, _end(policy, state, verdict, now)


def skip(
    policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, *, now: float, u: float
) -> tuple[RecoveryState, Plan]:
    """The same for a target that the governor refused: no call was made, none is counted.

    Another target that fits is taken at once; else the guard's wait (`verdict.retry_after`, at least 1 s) is
    sat out if it is within `retry_after_cap` and the deadline; else park or give up.
    """
    if now >= state.deadline:
        return state, GiveUp(DEADLINE_KEY, verdict)
    found = _switch(policy, state, verdict, now)
    if found is not None:
        return found
    wait = max(1.0, verdict.retry_after or 0.0) + policy.base * policy.ratio * min(max(u, 0.0), 1.0)
    if wait <= policy.retry_after_cap and now + wait < state.deadline:
        return state, Wait(wait, now + wait)
    return state, _end(policy, state, verdict, now)


_Step: TypeAlias = tuple[RecoveryState, Plan] | None


def _bigger_window_first(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, now: float) -> _Step:
    if policy.prefer_bigger_window and verdict.reason is Reason.CONTEXT_OVERFLOW:
        return _switch(policy, state, verdict, now)
    return None


def _repair(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, now: float) -> _Step:
    for repair in cures(verdict.reason, verdict.detail):
        if repair not in policy.available or not _can_help(repair, state, verdict):
            continue
        if repair is Repair.REBUILD_TRANSPORT:
            found = _rebuild(policy, state, verdict, now)
            if found is not None:
                return found
            continue
        used = state.repairs.get(repair, 0)
        if used < policy.limit(repair):
            after = replace(state, repairs={**state.repairs, repair: used + 1})
            return after, Apply(repair, verdict.limit)
    return None


def _can_help(repair: Repair, state: RecoveryState, verdict: Verdict) -> bool:
    if repair is Repair.REDUCE_MAX_TOKENS:
        return verdict.limit is None or verdict.limit >= SMALLEST_OUTPUT
    return repair not in NEEDS_IMAGES or state.has_images


def _may_retry(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict) -> bool:
    if not verdict.retryable and verdict.reason is not Reason.UNKNOWN and verdict.detail != "unsure":
        return False
    small = small_limit(verdict.reason, verdict.detail)
    if small is not None and state.small.get((verdict.reason, verdict.detail), 0) >= small:
        return False
    return state.retries_used < policy.retries


def _wait(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, now: float) -> _Step:
    if not _may_retry(policy, state, verdict):
        return None
    seconds = _delay(policy, state, verdict)
    if seconds is None or now + seconds >= state.deadline:
        return None
    key = (verdict.reason, verdict.detail)
    after = replace(
        state, retries_used=state.retries_used + 1, small={**state.small, key: state.small.get(key, 0) + 1}
    )
    return after, Wait(seconds, now + seconds)


def _delay(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict) -> float | None:
    """Seconds to wait, or None when the upstream asks for more than `retry_after_cap`."""
    draw = state.spread if state.spread is not None else 0.0
    own = backoff(state.retries_used + 1, draw, base=policy.base, cap=policy.cap, ratio=policy.ratio)
    stated = verdict.retry_after
    if stated is None or not math.isfinite(stated) or stated < 0.0:
        return own
    if stated > policy.retry_after_cap:
        return None
    jitter = own - backoff(state.retries_used + 1, 0.0, base=policy.base, cap=policy.cap, ratio=policy.ratio)
    return min(stated + jitter, max(stated, policy.retry_after_cap))


def _rebuild(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, now: float) -> _Step:
    """A fresh connection pool helps against dead connections only."""
    if (
        verdict.reason is not Reason.TIMEOUT
        or not verdict.retryable
        or state.rebuilt
        or Repair.REBUILD_TRANSPORT not in policy.available
        or _asks_too_much(policy, verdict)
    ):
        return None
    return replace(state, rebuilt=True), Apply(Repair.REBUILD_TRANSPORT)


def _asks_too_much(policy: RecoveryPolicy, verdict: Verdict) -> bool:
    return verdict.retry_after is not None and verdict.retry_after > policy.retry_after_cap


def _switch(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, now: float) -> _Step:
    left = {**state.left, state.target: verdict}
    for index in others(policy, state, verdict):
        after = replace(
            state, target=index, retries_used=0, rebuilt=False, tried=state.tried | {index}, left=left
        )
        return after, SwitchTarget(index)
    return None


def others(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict | None = None) -> list[int]:
    """The targets to which the call may still turn, in order. ``verdict`` is that of the one in use."""
    left = {**state.left, state.target: verdict or _LOST}
    backends = [target.backend for target in policy.targets]
    return [
        index
        for index in (*range(1, len(policy.targets)), 0)
        if index not in state.tried
        and _fits(policy, state, verdict or _LOST, index)
        and not any(pointless(left.get(t, _LOST), backends[t], backends[index]) for t in state.tried)
    ]


_LOST = Verdict(Reason.TIMEOUT, rule="")
"""Stands for a verdict that is not known: nothing but another server helps."""


def _fits(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, index: int) -> bool:
    """Whether the request fits the target's window; after an overflow the window must be known to be
    larger. The primary, where another was asked first for its window, gets what fits it."""
    window = policy.targets[index].context_window
    needed = max(state.prompt_tokens or 0, verdict.requested or 0)
    if verdict.reason in {Reason.CONTEXT_OVERFLOW, Reason.LONG_CONTEXT_TIER}:
        present = verdict.limit if verdict.detail is None else None
        present = present or policy.targets[state.target].context_window
        return window is not None and window > needed and window > (present or 0)
    return window is None or window > (state.prompt_tokens or 0) or index == 0


def first_target(policy: RecoveryPolicy, prompt_tokens: int, share: float) -> int:
    """Whom to ask first: the primary, unless a larger window is preferred to leaving something out, the prompt
    takes more than ``share`` of the primary's window, and less than that of a fallback's."""
    window = policy.targets[0].context_window
    if not policy.prefer_bigger_window or window is None or prompt_tokens <= window * share:
        return 0
    known = [target.context_window or 0 for target in policy.targets]
    return next((at for at, size in enumerate(known) if prompt_tokens <= size * share), 0)


def _end(policy: RecoveryPolicy, state: RecoveryState, verdict: Verdict, now: float) -> Park | GiveUp:
    if policy.can_park and verdict.retryable and verdict.reason in PROVIDER_WIDE:
        return Park(None if verdict.retry_after is None else now + verdict.retry_after, verdict)
    detail = f"/{verdict.detail}" if verdict.detail else ""
    return GiveUp(f"{verdict.reason.value}{detail}", verdict)


def first_action(verdict: Verdict) -> str:
    """The cheapest step that can cure this verdict, in a word for `hermes explain error`: a repair's name,
    `wait`, `switch_target` (what else could help: another provider or model) or `give_up`."""
    row = cures(verdict.reason, verdict.detail)
    if row and not (verdict.retryable and row[0] is not Repair.REBUILD_TRANSPORT):
        return row[0].value
    if verdict.retryable:
        return "wait"
    return "give_up" if verdict.reason is Reason.CONTEXT_OVERFLOW else "switch_target"
