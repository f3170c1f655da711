"""Leaving out the oldest part keeps the question, the pairs of calls and results, and the order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, UserItem
from hermes.policy.trim import (
    LEFT_OUT,
    SHORTEST_RESULT,
    estimate_tokens,
    inviolable,
    is_person,
    is_summary,
    item_tokens,
    last_question,
    text_tokens,
    trim,
    with_short_results,
)
from tests.unit.policy.histories import WORDS, legal


@given(items=legal(), room=st.integers(0, 4000))
def test_what_is_sent_is_legal_and_holds_the_question(items: tuple[Item, ...], room: int) -> None:
    sent = trim(items, room).items
    asked = last_question(items)
    if asked is not None:
        assert items[asked] in sent
    waiting: list[str] = []
    for item in sent:
        if isinstance(item, ToolResultItem):
            assert item.call_id in waiting
            waiting.remove(item.call_id)
        else:
            assert not waiting, "a call lost its result"
            waiting = [c.call_id for c in item.tool_calls] if isinstance(item, AssistantItem) else []
    if asked is not None and items and isinstance(items[0], UserItem):
        assert isinstance(sent[0], UserItem)


@given(items=legal(), room=st.integers(0, 4000))
def test_it_fits_or_nothing_but_the_inviolable_is_left(items: tuple[Item, ...], room: int) -> None:
    trimmed = trim(items, room)
    assert trimmed.fits == (estimate_tokens(trimmed.items) <= room)
    if not trimmed.fits:
        must = len(inviolable(items))
        assert len(trimmed.items) <= must + 1
        for item in trimmed.items:
            assert not isinstance(item, ToolResultItem) or len(item.text) <= 2 * SHORTEST_RESULT


@given(items=legal(), room=st.integers(0, 4000))
def test_what_is_left_out_is_told_and_counted(items: tuple[Item, ...], room: int) -> None:
    trimmed = trim(items, room)
    note = LEFT_OUT in trimmed.items
    assert note == (trimmed.left_out > 0)
    lost_summary = bool(items) and is_summary(items[0]) and not is_summary(trimmed.items[0])
    assert len(trimmed.items) == len(items) - trimmed.left_out + note
    assert not (lost_summary and trimmed.left_out == 0)


def test_what_fits_is_left_alone() -> None:
    items = (UserItem("hello"), AssistantItem("hi"), UserItem("again"))
    assert trim(items, 1000).items is items


def test_a_long_tool_loop_is_shortened_behind_its_question() -> None:
    items: list[Item] = [UserItem("Read all the files.")]
    for number in range(40):
        call = ToolCall(f"c{number}", "read_file", '{"path": "a"}')
        items += [AssistantItem("", (call,)), ToolResultItem(call.call_id, call.name, "word " * 400)]
    trimmed = trim(tuple(items), 3000)
    assert trimmed.fits
    assert items[0] in trimmed.items
    assert trimmed.items[-2:] == tuple(items[-2:])


def test_a_huge_result_that_the_model_waits_for_is_shortened_and_not_dropped() -> None:
    call = ToolCall("c", "read_file", "{}")
    items = (UserItem("Read it."), AssistantItem("", (call,)), ToolResultItem("c", "read_file", "word " * 50_000))
    trimmed = trim(items, 2000)
    assert trimmed.fits
    assert [type(i) for i in trimmed.items] == [type(i) for i in items]
    assert "characters left out" in trimmed.items[-1].text


def test_an_earlier_unanswered_message_does_not_wedge_the_chat() -> None:
    items = (UserItem("word " * 50_000), UserItem("and now?"))
    trimmed = trim(items, 500)
    assert trimmed.fits
    assert trimmed.items == (LEFT_OUT, items[1])


def test_the_start_stays_where_it_is_while_the_end_grows() -> None:
    """A provider's prompt cache lives from requests that repeat the ones before them."""
    items: list[Item] = []
    firsts: list[Item] = []
    for number in range(120):
        items += [UserItem(f"question {number} " + "word " * 30), AssistantItem("answer " * 20)]
        sent = trim((*items, UserItem("now?")), 1500).items
        firsts.append(sent[1] if sent[0] == LEFT_OUT else sent[0])
    moves = sum(1 for a, b in pairwise(firsts) if a != b)
    assert 5 <= moves <= 40, "the start moves in steps, not with each message"


@given(items=legal())
def test_short_results_change_results_alone(items: tuple[Item, ...]) -> None:
    short = with_short_results(items, 100)
    assert len(short) == len(items)
    for before, after in zip(items, short, strict=True):
        assert after == before or isinstance(after, ToolResultItem)
        if isinstance(after, ToolResultItem):
            assert len(after.text) <= max(160, len(before.text))


@given(one=WORDS, other=WORDS)
def test_an_estimate_grows_with_the_text(one: str, other: str) -> None:
    assert 1 <= text_tokens(one) <= text_tokens(one + other) + 1
    assert text_tokens(one + other) <= 2 * len(one + other) + 1


def test_a_chinese_text_is_not_taken_for_a_quarter_of_its_tokens() -> None:
    assert text_tokens("图书馆" * 100) >= 300
    assert text_tokens("word " * 100) <= 120


def test_a_person_is_told_from_a_note() -> None:
    assert is_person(UserItem("hello"))
    assert not is_person(UserItem("edited", note=True))
    assert item_tokens(UserItem("hello")) < 12
