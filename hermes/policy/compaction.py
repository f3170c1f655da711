"""What to summarise and when (R36). Pure; ``summary`` says how.

    estimate ≤ threshold ─► Nothing
    old tool results alone are too large ─► Shorten
    enough lies before what is to stay ─► Cut ─► summarise, install, go on
    else ─► Trim, which needs no model and always ends
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from hermes.core.transcript import Item, UserItem
from hermes.policy.trim import (
    RESULT_CHARS,
    SUMMARY_HEAD,
    Weigh,
    inviolable,
    is_person,
    is_summary,
    last_question,
    pending_calls,
    starts,
    with_short_results,
)

FREE = 0.1
"""Share of the window that is free after every compaction."""
LEAST_SUMMARY, MOST_SUMMARY = 64, 2_000
"""Tokens of a summary."""
_WORTH = 2
"""What is replaced must be this many times larger than its summary may become."""
_ENOUGH = 0.8
"""Share of the limit under which short results must bring the items to be enough by themselves."""


@dataclass(frozen=True, slots=True)
class Room:
    """A target's window and what each call takes of it beside the items: ``frame`` (system text and tools) and
    ``reserve`` (the answer), all in tokens; the two ratios of the configuration."""

    window: int
    frame: int = 0
    reserve: int = 0
    threshold: float = 0.75
    target_ratio: float = 0.2

    @property
    def limit(self) -> int:
        """Tokens that items may take before they are compacted."""
        return int(min(self.threshold * self.window, self.most)) - self.frame

    @property
    def most(self) -> float:
        """Tokens of a prompt that leaves the answer's room and the free share."""
        return (1 - FREE) * self.window - self.reserve

    @property
    def summary(self) -> int:
        """Tokens that a summary may take."""
        return min(MOST_SUMMARY, max(LEAST_SUMMARY, int(self.target_ratio * self.window / 4)))


def reserve_for(window: int, max_output: int | None) -> int:
    """Tokens kept for the answer: what is asked for, at most a quarter of the window; unknown: an eighth."""
    return min(window // 4, max_output) if max_output else min(window // 8, 4_096)


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is room."""


@dataclass(frozen=True, slots=True)
class Shorten:
    """Cutting old results to ``chars`` characters is enough. It concerns the items before ``before``."""

    chars: int
    before: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Summarise the items before ``at`` (all but the last person's message, should it stand there) in at most
    ``summary_tokens``."""

    at: int
    summary_tokens: int


@dataclass(frozen=True, slots=True)
class Trim:
    """No summary can help: what is to stay is too large, or there is too little before it."""


Compaction: TypeAlias = Nothing | Shorten | Cut | Trim


def plan_compaction(
    items: Sequence[Item], room: Room, *, protect: int, weigh: Weigh, forced: bool = False
) -> Compaction:
    """What to do before these items are sent. ``protect``: so many of the last stay if they can.

    ``forced``: a person asks for it, however much room there is.
    """
    weights = [weigh(item) for item in items]
    if not items or (sum(weights) <= room.limit and not forced):
        return Nothing()
    must, pending = inviolable(items), pending_calls(items)
    chars = min(2 * RESULT_CHARS, max(400, room.window // 16))
    short = with_short_results(items, chars, keep=must)
    if not forced and short != tuple(items) and sum(map(weigh, short)) <= _ENOUGH * room.limit:
        return Shorten(chars, pending.start if pending else len(items))
    at = _cut(items, weights, room, protect, forced=forced)
    covered = [i for i in range(at) if i not in must]
    fresh = sum(1 for i in covered if not is_summary(items[i]))
    worth = LEAST_SUMMARY if forced else _WORTH * room.summary
    if fresh >= 2 and sum(weights[i] for i in covered) > worth:
        return Cut(at, room.summary)
    return Trim()


def _cut(items: Sequence[Item], weights: list[int], room: Room, protect: int, *, forced: bool) -> int:
    """Where what stays begins: the last ``protect`` items if they fit, else fewer, step by step; more than those
    while they are within the target; at a person's message, if one is near."""
    question, pending = last_question(items), pending_calls(items)
    cuts = [c for c in starts(items) if not pending or c <= pending.start]
    before = [0, *accumulate(weights)]

    def kept(at: int) -> int:
        apart = weights[question] if question is not None and question < at else 0
        return before[-1] - before[at] + apart

    most = min((room.threshold + room.target_ratio) / 2 * room.window, room.most) - room.frame - room.summary
    target = room.target_ratio * room.window - room.summary
    if forced:
        protect, most, target = min(protect, max(2, len(items) // 4)), min(most, before[-1] / 2), 0.0
    at = cuts[-1]
    while protect > 0:
        wanted = max(c for c in cuts if c <= max(0, len(items) - protect))
        if kept(wanted) <= most:
            at = wanted
            break
        protect = protect * 3 // 4
    at = min((c for c in cuts if c < at and kept(c) <= target), default=at)
    people = [c for c in cuts if c <= at and is_person(items[c]) and kept(c) <= most]
    return people[-1] if people and (question is None or at <= question) else at


def summary_note(text: str) -> UserItem:
    """The item that stands for what a summary covers. It comes from third parties' words as much as from the
    owner's: nothing in it approves or orders anything (R39)."""
    return UserItem(f"{SUMMARY_HEAD}\n{text}", note=True)


def compacted(items: Sequence[Item], at: int, text: str) -> tuple[Item, ...]:
    """What is live once ``text`` covers the items before ``at``: the last person's message is, wherever it stands."""
    question = last_question(items)
    apart = (items[question],) if question is not None and question < at else ()
    return (summary_note(text), *apart, *items[at:])
