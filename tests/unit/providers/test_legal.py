"""A transcript is mended in the request, whatever is stored."""

from __future__ import annotations

from hypothesis import given

from hermes.core.transcript import (
    AssistantItem,
    Item,
    ToolCall,
    ToolResultItem,
    ToolStatus,
    UserItem,
)
from hermes.providers.legal import OUTCOME_UNKNOWN, arguments_object, legal, told_in_words
from tests.unit.providers.items import ITEMS

CALL, OTHER = ToolCall("c1", "read_file", "{}"), ToolCall("c2", "shell", "{}")
ASKS = AssistantItem("", (CALL, OTHER))
ONE, TWO = ToolResultItem("c1", "read_file", "one"), ToolResultItem("c2", "shell", "two")


@given(ITEMS)
def test_each_call_is_followed_at_once_by_its_one_result(items: tuple[Item, ...]) -> None:
    due: list[str] = []
    for item in legal(items):
        if isinstance(item, ToolResultItem):
            assert item.call_id == due.pop(0)
            continue
        assert not due
        if isinstance(item, AssistantItem):
            due = [call.call_id for call in item.tool_calls]
    assert not due


@given(ITEMS)
def test_what_is_legal_stays_as_it_is(items: tuple[Item, ...]) -> None:
    assert legal(legal(items)) == legal(items)


@given(ITEMS)
def test_no_word_of_a_person_is_lost(items: tuple[Item, ...]) -> None:
    said = [item for item in items if isinstance(item, UserItem)]
    assert [item for item in legal(items) if isinstance(item, UserItem)] == said


def test_a_call_whose_result_was_lost_has_an_unknown_outcome() -> None:
    mended = legal((UserItem("go"), ASKS, TWO, UserItem("well?")))
    assert mended[2] == ToolResultItem("c1", "read_file", OUTCOME_UNKNOWN, ToolStatus.UNKNOWN)
    assert mended[3:] == (TWO, UserItem("well?"))


def test_results_move_up_to_their_calls_before_a_word_in_between() -> None:
    mended = legal((ASKS, TWO, UserItem("an edit", note=True), ONE))
    assert mended == (ASKS, ONE, TWO, UserItem("an edit", note=True))


def test_a_result_does_not_answer_a_later_question() -> None:
    again = AssistantItem("", (CALL,))
    mended = legal((ASKS, ONE, TWO, again, UserItem("?")))
    assert isinstance(mended[4], ToolResultItem)
    assert mended[4].status is ToolStatus.UNKNOWN


def test_answers_that_say_nothing_are_left_out() -> None:
    assert legal((UserItem("hi"), AssistantItem(" \n"), UserItem("hm?"))) == (UserItem("hi"), UserItem("hm?"))


def test_without_tools_calls_and_results_are_told_in_words() -> None:
    told = told_in_words(legal((UserItem("go"), ASKS, ONE, TWO)))
    assert not any(isinstance(item, ToolResultItem) for item in told)
    assert "[called read_file with {}]" in told[1].text
    assert "one" in told[2].text


def test_arguments_that_are_no_object_are_shown_as_they_were() -> None:
    assert arguments_object(ToolCall("c", "t", '{"a": 1}')) == {"a": 1}
    assert arguments_object(ToolCall("c", "t", "")) == {}
    assert arguments_object(ToolCall("c", "t", "{oops")) == {"not_json": "{oops"}
    assert arguments_object(ToolCall("c", "t", "[1]")) == {"not_json": "[1]"}
    assert arguments_object(ToolCall("c", "t", "[" * 100_000)) == {"not_json": "[" * 100_000}
