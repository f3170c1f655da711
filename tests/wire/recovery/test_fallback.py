"""Another target over the wire: rendered anew in its own dialect, asked exactly as often as it must be."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from hermes.agent.pipeline import Pipeline, with_policy
from hermes.agent.targets import Answered, Ask, GaveUp, Target, UpstreamBook
from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, ToolSpec, UserItem
from hermes.policy.backends import Backend
from hermes.policy.recovery import RecoveryPolicy
from hermes.runtime.clock import SystemClock
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.faults import ApiError, CutStream, Fault, Overflow, Reset
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from tests.wire.recovery.bench import DIALECTS, HISTORY, QUICK, RETRIES, Screen, provider

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS)]

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


@dataclass
class Two:
    """A primary, a fallback that speaks the other dialect, and one pipeline."""

    main: ModelSimulator
    spare: ModelSimulator
    pipeline: Pipeline
    screen: Screen

    async def ask(self, text: str = "«hello»", history: tuple[Item, ...] = ()) -> Answered | GaveUp:
        self.screen = Screen()
        end = await self.pipeline.call(
            Ask("Be brief.", (*history, UserItem(text)), (LOOK,)), self.screen, SystemClock().monotonic() + 60
        )
        assert isinstance(end, Answered | GaveUp)
        return end

    def requests(self) -> tuple[int, int]:
        """To the primary, to the fallback."""
        return len(self.main.requests), len(self.spare.requests)


@asynccontextmanager
async def two(
    dialect: str, policy: RecoveryPolicy = QUICK, windows: tuple[int | None, int | None] = (None, None)
) -> AsyncIterator[Two]:
    kinds = (OpenAISimulator, AnthropicSimulator) if dialect == "openai" else (AnthropicSimulator, OpenAISimulator)
    other = next(name for name in DIALECTS if name != dialect)
    async with kinds[0]() as main, kinds[1]() as spare:
        adapters = (provider(dialect, main.base_url), provider(other, spare.base_url))
        targets = [
            Target(adapters[0], "first", windows[0], max_output=900),
            Target(adapters[1], "second", windows[1], max_output=700),
        ]
        pipeline = Pipeline(
            targets, with_policy(policy, targets), SystemClock(), random.Random(1).random, upstreams=UpstreamBook()
        )
        try:
            yield Two(main, spare, pipeline, Screen())
        finally:
            for adapter in adapters:
                await adapter.aclose()


CURED: dict[str, tuple[Fault, int]] = {
    "model_not_found": (ApiError(404, "The model `first` does not exist", "not_found_error"), 1),
    "billing": (ApiError(402, "Insufficient balance", "billing_error"), 1),
    "auth": (ApiError(401, "Incorrect API key provided", "authentication_error"), 1),
    "policy": (ApiError(400, "Output blocked by content filtering policy", "invalid_request_error"), 1),
    "format_error": (ApiError(400, "Unknown parameter: 'foo'.", "invalid_request_error"), 1),
    "overloaded": (ApiError(529, "Overloaded", "overloaded_error"), 1 + RETRIES),
    "server_error": (ApiError(500, "The server had an error", "api_error"), 1 + RETRIES),
    "timeout": (Reset(), 1 + RETRIES + 1),
    "cut": (CutStream(after=2), 1 + RETRIES + 1),
    "a long wait": (ApiError(429, "Rate limit reached", "rate_limit_error", headers={"retry-after": "3600"}), 1),
}


@pytest.mark.parametrize(("fault", "requests"), CURED.values(), ids=CURED.keys())
async def test_what_the_primary_cannot_the_fallback_answers_after_exactly_so_many_requests(
    dialect: str, fault: Fault, requests: int
) -> None:
    async with two(dialect) as it:
        it.main.faults.add(fault, times=None)
        end = await it.ask()
        assert isinstance(end, Answered)
        assert end.target.model == "second"
        assert it.screen.text == end.reply.text == "You said: «hello»", "nothing of the failed attempts is left"
        assert it.requests() == (requests, 1)


async def test_the_request_is_rendered_anew_in_the_fallbacks_dialect(dialect: str) -> None:
    opaque = ({"origin": dialect, "block": {"type": "thinking", "thinking": "hm", "signature": "s"}},)
    call = ToolCall("call_1", "look", '{"at": "tea"}')
    history = (
        UserItem("what is there?"),
        AssistantItem("Let me look.", (call,), provider="main", model="first", opaque=opaque),
        ToolResultItem("call_1", "look", "tea"),
        AssistantItem("Tea.", provider="main", model="first"),
    )
    async with two(dialect) as it:
        it.main.faults.add(ApiError(404, "The model `first` does not exist", "not_found_error"))
        assert isinstance(await it.ask("«and now?»", history), Answered)
        [body] = [request.body for request in it.spare.requests]
        assert body["model"] == "second"
        assert 700 in (body.get("max_tokens"), body.get("max_completion_tokens"))
        assert "signature" not in str(body), "a thought is signed for the model that thought it"
        assert ("system" in body) is (dialect == "openai"), "Anthropic's messages have the prompt apart"
        assert "call_1" in str(body)


async def test_after_both_failed_the_bound_is_kept_and_the_next_message_is_answered(dialect: str) -> None:
    async with two(dialect) as it:
        for sim in (it.main, it.spare):
            sim.faults.add(ApiError(500, "The server had an error", "api_error"), times=None)
        assert isinstance(await it.ask(), GaveUp)
        assert it.requests() == (1 + RETRIES, 1 + RETRIES)
        it.main.faults.clear()
        assert isinstance(await it.ask("«next»"), Answered)


async def test_the_same_backend_under_a_second_name_costs_no_request(dialect: str) -> None:
    async with two(dialect) as it:
        same = Backend(dialect, it.main.base_url, "first")
        named = tuple(replace(target, backend=same) for target in it.pipeline.policy.targets)
        it.pipeline.policy = replace(it.pipeline.policy, targets=named)
        it.main.faults.add(ApiError(500, "The server had an error", "api_error"), times=None)
        assert isinstance(await it.ask(), GaveUp)
        assert it.requests() == (1 + RETRIES, 0)


async def test_a_fallback_too_small_for_the_request_is_not_asked(dialect: str) -> None:
    async with two(dialect, windows=(100_000, 1_000)) as it:
        it.main.faults.add(ApiError(404, "The model `first` does not exist", "not_found_error"), times=None)
        assert isinstance(await it.ask(history=HISTORY), GaveUp)
        assert it.requests() == (1, 0)


async def test_a_larger_window_cures_an_overflow_before_anything_is_left_out(dialect: str) -> None:
    bigger = replace(QUICK, prefer_bigger_window=True)
    async with two(dialect, bigger, windows=(None, 200_000)) as it:
        it.main.faults.add(Overflow(tokens=9000, limit=1500))
        assert isinstance(await it.ask(history=HISTORY), Answered)
        assert it.requests() == (1, 1)
        assert "question 0" in str(it.spare.requests[0].body), "the conversation is whole"
    async with two(dialect, bigger, windows=(2_000, 200_000)) as it:
        assert isinstance(await it.ask(history=HISTORY), Answered)
        assert it.requests() == (0, 1), "what cannot fit is not tried"
    async with two(dialect, bigger, windows=(2_000, 200_000)) as it:
        it.spare.faults.add(ApiError(404, "The model `second` does not exist", "not_found_error"))
        assert isinstance(await it.ask(history=HISTORY), Answered)
        assert it.requests() == (1, 1)
        assert "question 0" not in str(it.main.requests[0].body), "the primary gets what fits it"
