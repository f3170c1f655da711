"""Answers that end otherwise than by the model's own full stop, and what the person is told about it."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.failures import FailureFacts, FaultKind
from hermes.core.transcript import FinishReason, ModelReply, ModelRequest, Usage
from hermes.policy.trim import estimate_tokens, text_tokens

CUT_OFF = "[The answer ends here: the model's output limit was reached.]"
FILTERED = "[The answer ends here: the provider's content filter stopped it.]"
WITHHELD = (
    "The model's provider withheld the answer (its content filter decided so), and nothing was said. "
    "Asking in other words may help."
)


def cut_off_answer(facts: FailureFacts, request: ModelRequest) -> ModelReply | None:
    """The part of an answer that the output limit let through, as an answer; None where there is none.

    The same request would be cut off again at the same place, so the part is worth more than a retry. What the
    provider did not count is estimated.
    """
    if facts.kind is not FaultKind.TRUNCATED_ANSWER or not isinstance(facts.body, Mapping):
        return None
    text = facts.body.get("partial_text")
    if not isinstance(text, str) or not text.strip():
        return None
    usage = Usage(counted_input(facts) or estimate_tokens(request.items), text_tokens(text))
    return ModelReply(text, (), FinishReason.LENGTH, usage, request.model)


def counted_input(facts: FailureFacts) -> int:
    """Input tokens that the provider counted for a cut-off answer; 0 = it did not say."""
    counted = facts.body.get("input_tokens") if isinstance(facts.body, Mapping) else None
    return counted if isinstance(counted, int) else 0


def shown_text(reply: ModelReply) -> str:
    """The answer's text as the person reads it: never empty, and never silently shorter than it was meant."""
    match reply.finish:
        case FinishReason.LENGTH:
            return f"{reply.text}\n\n{CUT_OFF}".strip()
        case FinishReason.CONTENT_FILTER:
            return f"{reply.text}\n\n{FILTERED}" if reply.text.strip() else WITHHELD
        case _:
            return reply.text
