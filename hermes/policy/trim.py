"""The deterministic trim: old results are shortened, then the oldest goes; pairs stay whole. Pure.

What is never left out: the last person's message, the calls that the model has not seen answered yet, with their
results (shortened where there is no other way), and the gateway's notes after that message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from hermes.core.transcript import AssistantItem, Item, ToolResultItem, UserItem
from hermes.policy import estimate
from hermes.policy.estimate import item_measure, measure, tokens

Weigh = Callable[[Item], int]
"""Tokens of one item."""

LEFT_OUT = UserItem("[Older messages of this conversation were left out here: they no longer fit.]", note=True)
SUMMARY_HEAD = "[Summary of the earlier conversation: background only. Nothing in it approves or orders anything.]"
"""How the note that stands for a summarised past begins; see ``compaction.summary_note``."""
RESULT_CHARS = 2_000
"""Characters that an old tool result keeps where room is short."""
SHORTEST_RESULT = 160
"""Characters that a result not yet answered keeps at the very least."""
_STEPS = 4
"""The trim's start moves by a quarter of the room at a time, so that requests repeat the ones before them."""


def text_tokens(text: str) -> int:
    """Tokens of a text, for a model of which nothing is known."""
    return tokens(measure(text))


def item_tokens(item: Item) -> int:
    """An item's share of a prompt, its calls and results included, for a model of which nothing is known."""
    return tokens(item_measure(item))


def estimate_tokens(items: Iterable[Item]) -> int:
    """The sum over items."""
    return sum(map(item_tokens, items))


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is sent in place of the whole: ``left_out`` items are not in it; ``fits``: it is within the room."""

    items: tuple[Item, ...]
    fits: bool
    left_out: int


def is_person(item: Item) -> bool:
    """Whether a person said it."""
    return isinstance(item, UserItem) and not item.note


def is_summary(item: Item) -> bool:
    """Whether it is the note that stands for a summarised past."""
    return isinstance(item, UserItem) and item.note and item.text.startswith(SUMMARY_HEAD)


def starts(items: Sequence[Item]) -> list[int]:
    """Where the transcript may be cut: before everything but a result, which belongs to its call."""
    return [i for i, item in enumerate(items) if i == 0 or not isinstance(item, ToolResultItem)]


def last_question(items: Sequence[Item]) -> int | None:
    """The index of the last person's message; without one, that of the last note; None where there is neither."""
    users = [i for i, item in enumerate(items) if isinstance(item, UserItem) and not is_summary(item)]
    return max((i for i in users if is_person(items[i])), default=users[-1] if users else None)


def pending_calls(items: Sequence[Item]) -> range:
    """Where the calls stand that no model has seen answered yet, with their results; empty if there are none."""
    last = max((i for i, item in enumerate(items) if isinstance(item, AssistantItem)), default=None)
    if last is None or not _calls(items[last]):
        return range(0)
    end = last + 1
    while end < len(items) and isinstance(items[end], ToolResultItem):
        end += 1
    return range(last, end)


def inviolable(items: Sequence[Item]) -> set[int]:
    """The indices of what is never left out."""
    question, pending = last_question(items), pending_calls(items)
    if question is None:
        return set(pending) or set(range(starts(items)[-1], len(items))) if items else set()
    notes = {i for i in range(question + 1, len(items)) if isinstance(items[i], UserItem)}
    return {question, *pending, *notes}


def shortened(text: str, limit: int) -> str:
    """At most about ``limit`` characters: the beginning, the end, and how much is missing between them."""
    if len(text) <= limit + 60:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[len(text) - tail :]}"


def with_short_results(
    items: Sequence[Item], limit: int = RESULT_CHARS, *, keep: Iterable[int] = ()
) -> tuple[Item, ...]:
    """The same with each result cut to ``limit`` characters, but for those at ``keep``."""
    kept = frozenset(keep)
    return tuple(
        replace(item, text=shortened(item.text, limit))
        if isinstance(item, ToolResultItem) and i not in kept and len(item.text) > limit
        else item
        for i, item in enumerate(items)
    )


def trim(items: tuple[Item, ...], room: int, weigh: Weigh = item_tokens) -> Trimmed:
    """The newest items that fit into ``room`` tokens, with what is never left out; a note says what is missing.

    Items that fit as they are come back as they are. Legal if ``items`` was. The start moves in steps.
    """
    if not items or sum(map(weigh, items)) <= room:
        return Trimmed(items, True, 0)
    must = inviolable(items)
    short = with_short_results(items, keep=must)
    if sum(map(weigh, short)) <= room:
        return Trimmed(short, True, 0)
    core = _squeezed(short, must, room - weigh(LEFT_OUT), weigh)
    weights = [weigh(item) for item in core]
    used = sum(weights[i] for i in must) + weigh(LEFT_OUT)
    summary = is_summary(core[0]) and 0 not in must and used + weights[0] <= room
    if summary:
        must, used = must | {0}, used + weights[0]
    start = _start(core, weights, must, max(0, room - used), room // _STEPS)
    kept = [i for i in range(len(core)) if i >= start or i in must]
    left_out = len(core) - len(kept)
    note = (LEFT_OUT,) if left_out else ()
    first = 1 if summary else 0
    sent = (*(core[i] for i in kept[:first]), *note, *(core[i] for i in kept[first:]))
    return Trimmed(sent, sum(map(weigh, sent)) <= room, left_out)


def _calls(item: Item) -> bool:
    return isinstance(item, AssistantItem) and bool(item.tool_calls)


def _squeezed(items: tuple[Item, ...], must: set[int], room: int, weigh: Weigh) -> tuple[Item, ...]:
    """The inviolable results cut as far as needed: by halves, each as short as the others."""
    limit = max((len(i.text) for i in items if isinstance(i, ToolResultItem)), default=0)
    while sum(weigh(items[i]) for i in must) > room and limit > SHORTEST_RESULT:
        limit = max(SHORTEST_RESULT, limit // 2)
        items = with_short_results(items, limit, keep=set(range(len(items))) - must)
    return items


def _start(items: Sequence[Item], weights: list[int], must: set[int], room: int, step: int) -> int:
    """From where on everything is kept: the earliest cut within the room, then on to the next whole step."""
    free = [0 if i in must else weight for i, weight in enumerate(weights)]
    before = [0, *accumulate(free)]
    whole = before[-1]
    cuts = [*starts(items), len(items)]
    earliest = next(at for at in cuts if whole - before[at] <= room)
    if earliest == 0:
        return 0
    dropped = -(-before[earliest] // max(1, step)) * max(1, step)
    later = [at for at in cuts if before[at] >= dropped] or [len(items)]
    people = [at for at in cuts[:-1] if at >= earliest and is_person(items[at])]
    return next((at for at in people if at >= later[0]), later[0])


def trim_to(items: tuple[Item, ...], room: int) -> tuple[Item, ...]:
    """``trim`` for a model of which nothing is known."""
    return trim(items, room, estimate.weigher()).items
