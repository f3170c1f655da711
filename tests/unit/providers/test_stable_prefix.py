"""A request repeats the one before it from the first byte, so that providers' prompt caches hit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    Item,
    ModelRequest,
    ToolCall,
    ToolResultItem,
    ToolSpec,
    UserItem,
)
from hermes.providers.anthropic.translate import render as render_anthropic
from hermes.providers.openai.translate import render as render_openai

SPECS = tuple(
    ToolSpec(
        f"tool_{n}", "Does something of use.", {"type": "object", "properties": {"path": {"type": "string"}}}
    )
    for n in range(4)
)
DIALECTS: Mapping[str, Callable[[ModelRequest], dict[str, Any]]] = {
    "openai": render_openai,
    "anthropic": lambda request: render_anthropic(request, caching=True),
}
WORDS = st.text(min_size=1, max_size=4000).filter(str.strip)


@st.composite
def exchanges(draw: st.DrawFn) -> list[tuple[Item, ...]]:
    """What is added between one call and the next: answers with their results, or a person's next words."""
    added: list[tuple[Item, ...]] = [(UserItem(draw(WORDS)),)]
    for number in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            calls = tuple(
                ToolCall(
                    f"c{number}.{n}", draw(st.sampled_from(SPECS)).name, json.dumps({"path": draw(WORDS)})
                )
                for n in range(draw(st.integers(1, 3)))
            )
            results = tuple(ToolResultItem(call.call_id, call.name, draw(WORDS)) for call in calls)
            said = AssistantItem(draw(st.just("") | WORDS), calls, FinishReason.TOOL_CALLS, "main", "m")
            steered = (UserItem(draw(WORDS)),) if draw(st.booleans()) else ()
            added.append((said, *results, *steered))
        else:
            added.append(
                (AssistantItem(draw(WORDS), (), FinishReason.STOP, "main", "m"), UserItem(draw(WORDS)))
            )
    return added


@pytest.mark.parametrize("dialect", DIALECTS)
@given(exchanges())
def test_two_consecutive_requests_share_all_but_the_end_of_the_first(
    dialect: str, added: list[tuple[Item, ...]]
) -> None:
    items: tuple[Item, ...] = ()
    earlier = ""
    for more in added:
        items += more
        body = DIALECTS[dialect](ModelRequest("m", "You are Hermes.", items, SPECS))
        now = json.dumps([body["tools"], body["messages"]], sort_keys=True, ensure_ascii=False)
        kept = len(earlier) - 8  # but for the brackets that close the last message
        assert now[: max(0, kept)] == earlier[: max(0, kept)]
        earlier = now
