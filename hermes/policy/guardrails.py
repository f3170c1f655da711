"""Loops of tool calls: first the model is warned, then a call is not run, then the turn ends. Pure.

    before(guard, act) ─┬─► Proceed ─► the call runs ─► observe(guard, act, result) ─► Proceed | Warn
                        ├─► Block ───► its result says why it was not run ─► observe counts the block
                        └─► Halt ────► so do the results of all later calls, and the turn ends

A guard is one turn's. It knows only what the transcript holds (calls, statuses, texts), so that folding the
turn's items again gives the same guard: a resumed turn decides as if nothing had happened (R11).

What counts, since the last *change* (a new success of a tool that may change something: files, pages, the
answer to a question) and since the person's last words:

- exact_failure: the same call fails; same_tool_failure: one tool fails in a row, whatever the arguments;
- idempotent_no_progress: the same call gives the same result, whichever kind of tool it is; ``FRESH`` new
  results of other calls in between begin the count anew;
- cycle: 2 to ``MAX_PERIOD`` calls go round with the same results;
- spread: sibling calls give the same result in a row (those of a tool that changes something: without any
  other call between them); nothing_works: calls of any tools fail in a row;
- nothing_new: calls in a row, each made before in the turn, give results each seen before in the turn. With it
  every turn over finitely many calls and results ends, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolResultItem, ToolStatus
from hermes.policy.call_keys import CHANGES, Act, result_key
from hermes.policy.guardrail_words import advice, fact, halt_sentence

FRESH = 3
"""New results of other calls between two equal calls that make the second no repetition."""

MAX_PERIOD = 8
"""Calls in the longest circle that is looked for."""

SPREAD_FACTOR = 10
"""Siblings that count as much as one repetition: thirty different files may well hold the same."""

ROW_FACTOR = 2
"""Failures of any tools in a row that count as much as one of the same tool; and how often a tool that is
blocked for its failures is tried again, once after each new result of another, before it stays blocked."""

BARREN_FACTOR = 5
"""Calls that bring nothing new, whichever they are, that count as much as one repetition."""


class Kind(StrEnum):
    """Why a call is a loop's."""

    EXACT_FAILURE = "exact_failure"
    SAME_TOOL_FAILURE = "same_tool_failure"
    NO_PROGRESS = "idempotent_no_progress"
    CYCLE = "cycle"
    SPREAD = "spread"
    NOTHING_WORKS = "nothing_works"
    NOTHING_NEW = "nothing_new"


@dataclass(frozen=True, slots=True)
class Counts:
    """``tool_loop_guardrails.warn_after`` and ``hard_stop_after``: how often something happened."""

    exact_failure: int
    same_tool_failure: int
    idempotent_no_progress: int

    def of(self, kind: Kind) -> int:
        """The count at which ``kind`` is reached."""
        match kind:
            case Kind.EXACT_FAILURE:
                return self.exact_failure
            case Kind.SAME_TOOL_FAILURE:
                return self.same_tool_failure
            case Kind.NO_PROGRESS:
                return self.idempotent_no_progress
            case Kind.CYCLE:
                return max(2, self.idempotent_no_progress)
            case Kind.SPREAD:
                return self.idempotent_no_progress * SPREAD_FACTOR
            case Kind.NOTHING_WORKS:
                return self.same_tool_failure * ROW_FACTOR
            case Kind.NOTHING_NEW:
                return self.idempotent_no_progress * BARREN_FACTOR


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """``tool_loop_guardrails``. The turn ends with the ``halt_after_blocks``-th call that is not run."""

    warnings_enabled: bool = True
    hard_stop_enabled: bool = True
    warn_after: Counts = Counts(2, 3, 2)
    block_after: Counts = Counts(3, 5, 3)
    halt_after_blocks: int = 2


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Warn:
    """``text``, one line, goes with the call's result."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """The call is not run; ``text`` is its result and says why."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Halt:
    """Neither this call nor any later one is run: ``text`` is the result, ``sentence`` for the person."""

    kind: Kind
    text: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Tried:
    """How often in a row, with which result, and how many new results of the turn there had been then."""

    count: int
    result: str
    fresh: int


