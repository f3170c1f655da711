"""Every error that the libraries can raise has a place in the facts; a new one makes a test fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import aiohttp
import anthropic
import httpx2
import openai
import pytest

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.providers.aiohttp_transport import translated
from hermes.providers.anthropic import failures as of_anthropic
from hermes.providers.facts import CallProgress, UnmappedCounts, chain
from hermes.providers.openai import failures as of_openai

pytestmark = pytest.mark.wire

FactsOf = Callable[[Exception, CallProgress], FailureFacts]
BOTH = pytest.mark.parametrize(
    ("sdk", "facts_of"),
    [(openai, of_openai.facts_of), (anthropic, of_anthropic.facts_of)],
    ids=["openai", "anthropic"],
)
REQUEST = httpx2.Request("POST", "http://model.invalid/")


def below(kind: type[Exception]) -> Iterator[type[Exception]]:
    for child in kind.__subclasses__():
        yield child
        yield from below(child)


def bare(kind: type[Exception]) -> Exception:
    """An error of ``kind``, made without what its constructor wants."""
    named = type(kind.__name__, (kind,), {"__str__": lambda self: "text"})
    made = named.__new__(named)
    assert isinstance(made, Exception)
    return made


@pytest.mark.parametrize("kind", sorted(set(below(aiohttp.ClientError)), key=lambda kind: kind.__name__))
@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
def test_each_error_of_aiohttp_becomes_one_of_httpx2(kind: type[Exception], answered: bool) -> None:
    assert isinstance(translated(bare(kind), REQUEST, answered), httpx2.TransportError)


@BOTH
@pytest.mark.parametrize("kind", sorted(set(below(httpx2.RequestError)), key=lambda kind: kind.__name__))
@pytest.mark.parametrize("phase", [Phase.REQUEST, Phase.STREAM])
def test_each_error_of_httpx2_is_known(
    sdk: ModuleType, facts_of: FactsOf, kind: type[Exception], phase: Phase
) -> None:
    wrapped = sdk.APIConnectionError(request=REQUEST)
    wrapped.__cause__ = bare(kind)
    for error in (wrapped, bare(kind)):
        assert facts_of(error, CallProgress("main", "m", phase)).kind is not FaultKind.UNMAPPED


@BOTH
@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 408, 409, 412, 413, 418, 422, 429, 431, 499,
                                    500, 501, 502, 503, 504, 529, 599])
def test_each_status_is_a_status(sdk: ModuleType, facts_of: FactsOf, status: int) -> None:
    response = httpx2.Response(status, json={"error": {"message": "no"}}, request=REQUEST)
    client = sdk.OpenAI(api_key="k") if sdk is openai else sdk.Anthropic(api_key="k")
    error = client._make_status_error_from_response(response)
    client.close()
    facts = facts_of(error, CallProgress("main", "m"))
    assert (facts.kind, facts.status, facts.message) == (FaultKind.HTTP_STATUS, status, "no")


@BOTH
def test_what_the_sdks_own_streams_raise_is_known_too(sdk: ModuleType, facts_of: FactsOf) -> None:
    call = CallProgress("main", "m", Phase.STREAM)
    body: dict[str, Any] = {"message": "boom", "type": "server_error"}
    assert facts_of(sdk.APIError("boom", REQUEST, body=body), call).kind is FaultKind.ERROR_EVENT
    assert facts_of(sdk.APITimeoutError(REQUEST), call).kind is FaultKind.FIRST_BYTE_TIMEOUT
    assert facts_of(sdk.APIConnectionError(request=REQUEST), call).kind is FaultKind.RESET
    response = httpx2.Response(200, json={}, request=REQUEST)
    assert facts_of(sdk.APIResponseValidationError(response, None), call).kind is FaultKind.BAD_JSON
    with pytest.raises(json.JSONDecodeError) as garbage:
        json.loads("{oops")
    assert facts_of(garbage.value, call).kind is FaultKind.BAD_JSON


def test_anthropics_error_under_200_is_an_error_event() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    response = httpx2.Response(200, json=body, request=REQUEST)
    error = anthropic.APIStatusError("Overloaded", response=response, body=body)
    facts = of_anthropic.facts_of(error, CallProgress("main", "m", Phase.STREAM))
    assert (facts.kind, facts.type) == (FaultKind.ERROR_EVENT, "overloaded_error")


@BOTH
@pytest.mark.parametrize("error", [TypeError("no auth"), ValueError("bad header")], ids=["type", "value"])
def test_what_is_refused_before_sending_is_an_invalid_request(
    sdk: ModuleType, facts_of: FactsOf, error: Exception
) -> None:
    facts = facts_of(error, CallProgress("main", "m"))
    assert (facts.kind, facts.phase) == (FaultKind.REQUEST_INVALID, Phase.REQUEST)


@pytest.mark.parametrize("module", [of_openai, of_anthropic], ids=["openai", "anthropic"])
def test_an_error_that_nobody_knows_is_counted_by_its_type(module: ModuleType) -> None:
    class Surprise(Exception):
        pass

    with pytest.raises(ProviderFailure) as caught, module.failures_as_facts(CallProgress("main", "m")):
        raise Surprise("well") from KeyError("root")
    facts = caught.value.facts
    assert (facts.kind, facts.causes) == (FaultKind.UNMAPPED, ("KeyError",))
    assert facts.exception is not None
    assert module.UNMAPPED.counts()[facts.exception] == 1


def test_kinds_of_unknown_errors_are_bounded() -> None:
    counts = UnmappedCounts()
    for number in range(UnmappedCounts.LIMIT + 50):
        counts.add(f"module.Error{number}")
    assert len(counts.counts()) == UnmappedCounts.LIMIT + 1
    assert counts.counts()["other"] == 50


def test_only_explicit_causes_are_followed_and_never_in_circles() -> None:
    first, second = ValueError("1"), KeyError("2")
    first.__context__ = OSError("unrelated")
    assert list(chain(first)) == [first]
    first.__cause__, second.__cause__ = second, first
    assert list(chain(first)) == [first, second]
