"""Each repair of a request, over both SDKs, with the exact number of requests it costs and what it teaches."""

from __future__ import annotations

import pytest

from hermes.core.transcript import AssistantItem, ToolSpec, UserItem
from hermes.simulators.faults import ApiError
from hermes.store.database import InlineDatabase
from tests.wire.repairs.counter import counter

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", ["openai", "anthropic"])]

SEARCH = ToolSpec(
    "search", "Finds text.",
    {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "^a", "format": "regex"}}},
)  # fmt: skip
GRAMMAR = ApiError(400, "Unable to generate parser for this template: failed to parse grammar", "invalid_request_error")


def schema_of(body: dict[str, object]) -> object:
    [tool] = body["tools"]  # type: ignore[misc]
    return tool.get("input_schema") or tool["function"]["parameters"]


async def test_a_grammar_refusal_is_cured_by_plain_schemas_and_remembered(dialect: str) -> None:
    disk = InlineDatabase()
    async with counter(dialect, db=disk) as it:
        it.sim.script(GRAMMAR)
        await it.answer(tools=(SEARCH,))
        assert len(it.sim.requests) == 2
        plain = {"type": "object", "properties": {"pattern": {"type": "string"}}}
        assert [schema_of(request.body) for request in it.sim.requests] == [dict(SEARCH.parameters), plain]
        await it.answer(tools=(SEARCH,))
        assert schema_of(it.sim.requests[2].body) == plain, "learned"
    async with counter(dialect, db=disk) as it:
        await it.answer(tools=(SEARCH,))
        assert schema_of(it.sim.requests[0].body) == plain, "learned across a restart"
        assert await it.learned.clear("main/some-model") >= 1
        await it.answer(tools=(SEARCH,))
        assert schema_of(it.sim.requests[1].body) != plain, "forgotten"


async def test_nothing_is_learned_from_a_repair_that_did_not_help(dialect: str) -> None:
    async with counter(dialect) as it:
        it.sim.script(GRAMMAR, GRAMMAR)
        with pytest.raises(AssertionError):
            await it.answer(tools=(SEARCH,))
        assert len(it.sim.requests) == 2
        assert it.learned.all() == []


async def test_signed_thoughts_are_left_out_of_the_request_once_refused(dialect: str) -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "bad"}
    opaque = ({"origin": "anthropic", "block": block},)
    thought = AssistantItem("yes", provider="main", model="some-model", opaque=opaque)
    refusal = ApiError(400, "messages.1.content.0: Invalid `signature` in `thinking` block", "invalid_request_error")
    async with counter(dialect) as it:
        it.sim.script(refusal)
        await it.answer(history=(UserItem("a?"), thought))
        assert len(it.sim.requests) == 2
        assert "signature" not in str(it.sim.requests[1].body)
        assert thought.opaque, "the history keeps them"


async def test_a_refused_context_tier_lowers_the_window_and_is_remembered(dialect: str) -> None:
    refusal = ApiError(429, "Extra usage is required for long context requests.", "rate_limit_error")
    history = tuple(UserItem("word " * 8000) for _ in range(40))
    async with counter(dialect, context_window=1_000_000) as it:
        it.sim.script(refusal)
        await it.answer(history=history)
        sizes = [len(str(request.body)) for request in it.sim.requests]
        assert len(sizes) == 2
        assert sizes[1] < 200_000 * 4 < sizes[0]
        await it.answer(history=history)
        assert len(it.sim.requests) == 3
        assert {fact.key for fact in it.learned.all()} == {"context_window", "vocabulary"}


async def test_a_stated_output_cap_is_obeyed_and_remembered(dialect: str) -> None:
    text = "max_tokens is too large: 8000. This model supports at most 4096 completion tokens."
    if dialect == "anthropic":
        text = "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for some-model"
    async with counter(dialect, max_output=8000) as it:
        it.sim.script(ApiError(400, text, "invalid_request_error"))
        await it.answer()
        await it.answer()
        assert [request.body["max_tokens"] for request in it.sim.requests] == [8000, 4096, 4096]
