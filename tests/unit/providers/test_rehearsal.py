"""The rehearsal: it says what it is, and plays what it is told to."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from hermes.core.errors import ProviderFailure
from hermes.core.failures import CallContext, FailureFacts, FaultKind, Reason
from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    Item,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResultItem,
    ToolSpec,
    UserItem,
)
from hermes.policy.classify import classify
from hermes.providers.rehearsal.adapter import LOOP_LIMIT, REMEMBERED, RehearsalProvider
from hermes.providers.rehearsal.scenarios import FAULTS, PERFORMANCES, Fault


@dataclass(frozen=True)
class Still:
    speed: float = 0.0


@pytest.fixture
def provider() -> RehearsalProvider:
    return RehearsalProvider("rehearsal", Still())


def asking(*items: Item, **more: Any) -> ModelRequest:
    return ModelRequest("rehearsal", "", items, **more)


async def says(provider: RehearsalProvider, request: ModelRequest) -> ModelReply:
    shown: list[str] = []
    reply = await provider.complete(request, shown.append)
    assert "".join(shown) == reply.text
    return reply


async def fails(provider: RehearsalProvider, request: ModelRequest) -> FailureFacts:
    with pytest.raises(ProviderFailure) as caught:
        await provider.complete(request, lambda text: None)
    return caught.value.facts


async def test_a_first_word_is_answered_with_what_it_is_and_how_to_get_a_model(
    provider: RehearsalProvider,
) -> None:
    reply = await says(provider, asking(UserItem("Good morning!")))
    assert "no model is configured" in reply.text
    assert "Good morning!" in reply.text
    assert "OPENAI_API_KEY" in reply.text


async def test_a_long_message_is_not_said_back_whole(provider: RehearsalProvider) -> None:
    reply = await says(provider, asking(UserItem("word " * 10_000)))
    assert len(reply.text) < 2_000


async def test_a_later_message_is_answered_shortly_by_what_the_transcript_holds(
    provider: RehearsalProvider,
) -> None:
    request = asking(UserItem("one"), AssistantItem("…"), UserItem("two"))
    reply = await says(provider, request)
    assert "“two”" in reply.text
    assert "message 2" in reply.text
    assert await RehearsalProvider("other", Still()).complete(request, lambda text: None) == reply


@pytest.mark.parametrize("order", ["/rehearse", "/rehearse help", "/REHEARSE Help", "[09:15] /rehearse help"])
async def test_help_names_all_that_can_be_played(provider: RehearsalProvider, order: str) -> None:
    reply = await says(provider, asking(UserItem(order)))
    assert all(f"`{name}`" in reply.text for name in [*FAULTS, *PERFORMANCES])


async def test_an_unknown_order_is_named_and_answered_with_help(provider: RehearsalProvider) -> None:
    reply = await says(provider, asking(UserItem("/rehearse 777")))
    assert "“777”" in reply.text
    assert "`429`" in reply.text


@pytest.mark.parametrize(("name", "fault"), FAULTS.items(), ids=FAULTS.keys())
async def test_a_fault_is_played_as_often_as_it_says_and_then_cured(
    provider: RehearsalProvider, name: str, fault: Fault
) -> None:
    request = asking(UserItem(f"/rehearse {name}"))
    for _ in range(fault.times or 10):
        facts = await fails(provider, request)
        assert (facts.kind, facts.status, facts.provider) == (fault.kind, fault.status, "rehearsal")
        assert (facts.kind is FaultKind.HTTP_STATUS) == (facts.status is not None and facts.status >= 400)
        json.dumps(facts.body)
    if fault.times:
        assert "no model" in (await says(provider, request)).text
        assert (await fails(provider, request)).kind is fault.kind  # asked anew, it is played anew


async def test_each_conversation_sees_the_whole_fault(provider: RehearsalProvider) -> None:
    order = UserItem("/rehearse 429")
    await fails(provider, asking(order))
    await fails(provider, asking(UserItem("before"), AssistantItem("…"), order))
    assert (await says(provider, asking(order))).text


async def test_an_overflow_is_cured_by_whatever_shortens_the_talk(provider: RehearsalProvider) -> None:
    order = UserItem("/rehearse overflow")
    await fails(provider, asking(UserItem("much before"), AssistantItem("…"), order))
    assert "context window" in (await says(provider, asking(UserItem("a summary"), order))).text


async def test_what_it_remembers_is_bounded(provider: RehearsalProvider) -> None:
    for number in range(REMEMBERED + 10):
        await fails(provider, asking(UserItem(str(number)), UserItem("/rehearse down")))
    assert len(provider._failed) == REMEMBERED


async def test_a_cut_answer_shows_its_beginning(provider: RehearsalProvider) -> None:
    shown: list[str] = []
    with pytest.raises(ProviderFailure) as caught:
        await provider.complete(asking(UserItem("/rehearse cut")), shown.append)
    assert len(shown) == FAULTS["cut"].words
    assert caught.value.facts.tokens_seen


SEARCH = ToolSpec("session_search", "", {"type": "object", "properties": {"query": {"type": "string"}},
                                         "required": ["query"]})
CLARIFY = ToolSpec("clarify", "", {"type": "object", "required": ["question", "options"], "properties": {
    "question": {"type": "string"}, "options": {"type": "array", "items": {"type": "string"}}}})


def answered(reply: ModelReply, text: str) -> tuple[Item, ...]:
    call = reply.tool_calls[0]
    return (AssistantItem("", reply.tool_calls), ToolResultItem(call.call_id, call.name, text))


async def test_a_tool_is_asked_for_and_its_result_is_used(provider: RehearsalProvider) -> None:
    order = UserItem("/rehearse tool")
    reply = await says(provider, asking(order, tools=(SEARCH,)))
    assert reply.finish is FinishReason.TOOL_CALLS
    assert reply.tool_calls[0].name == "session_search"
    assert json.loads(reply.tool_calls[0].arguments) == {"query": "rehearse"}
    last = await says(provider, asking(order, *answered(reply, "three hits"), tools=(SEARCH,)))
    assert "three hits" in last.text
    assert last.tool_calls == ()


async def test_a_question_back_has_words_and_options(provider: RehearsalProvider) -> None:
    reply = await says(provider, asking(UserItem("/rehearse clarify"), tools=(SEARCH, CLARIFY)))
    arguments = json.loads(reply.tool_calls[0].arguments)
    assert reply.tool_calls[0].name == "clarify"
    assert arguments["question"].endswith("?")
    assert len(arguments["options"]) == 2


async def test_without_the_tool_it_says_so(provider: RehearsalProvider) -> None:
    assert "clarify" in (await says(provider, asking(UserItem("/rehearse clarify")))).text


async def test_a_loop_ends_by_itself_should_nobody_stop_it(provider: RehearsalProvider) -> None:
    items: tuple[Item, ...] = (UserItem("/rehearse loop"),)
    seen: list[ToolCall] = []
    while (reply := await says(provider, asking(*items, tools=(SEARCH,)))).tool_calls:
        seen += reply.tool_calls
        items += answered(reply, "nothing")
    assert len(seen) == LOOP_LIMIT
    assert len({call.arguments for call in seen}) == 1
    assert len({call.call_id for call in seen}) == LOOP_LIMIT


async def test_a_slow_answer_comes_in_words_and_a_long_one_is_long(provider: RehearsalProvider) -> None:
    shown: list[str] = []
    await provider.complete(asking(UserItem("/rehearse slow")), shown.append)
    assert len(shown) > 30
    assert len((await says(provider, asking(UserItem("/rehearse long")))).text) > 9_000
    assert "```" in (await says(provider, asking(UserItem("/rehearse markdown")))).text


async def test_a_slow_answer_can_be_cancelled() -> None:
    provider = RehearsalProvider("rehearsal", Still(speed=1_000.0))
    began = asyncio.Event()
    request = asking(UserItem("/rehearse slow"))
    call = asyncio.ensure_future(provider.complete(request, lambda text: began.set()))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


MEANINGS = {
    "429": Reason.RATE_LIMIT, "500": Reason.SERVER_ERROR, "503": Reason.OVERLOADED, "529": Reason.OVERLOADED,
    "401": Reason.AUTH, "billing": Reason.BILLING, "404": Reason.MODEL_NOT_FOUND, "400": Reason.FORMAT_ERROR,
    "overflow": Reason.CONTEXT_OVERFLOW, "refused": Reason.TIMEOUT, "reset": Reason.TIMEOUT,
    "timeout": Reason.TIMEOUT, "cut": Reason.TIMEOUT, "stall": Reason.TIMEOUT, "early": Reason.TIMEOUT,
    "html": Reason.PROVIDER_POLICY_BLOCKED, "garbage": Reason.SERVER_ERROR, "empty": Reason.UNKNOWN,
    "half": Reason.UNKNOWN, "down": Reason.OVERLOADED,
}  # fmt: skip


def test_the_real_classifier_takes_each_fault_for_what_it_plays() -> None:
    facts = {name: fault.facts("rehearsal", "rehearsal") for name, fault in FAULTS.items()}
    assert {name: classify(each, CallContext()).reason for name, each in facts.items()} == MEANINGS
    assert classify(facts["429"], CallContext()).retry_after == 2.0
    assert classify(facts["overflow"], CallContext()).limit == 8192
