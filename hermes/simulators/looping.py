"""Models that cannot stop: endless tool calls in the ways in which real models loop."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from hermes.simulators.answers import Answer, tool_call

__all__ = ["Habit", "looping", "read_habit"]


class Habit(Enum):
    """What each answer asks for; none of them ever listens to a result."""

    REPEAT = "repeat"
    """All the calls given, in every answer."""
    ALTERNATE = "alternate"
    """One of the calls given, in turn: A, B, A, B …"""
    SIBLINGS = "siblings"
    """The first call, `width` times in every answer, `{n}` in its arguments being another number each time."""


def looping(
    habit: Habit, calls: Sequence[tuple[str, Mapping[str, Any]]], *, width: int = 1
) -> Iterator[Answer]:
    """The answers of a model with this habit, without end. Raises ValueError without a call or width."""
    if not calls or width < 1:
        raise ValueError("a habit takes at least one call, and a width of at least 1")

    def answer(number: int) -> Answer:
        match habit:
            case Habit.REPEAT:
                chosen = [call for call in calls for _ in range(width)]
            case Habit.ALTERNATE:
                chosen = [calls[number % len(calls)]]
            case Habit.SIBLINGS:
                name, arguments = calls[0]
                chosen = [(name, _filled(arguments, number * width + at)) for at in range(width)]
        (name, arguments), *more = chosen
        return tool_call(name, arguments, *more)

    return map(answer, itertools.count())


def read_habit(order: Mapping[str, Any]) -> Iterator[Answer]:
    """From JSON: `{"habit": "siblings", "calls": [["read_file", {"path": "{n}.txt"}]], "width": 5}`. Raises
    ValueError."""
    if unknown := sorted(set(order) - {"habit", "calls", "width"}):
        raise ValueError(f"a habit has no {', '.join(unknown)}; it takes habit, calls, width")
    calls = [(str(name), dict(arguments)) for name, arguments in order.get("calls", ())]
    return looping(Habit(order.get("habit", "repeat")), calls, width=int(order.get("width", 1)))


def _filled(arguments: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    filled: dict[str, Any] = json.loads(json.dumps(arguments).replace("{n}", str(number)))
    return filled
