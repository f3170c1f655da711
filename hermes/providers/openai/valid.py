"""What a server of this dialect would refuse in a request's messages; looked at before they are sent.

Source: the vendor's refusals, and the Jinja templates of local servers, whose roles must alternate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def problems(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """In words, with the message's place; empty: it will not be refused for its form."""
    found: list[str] = []
    waiting: list[str] = []
    spoke = ""
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"{place}: a result without its call")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            found.append(f"{place}: calls without a result: {', '.join(waiting)}")
        calls = message.get("tool_calls") or []
        waiting = [call["id"] for call in calls]
        found += _of_calls(place, calls)
        if role == "system":
            if place:
                found.append(f"{place}: a system message in the middle")
        elif not calls:
            if not message.get("content"):
                found.append(f"{place}: an empty message")
            if role == spoke or (role == "assistant" and not spoke):
                found.append(f"{place}: roles do not alternate")
            spoke = role
    if waiting:
        found.append(f"{len(messages)}: calls without a result: {', '.join(waiting)}")
    if not any(message["role"] == "user" for message in messages):
        found.append("no user message")
    return tuple(found)


def _of_calls(place: int, calls: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    if len({call["id"] for call in calls}) != len(calls):
        found.append(f"{place}: two calls of one id")
    for call in calls:
        try:
            whole = isinstance(json.loads(call["function"]["arguments"]), dict)
        except ValueError:
            whole = False
        if not whole:
            found.append(f"{place}: arguments that are no JSON object")
    return found
