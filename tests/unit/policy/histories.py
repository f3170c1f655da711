"""Legal transcripts of all sizes and scripts, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, ToolStatus, UserItem
from hermes.policy.compaction import summary_note

__all__ = ["WORDS", "legal"]

_BITS = st.sampled_from(
    [
        "hello ",
        "word ",
        "图书馆开门",
        "def f(x):\n    return x\n",
        "aGVsbG8gd29ybGQ",
        "0x1f ",
        "é",
        "🙂",
        "かな",
    ]
)
WORDS = st.builds(lambda bit, times, end: bit * times + end, _BITS, st.integers(0, 60), st.text(max_size=20))
"""Texts of up to a few hundred tokens, some of odd characters."""
_LONG = st.builds(lambda bit, times: bit * times, _BITS, st.integers(0, 3_000))


@st.composite
def legal(draw: st.DrawFn, *, exchanges: int = 6) -> tuple[Item, ...]:
    """Exchanges: a person's words, some acted steps, an answer; the last one may be under way. It may begin with
    a summary, hold notes, and calls of which the last were not answered yet."""
    items: list[Item] = [summary_note(draw(WORDS))] if draw(st.booleans()) else []
    for exchange in range(draw(st.integers(0, exchanges))):
        items.append(UserItem(draw(WORDS | _LONG)))
        for step in range(draw(st.integers(0, 3))):
            calls = tuple(
                ToolCall(f"{exchange}.{step}.{n}", "t", draw(st.sampled_from(["{}", '{"path": "a/b"}'])))
                for n in range(draw(st.integers(1, 2)))
            )
            items.append(AssistantItem(draw(WORDS), calls))
            items += [
                ToolResultItem(c.call_id, "t", draw(WORDS | _LONG), draw(st.sampled_from(ToolStatus)))
                for c in calls
            ]
            if draw(st.integers(0, 4)) == 0:
                items.append(UserItem(draw(WORDS)))  # steering
        if draw(st.integers(0, 4)) == 0:
            items.append(UserItem("edited", note=True))
        if draw(st.booleans()):
            items.append(AssistantItem(draw(WORDS)))
    return tuple(items)