@dataclass(frozen=True, slots=True)
class Guard:
    """What one turn's calls came to so far; made by ``Guard(settings)`` and moved on by ``observe``."""

    settings: GuardSettings
    failures: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    tools: Mapping[str, Tried] = field(default_factory=lambda: MappingProxyType({}))
    repeats: Mapping[str, Tried] = field(default_factory=lambda: MappingProxyType({}))
    families: Mapping[str, Tried] = field(default_factory=lambda: MappingProxyType({}))
    seen: frozenset[tuple[str, str]] = frozenset()
    made: frozenset[str] = frozenset()
    trace: tuple[tuple[str, str], ...] = ()
    barren: int = 0
    fresh: int = 0
    row: int = 0
    blocks: int = 0
    halted: Halt | None = None


def before(guard: Guard, act: Act) -> Proceed | Block | Halt:
    """Whether the call may run. Changes nothing: ``observe`` counts what became of it."""
    if guard.halted is not None:
        return replace(guard.halted, text="Not run: this turn is ended because its calls lead nowhere.")
    if not guard.settings.hard_stop_enabled:
        return Proceed()
    for kind, count, size in _standing(guard, act, ()):
        if count >= guard.settings.block_after.of(kind):
            said = f"Not run: {fact(kind, act.tool, count, size)}. {advice(kind)}"
            left = guard.settings.halt_after_blocks - guard.blocks - 1
            if left > 0:
                more = "The next call that is blocked ends" if left == 1 else f"After {left} more such calls I end"
                return Block(kind, f"{said} {more} this turn.")
            return Halt(kind, f"{said} This turn ends here.", halt_sentence(kind, act.tool, count, size))
    return Proceed()


def certain(guard: Guard, flying: Sequence[Act], act: Act) -> bool:
    """Whether ``before`` will say Proceed whatever comes of the calls that run now: the call need not wait
    for them. Never true where a run call by call could have decided otherwise: parallel batches decide
    as sequential ones do."""
    if guard.halted is not None:
        return False
    if not guard.settings.hard_stop_enabled:
        return True
    return all(
        count < guard.settings.block_after.of(kind) for kind, count, _ in _standing(guard, act, flying)
    )


def observe(guard: Guard, act: Act, result: ToolResultItem) -> tuple[Guard, Proceed | Warn | Block | Halt]:
    """What became of a call, in the order of the calls. ``result`` is the tool's, or the one that says why the
    call was not run."""
    if result.status is ToolStatus.NOT_RUN:
        decision = before(guard, act)
        match decision:
            case Block():
                return replace(guard, blocks=guard.blocks + 1), decision
            case Halt():
                return replace(guard, blocks=guard.blocks + 1, halted=decision), decision
            case Proceed():
                return guard, decision
    guard = _counted(guard, act, result)
    if not guard.settings.warnings_enabled:
        return guard, Proceed()
    for kind, count, size in _standing(guard, act, (), after=True):
        if count >= guard.settings.warn_after.of(kind):
            return guard, Warn(kind, f"{fact(kind, act.tool, count, size)}. {advice(kind)}")
    return guard, Proceed()


def heard(guard: Guard) -> Guard:
    """The person said something new: what happened before it is no repetition of what comes after."""
    return Guard(guard.settings, seen=guard.seen, made=guard.made)


def _counted(guard: Guard, act: Act, result: ToolResultItem) -> Guard:
    token = (act.key, result_key(result))
    new = token not in guard.seen
    longest = MAX_PERIOD * max(guard.settings.block_after.of(Kind.CYCLE), guard.settings.warn_after.of(Kind.CYCLE))
    guard = replace(
        guard,
        seen=guard.seen | {token},
        made=guard.made | {act.key},
        barren=0 if new else guard.barren + 1,
        trace=(*guard.trace, token)[-longest:],
        families={n: t for n, t in guard.families.items() if CHANGES not in n or n == act.family},
    )
    match result.status:
        case ToolStatus.ERROR:
            failed = guard.tools.get(act.tool)
            tried = Tried(failed.count + 1 if failed else 1, token[1], guard.fresh)
            return replace(
                guard,
                failures={**guard.failures, act.key: guard.failures.get(act.key, 0) + 1},
                tools={**guard.tools, act.tool: tried},
                repeats=_without(guard.repeats, act.key),
                row=guard.row + 1,
            )
        case ToolStatus.UNKNOWN:  # it may have changed something
            return guard if act.effect is ToolEffect.PURE else _changed(guard)
        case _:
            return _succeeded(guard, act, token[1], new)


