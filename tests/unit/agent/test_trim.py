"""Leaving out the oldest part keeps the question, the pairs of calls and results, and the order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, UserItem
from hermes.policy.trim import estimate_tokens, text_tokens, trim_to

WORDS = st.text(max_size=200)


@st.composite
def legal(draw: st.DrawFn) -> tuple[Item, ...]:
    """Exchanges: a person's words, some acted steps, an answer (the last one may be under way)."""
    items: list[Item] = []
    for exchange in range(draw(st.integers(0, 5))):
        items.append(UserItem(draw(WORDS)))
        for step in range(draw(st.integers(0, 2))):
            calls = tuple(ToolCall(f"{exchange}.{step}.{n}", "t", "{}") for n in range(draw(st.integers(1, 2))))
            items.append(AssistantItem("", calls))
            items += [ToolResultItem(c.call_id, "t", draw(WORDS)) for c in calls]
        if draw(st.booleans()):
            items.append(UserItem("edited", note=True))
        if draw(st.booleans()):
            items.append(AssistantItem(draw(WORDS)))
    return tuple(items)


@given(items=legal(), room=st.integers(0, 2000))
def test_what_is_kept_is_the_end_of_what_was_there(items: tuple[Item, ...], room: int) -> None:
    kept = trim_to(items, room)
    assert kept == items[len(items) - len(kept) :]
    people = [i for i, item in enumerate(items) if isinstance(item, UserItem) and not item.note]
    if not people:
        assert kept == items
        return
    assert isinstance(kept[0], UserItem)
    assert not kept[0].note
    assert len(kept) >= len(items) - people[-1], "the last question and what follows it stay"
    if len(kept) > len(items) - people[-1]:
        assert estimate_tokens(kept) <= room
    calls = {c.call_id for i in kept if isinstance(i, AssistantItem) for c in i.tool_calls}
    assert {i.call_id for i in kept if isinstance(i, ToolResultItem)} == calls


@given(items=legal(), smaller=st.integers(0, 1000), more=st.integers(0, 1000))
def test_more_room_never_keeps_less(items: tuple[Item, ...], smaller: int, more: int) -> None:
    assert len(trim_to(items, smaller)) <= len(trim_to(items, smaller + more))


@given(one=WORDS, other=WORDS)
def test_an_estimate_grows_with_the_text(one: str, other: str) -> None:
    assert 1 <= text_tokens(one) <= text_tokens(one + other) <= len(one + other) + 1


def test_a_chinese_text_is_not_taken_for_a_quarter_of_its_tokens() -> None:
    assert text_tokens("图书馆" * 100) >= 300
    assert text_tokens("word" * 100) <= 120
