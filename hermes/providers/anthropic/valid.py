"""What the messages API would refuse in a request's messages; looked at before they are sent.

Source: the vendor's refusals (roles alternate, a person begins, results follow their calls at once and first).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def problems(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """In words, with the message's place; empty: it will not be refused for its form."""
    found: list[str] = []
    waiting: list[str] = []
    used: set[str] = set()
    before = "assistant"
    for place, message in enumerate(messages):
        role, blocks = message["role"], message["content"]
        if role == before:
            found.append(f"{place}: roles do not alternate")
        if not blocks:
            found.append(f"{place}: an empty message")
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            found.append(f"{place}: results {results} for the calls {waiting}")
        if "tool_result" in kinds[len(results) :]:
            found.append(f"{place}: a result behind other words")
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            found.append(f"{place}: a blank text")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if used & set(waiting) or len(set(waiting)) != len(waiting):
            found.append(f"{place}: an id of a call that was used before")
        used |= set(waiting)
        before = role
    if waiting:
        found.append(f"{len(messages)}: calls without a result: {', '.join(waiting)}")
    if not any(message["role"] == "user" for message in messages):
        found.append("no user message")
    return tuple(found)