def _succeeded(guard: Guard, act: Act, result: str, new: bool) -> Guard:
    if new and act.effect is not ToolEffect.PURE:
        guard = _changed(guard)
    # a call's own new result is no progress beside it: it is counted after these two
    repeat = _again(guard.repeats.get(act.key), result, guard.fresh, renewed=True)
    sibling = _again(guard.families.get(act.family), result, guard.fresh, renewed=False)
    fresh = guard.fresh + new
    return replace(
        guard,
        failures=_without(guard.failures, act.key),
        tools=_without(guard.tools, act.tool),
        repeats={**guard.repeats, act.key: replace(repeat, fresh=fresh)},
        families={**guard.families, act.family: replace(sibling, fresh=fresh)},
        fresh=fresh,
        row=0,
    )


def _again(before: Tried | None, result: str, fresh: int, *, renewed: bool) -> Tried:
    if before is None or before.result != result or (renewed and fresh - before.fresh >= FRESH):
        return Tried(1, result, fresh)
    return Tried(before.count + 1, result, fresh)


def _changed(guard: Guard) -> Guard:
    """Something may be otherwise now: what failed may work, what was read may read differently. Only siblings
    that change things themselves go on to be counted."""
    lasting = {name: tried for name, tried in guard.families.items() if CHANGES in name}
    return replace(guard, failures={}, tools={}, repeats={}, families=lasting, row=0)


def _standing(
    guard: Guard, act: Act, flying: Sequence[Act], *, after: bool = False
) -> Iterator[tuple[Kind, int, int]]:
    """(kind, how often so far, calls of a circle), at most: each flying call may turn out for the worst.

    ``after``: the call itself was counted just now.
    """
    same = sum(f.key == act.key for f in flying)
    of_tool = sum(f.tool == act.tool for f in flying)
    yield Kind.EXACT_FAILURE, guard.failures.get(act.key, 0) + same, 0
    yield (Kind.CYCLE, *_circle(guard.trace, [f.key for f in flying], None if after else act.key))
    repeat = guard.repeats.get(act.key)
    stale = repeat is not None and guard.fresh - repeat.fresh < FRESH
    yield Kind.NO_PROGRESS, (repeat.count if repeat is not None and stale else 0) + same, 0
    yield Kind.SAME_TOOL_FAILURE, _tool_failures(guard, act, of_tool, after), 0
    sibling = guard.families.get(act.family)
    siblings = sum(f.family == act.family for f in flying)
    yield Kind.SPREAD, (sibling.count if sibling is not None else 0) + siblings, 0
    yield Kind.NOTHING_WORKS, guard.row + len(flying), 0
    again = act.key in guard.made or same > 0
    yield Kind.NOTHING_NEW, guard.barren + len(flying) if again else 0, 0


def _tool_failures(guard: Guard, act: Act, flying: int, after: bool) -> int:
    failed = guard.tools.get(act.tool)
    if failed is None or after:
        return flying + (failed.count if failed is not None else 0)
    most = guard.settings.block_after.same_tool_failure
    if failed.count >= most and guard.fresh > failed.fresh and not flying and failed.count < most * ROW_FACTOR:
        return 0  # others found something new meanwhile: worth one trial
    return failed.count + flying


def _circle(trace: Sequence[tuple[str, str]], flying: Sequence[str], key: str | None) -> tuple[int, int]:
    """How often the last calls went round, at most, and how many calls a round has. ``key``: a call that must
    be one of them; None: any. A flying call's result is not known: it equals every result."""
    calls = [*trace, *((f, "") for f in flying)]
    best = (0, 0)
    for period in range(2, min(MAX_PERIOD, len(calls)) + 1):
        if key is not None and key not in {k for k, _ in calls[-period:]}:
            continue
        if len(set(calls[-period:])) == 1 and calls[-1][1]:
            continue  # one call again and again with one result is no circle
        matched = period
        while matched < len(calls) and _equal(calls[-matched - 1], calls[-matched - 1 + period]):
            matched += 1
        best = max(best, (matched // period, period), key=lambda found: found[0])
    return best


def _equal(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or not one[1] or not other[1])


V = TypeVar("V")


def _without(mapping: Mapping[str, V], key: str) -> Mapping[str, V]:
    return {k: v for k, v in mapping.items() if k != key} if key in mapping else mapping
