"""Each reason's cure end to end: real SDK, real pipeline, the exact number of requests it costs upstream."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.agent.endings import CUT_OFF, shown_text
from hermes.agent.pipeline import AVAILABLE_REPAIRS
from hermes.agent.targets import Answered
from hermes.core.transcript import FinishReason
from hermes.policy.cures import Repair
from hermes.simulators.answers import Answer, Finish
from hermes.simulators.faults import (
    ApiError,
    CutStream,
    Fault,
    GarbageStream,
    HalfToolCall,
    Overflow,
    Reset,
    Stall,
    StallStream,
    StreamError,
    html_page,
)
from tests.wire.gateway.harness import free_port
from tests.wire.recovery.bench import DIALECTS, HISTORY, QUICK, RETRIES, Bench, bench, pipeline_of, provider

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS)]

SOON = {"retry-after": "1"}
PASSES: dict[str, Fault] = {
    "rate_limit": ApiError(
        429, "Rate limit reached for requests", "rate_limit_error", "rate_limit_exceeded", SOON
    ),
    "overloaded": ApiError(529, "Overloaded", "overloaded_error"),
    "server_error": ApiError(500, "The server had an error", "api_error"),
    "timeout: cut within": CutStream(after=2),
    "timeout: a clean early end": CutStream(after=2, clean=True),
    "timeout: reset": Reset(),
    "server_error: a proxy's page": html_page(502),
    "server_error: an event that is no JSON": GarbageStream(after=1),
    "overloaded: within the stream": StreamError(1, "overloaded_error", "Overloaded"),
}


@pytest.mark.parametrize("fault", PASSES.values(), ids=PASSES.keys())
async def test_what_passes_by_waiting_costs_one_more_request_and_shows_one_answer(
    dialect: str, fault: Fault
) -> None:
    async with bench(dialect) as it:
        it.sim.faults.add(fault)
        assert await it.answer() == "You said: «hello»"
        assert len(it.sim.requests) == 2


SILENT: dict[str, Fault] = {
    "no head": Stall(),
    "no first event": Stall(after_headers=True),
    "silence within": StallStream(after=1),
}


@pytest.mark.parametrize("fault", SILENT.values(), ids=SILENT.keys())
async def test_silence_is_ended_by_its_limit_and_costs_one_more_request(dialect: str, fault: Fault) -> None:
    async with bench(dialect, first_byte_timeout=1.5, stall_timeout=1.5) as it:
        it.sim.faults.add(fault)
        assert await it.answer() == "You said: «hello»"
        assert len(it.sim.requests) == 2


async def test_a_model_that_talks_for_ever_is_ended_by_the_total_limit_and_asked_again(dialect: str) -> None:
    async with bench(dialect, total_timeout=2.0) as it:
        it.sim.script(Answer("word " * 60, pieces=60, gap=0.1), Answer("Short."))
        assert await it.answer() == "Short."
        assert len(it.sim.requests) == 2
        assert it.screen.restarts == 1


async def next_is_answered(it: Bench) -> None:
    """Whatever ended in a sentence leaves the next message answered."""
    it.sim.faults.clear()
    before = len(it.sim.requests)
    assert await it.answer("«next»") == "You said: «next»"
    assert len(it.sim.requests) == before + 1


LONGER = int(Repair.RAISE_MAX_TOKENS in AVAILABLE_REPAIRS)
"""A longer answer is asked for once, where that repair is offered."""

NEVER: dict[str, tuple[Fault, int, str]] = {
    "server_error": (ApiError(500, "The server had an error", "api_error"), 1 + RETRIES, "internal error"),
    "overloaded": (ApiError(529, "Overloaded", "overloaded_error"), 1 + RETRIES, "overloaded at the moment"),
    "timeout": (Reset(), 1 + RETRIES + 1, "did not answer|broke"),
    "context_overflow": (Overflow(), 1, "too long"),
    "payload_too_large": (ApiError(413, "Request entity too large", "request_too_large"), 1, "too large"),
    "image_too_large": (ApiError(400, "image exceeds 5 MB maximum: 6500 bytes > 5242880 bytes"), 1, "image"),
    "model_not_found": (ApiError(404, "The model `some-model` does not exist", "not_found_error"), 1, "does not offer"),
    "provider_policy_blocked": (
        ApiError(400, "Output blocked by content filtering policy", "invalid_request_error"), 1, "own rules",
    ),
    "format_error": (ApiError(400, "Unknown parameter: 'foo'.", "invalid_request_error"), 1, "form of the request"),
    "auth": (ApiError(401, "Incorrect API key provided", "authentication_error"), 1, "refused the credential"),
    "auth_permanent": (
        ApiError(403, "OAuth authentication is currently not allowed for this organization.", "permission_error"), 1,
        "does not accept this credential",
    ),
    "billing": (ApiError(402, "Insufficient balance", "billing_error"), 1, "no credit left"),
    "unknown": (ApiError(400, "Error", "invalid_request_error"), 1 + 1, "not known here"),
    "unknown: empty": (Answer(""), 1 + 2, "empty answer"),
    "unknown: half a tool call": (HalfToolCall(), 1 + 1 + LONGER, "tool call"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "requests", "says"), NEVER.values(), ids=NEVER.keys())
async def test_what_does_not_pass_costs_its_bound_and_a_sentence_and_the_next_message_is_answered(
    dialect: str, fault: Fault | Answer, requests: int, says: str
) -> None:
    async with bench(dialect) as it:
        if isinstance(fault, Answer):
            it.sim.script(*[fault] * requests)
        else:
            it.sim.faults.add(fault, times=None)
        told = await it.sentence()
        assert any(part in told for part in says.split("|")), told
        assert len(it.sim.requests) == requests
        assert it.screen.text == "", "nothing of a failed attempt stays on the screen"
        await next_is_answered(it)


@pytest.mark.parametrize("fault", [Overflow(), ApiError(413, "Request entity too large", "request_too_large")])
async def test_what_can_be_left_out_is_left_out_three_times_at_most(dialect: str, fault: Fault) -> None:
    async with bench(dialect) as it:
        it.sim.faults.add(fault, times=None)
        assert "too l" in await it.sentence("«hello»", HISTORY)
        assert len(it.sim.requests) == 1 + 3
        sizes = [len(request.body["messages"]) for request in it.sim.requests]
        assert sizes == sorted(set(sizes), reverse=True), "each is shorter than the one before"
        await next_is_answered(it)


async def test_a_rate_limit_that_stays_costs_the_retries_and_says_so(dialect: str) -> None:
    async with bench(dialect, replace(QUICK, retries=1)) as it:
        refusal = ApiError(429, "Rate limit reached for requests", "rate_limit_error", headers=SOON)
        it.sim.faults.add(refusal, times=None)
        assert "limiting how often" in await it.sentence()
        assert len(it.sim.requests) == 1 + 1


async def test_a_wait_above_the_cap_is_not_sat_out(dialect: str) -> None:
    async with bench(dialect) as it:
        long = ApiError(429, "Rate limit reached", "rate_limit_error", headers={"retry-after": "3600"})
        it.sim.faults.add(long, times=None)
        assert "hour" in await it.sentence()
        assert len(it.sim.requests) == 1


async def test_an_overflow_is_cured_by_leaving_out_the_oldest_part(dialect: str) -> None:
    async with bench(dialect) as it:
        it.sim.faults.add(Overflow(tokens=9000, limit=1500))
        assert await it.answer("«hello»", HISTORY) == "You said: «hello»"
        first, second = it.sim.requests
        assert len(second.body["messages"]) < len(first.body["messages"])


async def test_a_payload_that_is_too_large_is_cured_by_leaving_out_the_oldest_part(dialect: str) -> None:
    async with bench(dialect) as it:
        it.sim.faults.add(ApiError(413, "Request entity too large", "request_too_large"))
        assert await it.answer("«hello»", HISTORY) == "You said: «hello»"
        first, second = it.sim.requests
        assert len(str(second.body)) < len(str(first.body)) * 0.7


async def test_too_large_an_output_limit_is_lowered_to_what_the_error_allows(dialect: str) -> None:
    said = {
        "openai": "max_tokens is too large: 8000. This model supports at most 4096 completion tokens.",
        "anthropic": "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for some-model",
    }
    async with bench(dialect) as it:
        it.sim.faults.add(ApiError(400, said[dialect], "invalid_request_error"))
        assert await it.answer() == "You said: «hello»"
        assert [request.body["max_tokens"] for request in it.sim.requests] == [8000, 4096]


async def test_a_refused_connection_reaches_nobody_and_names_the_cure(dialect: str) -> None:
    adapter = provider(dialect, f"http://127.0.0.1:{free_port()}")
    try:
        it = Bench(None, pipeline_of(adapter))  # type: ignore[arg-type]  # nobody listens
        assert "connection was refused" in await it.sentence()
    finally:
        await adapter.aclose()


async def test_an_answer_that_the_output_limit_cuts_off_is_continued_in_one_more_request(
    dialect: str,
) -> None:
    async with bench(dialect) as it:
        it.sim.script(Answer("The quick bro", finish=Finish.LENGTH), Answer("brown fox."))
        assert await it.answer() == "The quick brown fox."
        first, second = it.sim.requests
        assert len(second.body["messages"]) == len(first.body["messages"]) + 2
        assert "The quick " in str(second.body["messages"][-2]["content"])


async def test_an_answer_without_end_is_continued_three_times(dialect: str) -> None:
    async with bench(dialect) as it:
        it.sim.script(*[Answer(f"part {n} ", finish=Finish.LENGTH) for n in range(9)])
        end = await it.ask()
        assert isinstance(end, Answered)
        assert end.reply.finish is FinishReason.LENGTH
        assert shown_text(end.reply) == f"part 0 part 1 part 2 part 3 \n\n{CUT_OFF}"
        assert len(it.sim.requests) == 1 + 3


async def test_the_screen_is_told_that_what_it_shows_is_void(dialect: str) -> None:
    async with bench(dialect) as it:
        it.sim.faults.add(CutStream(after=2))
        await it.answer()
        assert it.screen.restarts == 1
        assert it.screen.notices == ["retry"]
