"""Whether a transcript is legal (promise 6): each call exactly one result, at once, and a person's words in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hermes.core.transcript import AssistantItem, Item, ToolResultItem, UserItem


def problems(items: Sequence[Item], *, settled: bool = True) -> tuple[str, ...]:
    """What is wrong, in words; empty: legal. ``settled``: calls at the end have their results too.

    Source: the refusals of both vendors' APIs, and the chat templates of local servers.
    """
    found: list[str] = []
    waiting: dict[str, str] = {}
    done: set[str] = set()
    spoken = False
    for place, item in enumerate(items):
        match item:
            case ToolResultItem():
                if item.call_id in waiting:
                    done.add(item.call_id)
                    del waiting[item.call_id]
                else:
                    what = "a second result of" if item.call_id in done else "a result without its call"
                    found.append(f"{place}: {what} {item.call_id!r}")
                continue
            case AssistantItem():
                found += _unanswered(place, waiting)
                waiting = {call.call_id: call.name for call in item.tool_calls}
                if len(waiting) != len(item.tool_calls):
                    found.append(f"{place}: two calls of one id")
            case UserItem():
                found += _unanswered(place, waiting)
                waiting, spoken = {}, True
            case _:
                assert_never(item)
        done = set()
    if settled:
        found += _unanswered(len(items), waiting)
    if not spoken:
        found.append("nobody has said anything")
    return tuple(found)


def _unanswered(place: int, waiting: dict[str, str]) -> list[str]:
    return [f"{place}: the call {call!r} of {name} has no result" for call, name in waiting.items()]
