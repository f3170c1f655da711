"""Any exception of a call through the openai SDK, as facts (R26). Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import openai

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.providers.facts import (
    CallProgress,
    UnmappedCounts,
    facts_of_body,
    facts_of_status,
    facts_of_wire,
    unmapped,
)

UNMAPPED = UnmappedCounts()


@contextmanager
def failures_as_facts(call: CallProgress) -> Iterator[None]:
    """Raises ProviderFailure for whatever fails inside; cancellation passes."""
    try:
        yield
    except ProviderFailure:
        raise
    except Exception as error:  # R26: the adapter's one broad handler
        raise ProviderFailure(facts_of(error, call)) from error


def facts_of(error: Exception, call: CallProgress) -> FailureFacts:
    """What ``error`` tells about ``call``. Never raises."""
    match error:
        case openai.APIStatusError():
            return facts_of_status(error.response, call, error)
        case openai.APIResponseValidationError():
            return facts_of_body(error, call, FaultKind.BAD_JSON, error.body)
        case json.JSONDecodeError():
            return facts_of_body(error, call, FaultKind.BAD_JSON, error.doc[:4000])
    if facts := facts_of_wire(error, call):
        return facts
    match error:
        case openai.APITimeoutError():
            return facts_of_body(error, call, FaultKind.FIRST_BYTE_TIMEOUT, None, Phase.FIRST_BYTE)
        case openai.APIConnectionError():
            return facts_of_body(error, call, FaultKind.RESET, None, Phase.FIRST_BYTE)
        case openai.APIError():
            return facts_of_body(error, call, FaultKind.ERROR_EVENT, error.body, Phase.STREAM)
        case openai.OpenAIError() | TypeError() | ValueError() if call.phase is Phase.REQUEST:
            return facts_of_body(error, call, FaultKind.REQUEST_INVALID, None, Phase.REQUEST)
    return unmapped(error, call, UNMAPPED)
