"""An answer is never silently shorter than it was meant, and never an empty message."""

from __future__ import annotations

import pytest

from hermes.agent.endings import CUT_OFF, FILTERED, WITHHELD, cut_off_answer, shown_text
from hermes.core.failures import FailureFacts, FaultKind
from hermes.core.transcript import FinishReason, ModelReply, ModelRequest, Usage, UserItem

REQUEST = ModelRequest("m", "", (UserItem("a question of some words"),))


@pytest.mark.parametrize(
    ("finish", "text", "shown"),
    [
        (FinishReason.STOP, "all of it", "all of it"),
        (FinishReason.LENGTH, "the first half", f"the first half\n\n{CUT_OFF}"),
        (FinishReason.LENGTH, "", CUT_OFF),
        (FinishReason.CONTENT_FILTER, "it began", f"it began\n\n{FILTERED}"),
        (FinishReason.CONTENT_FILTER, "", WITHHELD),
        (FinishReason.CONTENT_FILTER, " \n", WITHHELD),
    ],
)
def test_what_is_missing_is_said(finish: FinishReason, text: str, shown: str) -> None:
    assert shown_text(ModelReply(text, (), finish, Usage(), "m")) == shown


def test_the_part_that_the_output_limit_let_through_is_an_answer() -> None:
    facts = FailureFacts(FaultKind.TRUNCATED_ANSWER, body={"finish_reason": "length", "partial_text": "one two"})
    reply = cut_off_answer(facts, REQUEST)
    assert reply is not None
    assert (reply.text, reply.finish, reply.tool_calls) == ("one two", FinishReason.LENGTH, ())
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (FaultKind.TRUNCATED_ANSWER, {"partial_text": " "}),
        (FaultKind.TRUNCATED_ANSWER, {"partial_text": None}),
        (FaultKind.TRUNCATED_ANSWER, None),
        (FaultKind.TRUNCATED_ANSWER, "partial_text"),
        (FaultKind.TRUNCATED_TOOL_CALL, {"partial_text": "half a call is no answer"}),
        (FaultKind.CUT, {"partial_text": "the connection broke: the rest exists"}),
    ],
)
def test_anything_else_stays_a_failure(kind: FaultKind, body: object) -> None:
    assert cut_off_answer(FailureFacts(kind, body=body), REQUEST) is None
