from __future__ import annotations

import pytest

from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, UserItem
from hermes.policy.history import problems

HI, DONE = UserItem("hi"), AssistantItem("done")
CALL = AssistantItem("", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")))
A, B = ToolResultItem("a", "f", "x"), ToolResultItem("b", "f", "y")


@pytest.mark.parametrize("items", [(HI,), (HI, DONE), (HI, CALL, A, B, DONE), (HI, CALL, B, A, HI), (HI, HI, DONE)])
def test_a_legal_history_has_no_problem(items: tuple[Item, ...]) -> None:
    assert problems(items) == ()


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ((), "nobody has said anything"),
        ((DONE,), "nobody has said anything"),
        ((HI, CALL, A, DONE), "the call 'b' of f has no result"),
        ((HI, CALL, A), "the call 'b' of f has no result"),
        ((HI, CALL, A, HI, B), "a result without its call"),
        ((HI, CALL, A, B, A), "a second result of 'a'"),
        ((HI, A), "a result without its call"),
        ((HI, AssistantItem("", (ToolCall("a", "f", ""), ToolCall("a", "g", ""))), A), "two calls of one id"),
    ],
)
def test_what_is_wrong_is_said(items: tuple[Item, ...], words: str) -> None:
    assert any(words in problem for problem in problems(items))


def test_calls_under_way_are_no_problem_while_they_run() -> None:
    assert problems((HI, CALL, A), settled=False) == ()
