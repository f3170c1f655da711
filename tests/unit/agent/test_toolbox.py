"""Whatever a model asks for and whatever a tool does, each call gets exactly one result, on disk and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from hermes.agent.batches import Halted, Results, Suspended
from hermes.agent.toolbox import Toolbox
from hermes.core.errors import StoreUnavailable, ToolError
from hermes.core.events import Address
from hermes.core.ids import SessionId
from hermes.core.ports import ToolRun
from hermes.core.records import Claim, NewDelivery, OutgoingPart, StepResult, ToolEffect
from hermes.core.transcript import (
    AssistantItem,
    ToolCall,
    ToolResultItem,
    ToolSpec,
    ToolStatus,
    load_item,
    open_calls,
)
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.clock import SystemClock
from hermes.store.database import InlineDatabase
from hermes.tools.clarify import Clarify
from tests.unit.store.making import NOW, Store


@dataclass
class Echo:
    """Says what it was given; misbehaves on request."""

    effect: ToolEffect = ToolEffect.ONCE
    spec: ToolSpec = field(default_factory=lambda: ToolSpec("echo", "", {"type": "object"}))
    ran: list[Mapping[str, object]] = field(default_factory=list)

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        self.ran.append(arguments)
        match arguments.get("do"):
            case "refuse":
                raise ToolError("not like \ud800 this" + "!" * 200)
            case "break":
                raise ZeroDivisionError("a fault \ud800" + "!" * 200)
            case "store":
                raise StoreUnavailable("the disk is gone")
            case "cancel":
                raise asyncio.CancelledError
            case "long":
                return "x" * 1000
            case _:
                return f"said {arguments.get('say')} \ud83d"


class Onlooker:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def on_text(self, text: str) -> None: ...
    def on_restart(self) -> None: ...
    def on_notice(self, kind: str, text: str) -> None: ...
    def on_tool(self, name: str, phase: str) -> None:
        self.seen.append((name, phase))

    async def settle(self) -> None: ...


class PlainReplies:
    def reply(
        self, address: Address, session: SessionId | None, text: str, *, options: Sequence[tuple[str, str]] = ()
    ) -> NewDelivery:
        return NewDelivery(address, (OutgoingPart(text),), session_id=session)


class Bench:
    """A claimed turn whose model has asked for some calls."""

    def __init__(self) -> None:
        self.db = InlineDatabase()
        self.store = Store.over(self.db)
        self.echo = Echo()
        self.onlooker = Onlooker()
        self.asked: list[SessionId] = []
        self.box = Toolbox(
            [self.echo, Clarify()], self.store.turns, PlainReplies(), SystemClock(), Checkpoints(None),
            result_chars=100, on_question=self.asked.append,
        )  # fmt: skip

    async def turn(self, *calls: ToolCall) -> Claim:
        _, session = await self.store.say(1)
        claim = await self.store.claim(session)
        await self.store.begin(claim)
        item = AssistantItem("", calls)
        await self.store.turns.finish_step(StepResult(claim.turn_id, claim.epoch, 1, item), NOW)
        return claim

    async def run(self, claim: Claim, calls: Sequence[ToolCall]) -> Results | Suspended | Halted:
        return await self.box.run(claim, 1, calls, self.onlooker, await self.box.guard(claim))

    async def results_on_disk(self, claim: Claim) -> list[ToolResultItem]:
        items = [load_item(i) for i in await self.store.turns.transcript(claim.session_id)]
        assert open_calls(tuple(items)) == () or len(items) > 1
        return [i for i in items if isinstance(i, ToolResultItem)]


@pytest.fixture
def bench():  # type: ignore[no-untyped-def]
    made = Bench()
    yield made
    made.db.conn.close()


def call(arguments: str, name: str = "echo", number: int = 1) -> ToolCall:
    return ToolCall(f"c{number}", name, arguments)


CASES = (
    (call('{"say": "hi"}'), ToolStatus.OK, "said hi \ufffd"),
    (call(""), ToolStatus.OK, "said None \ufffd"),
    (call('{"do": "long"}'), ToolStatus.OK, "900 more characters"),
    (call('{"say": '), ToolStatus.ERROR, "not valid JSON"),
    (call("[1]"), ToolStatus.ERROR, "must be a JSON object"),
    (call("null"), ToolStatus.ERROR, "must be a JSON object"),
    (call("[" * 100_000), ToolStatus.ERROR, "not valid JSON"),
    (call("{}", name="rm"), ToolStatus.ERROR, "The tools are: echo, clarify"),
    (call('{"do": "refuse"}'), ToolStatus.ERROR, "not like \ufffd this"),
    (call('{"do": "break"}'), ToolStatus.ERROR, "ZeroDivisionError"),
)


@pytest.mark.parametrize(("asked", "status", "says"), CASES)
async def test_each_call_has_one_bounded_result_on_disk(
    bench: Bench, asked: ToolCall, status: ToolStatus, says: str
) -> None:
    claim = await bench.turn(asked)
    ran = await bench.run(claim, [asked])
    assert isinstance(ran, Results)
    [result] = ran.items
    assert (result.status, result.call_id) == (status, "c1")
    assert says in result.text
    assert len(result.text) < 200
    assert await bench.results_on_disk(claim) == [result]
    assert bench.onlooker.seen == [(asked.name, "start"), (asked.name, status.value)]


async def test_one_bad_call_does_not_keep_the_others_from_running_in_order(bench: Bench) -> None:
    calls = [call('{"say": 1}', number=1), call("{", number=2), call('{"do": "break"}', number=3), call("{}", number=4)]
    claim = await bench.turn(*calls)
    ran = await bench.run(claim, calls)
    assert isinstance(ran, Results)
    assert [r.call_id for r in ran.items] == ["c1", "c2", "c3", "c4"]
    assert list(ran.items) == await bench.results_on_disk(claim)


async def test_a_store_that_refuses_is_no_result_of_a_tool(bench: Bench) -> None:
    asked = call('{"do": "store"}')
    claim = await bench.turn(asked)
    with pytest.raises(StoreUnavailable):
        await bench.run(claim, [asked])


@pytest.mark.parametrize(("effect", "again"), [(ToolEffect.ONCE, False), (ToolEffect.PURE, True)])
async def test_what_was_started_before_a_crash_runs_again_only_where_that_is_safe(
    bench: Bench, effect: ToolEffect, again: bool
) -> None:
    bench.echo.effect = effect
    asked = call('{"do": "store"}')
    claim = await bench.turn(asked)
    with pytest.raises(StoreUnavailable):
        await bench.run(claim, [asked])
    bench.echo.ran.clear()
    resumed = await bench.store.claim(claim.session_id)
    safe = replace(asked, arguments="{}")
    ran = await bench.run(resumed, [safe])
    assert isinstance(ran, Results)
    assert bool(bench.echo.ran) == again
    assert ran.items[0].status is (ToolStatus.OK if again else ToolStatus.UNKNOWN)
    assert len(await bench.results_on_disk(claim)) == 1


async def test_a_model_that_uses_an_id_again_after_a_crash_gets_its_new_call_run(bench: Bench) -> None:
    asked = call('{"do": "store"}')
    claim = await bench.turn(asked)
    with pytest.raises(StoreUnavailable):
        await bench.run(claim, [asked])
    resumed = await bench.store.claim(claim.session_id)
    bench.echo.ran.clear()
    first = await bench.run(resumed, [asked])
    assert isinstance(first, Results)
    assert (first.items[0].status, bench.echo.ran) == (ToolStatus.UNKNOWN, [])
    second = await bench.box.run(resumed, 2, [call("{}")], bench.onlooker, await bench.box.guard(resumed))
    assert isinstance(second, Results)
    assert (second.items[0].status, bench.echo.ran) == (ToolStatus.OK, [{}])
    assert len(await bench.results_on_disk(claim)) == 2


async def test_a_tool_that_lets_its_own_cancellation_out_has_failed(bench: Bench) -> None:
    asked = call('{"do": "cancel"}')
    claim = await bench.turn(asked)
    ran = await bench.run(claim, [asked])
    assert isinstance(ran, Results)
    assert ran.items[0].status is ToolStatus.ERROR


async def test_a_question_suspends_the_turn_after_what_came_before_it(bench: Bench) -> None:
    asks = call('{"question": "Which \\ud800?", "options": ["a", 2]}', "clarify", 2)
    calls = [call("{}", number=1), asks, call("{}", number=3)]
    claim = await bench.turn(*calls)
    ran = await bench.run(claim, calls)
    assert isinstance(ran, Suspended)
    assert [r.payload for r in ran.rows] == ["Which \ufffd?\n1. a\n2. 2"]
    assert bench.asked == [claim.session_id]
    assert [r.call_id for r in await bench.results_on_disk(claim)] == ["c1"]
    question = await bench.store.turns.open_question(claim.session_id)
    assert question is not None
    await bench.store.turns.answer_question(question.id, "a", (), NOW)
    resumed = await bench.store.claim(claim.session_id)
    rest = await bench.run(resumed, [calls[2]])
    assert isinstance(rest, Results)
    assert [r.call_id for r in await bench.results_on_disk(claim)] == ["c1", "c2", "c3"]


async def test_a_question_that_cannot_be_read_is_an_error_on_disk_and_suspends_nothing(bench: Bench) -> None:
    calls = [call("{}", number=1), call("{", "clarify", 2), call("{}", number=3)]
    claim = await bench.turn(*calls)
    ran = await bench.run(claim, calls)
    assert isinstance(ran, Results)
    assert [r.status for r in ran.items] == [ToolStatus.OK, ToolStatus.ERROR, ToolStatus.OK]
    assert list(ran.items) == await bench.results_on_disk(claim)
    assert bench.asked == []
