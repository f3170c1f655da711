"""A transcript as a dialect will accept it (promise 6: validated again before each call).

Only the request is mended; what is stored stays as it is. One unpaired call or result would otherwise
be refused for ever and break the session for good.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import assert_never

from hermes.core.transcript import (
    AssistantItem,
    Item,
    ToolCall,
    ToolResultItem,
    ToolStatus,
    UserItem,
)
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

OUTCOME_UNKNOWN = (
    "Outcome unknown: this call was started and its result was lost. It may or may not have taken effect. "
    "Check before you repeat it."
)


def legal(items: Sequence[Item]) -> tuple[Item, ...]:
    """``items`` in which each call is followed at once by exactly one result, in the order of the calls.

    Orphan and repeated results are left out; a call without a result gets ``OUTCOME_UNKNOWN``;
    assistant items that say nothing are left out.
    """
    out: list[Item] = []
    for index, item in enumerate(items):
        match item:
            case UserItem():
                out.append(item)
            case AssistantItem():
                if item.text.strip() or item.tool_calls:
                    out.append(item)
                    out.extend(_results(item.tool_calls, items, index))
            case ToolResultItem():
                pass
            case _:
                assert_never(item)
    return tuple(out)


def tell_if_illegal(problems: Sequence[str], provider: str, model: str) -> None:
    """A request that its dialect refuses is a fault of ours: told, and sent, since only the server can be sure."""
    if problems:
        log.error("request_not_legal", provider=provider, model=model, problems=list(problems[:5]))


def _results(calls: tuple[ToolCall, ...], items: Sequence[Item], index: int) -> list[ToolResultItem]:
    if not calls:
        return []
    found: dict[str, ToolResultItem] = {}
    for item in items[index + 1 :]:
        if isinstance(item, AssistantItem):
            break
        if isinstance(item, ToolResultItem):
            found.setdefault(item.call_id, item)
    return [
        found.get(call.call_id)
        or ToolResultItem(call.call_id, call.name, OUTCOME_UNKNOWN, ToolStatus.UNKNOWN)
        for call in calls
    ]


def arguments_object(call: ToolCall) -> Mapping[str, object]:
    """The call's arguments as the object that dialects demand; what is none is shown as the text it was."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"not_json": call.arguments}


def told_in_words(items: Sequence[Item]) -> tuple[Item, ...]:
    """Legal ``items`` with calls and results told as text, for a request that offers no tools: some
    servers refuse tool blocks then."""
    out: list[Item] = []
    for item in items:
        match item:
            case AssistantItem() if item.tool_calls:
                calls = (f"[called {call.name} with {call.arguments}]" for call in item.tool_calls)
                text = "\n".join(filter(None, (item.text, *calls)))
                out.append(AssistantItem(text, (), item.finish, item.provider, item.model))
            case ToolResultItem():
                out.append(UserItem(f"[result of {item.name}]\n{item.text}", note=True, images=item.images))
            case _:
                out.append(item)
    return tuple(out)
