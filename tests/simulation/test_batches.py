"""Side by side or one by one: the same calls run, the same are refused, the same is on disk in the same order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.batches import Batch, Halted, Results, Suspended
from hermes.agent.guarding import TurnGuard
from hermes.core.errors import HermesError, LostFence, StoreUnavailable
from hermes.core.records import ToolEffect
from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, ToolStatus
from hermes.policy.guardrails import Counts, GuardSettings
from hermes.runtime.virtual import run_virtual

pytestmark = pytest.mark.simulation
EFFECTS = {"read": ToolEffect.PURE, "look": ToolEffect.PURE, "put": ToolEffect.IDEMPOTENT, "send": ToolEffect.ONCE}


@dataclass
class Outside:
    """Tools whose answers depend on what was changed before; ``log`` is what is on disk, in order."""

    answers: tuple[tuple[str, bool], ...] = (("x", True),)
    changes: int = 0
    running: int = 0
    peak: int = 0
    began: list[str] = field(default_factory=list)
    log: list[tuple[str, str, str]] = field(default_factory=list)
    together: list[set[str]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    fault: HermesError | None = None

    def waits_for_person(self, call: ToolCall) -> bool:
        return call.name == "ask"

    async def suspend(self, call: ToolCall) -> Suspended:
        return Suspended([])

    async def start(self, calls: Sequence[ToolCall]) -> None:
        await asyncio.sleep(0.1)

    async def perform(self, call: ToolCall) -> ToolResultItem | HermesError:
        self.began.append(call.call_id)
        self.busy.add(call.name)
        self.together.append(set(self.busy))
        self.running += 1
        self.peak = max(self.peak, self.running)
        wanted = json.loads(call.arguments)
        try:
            await asyncio.sleep(wanted.get("slow", 1))
        finally:
            self.running -= 1
            if not self.running:
                self.busy.clear()
        if wanted.get("lost"):
            return self.fault or LostFence("lost")
        text, good = self.answers[(wanted["n"] + self.changes) % len(self.answers)]
        if EFFECTS.get(call.name, ToolEffect.PURE) is not ToolEffect.PURE:
            self.changes += 1
        return ToolResultItem(call.call_id, call.name, text, ToolStatus.OK if good else ToolStatus.ERROR)

    async def keep(self, call: ToolCall, item: ToolResultItem) -> None:
        await asyncio.sleep(0.1)
        self.log.append((item.call_id, item.status.value, item.text))

    async def skip(self, call: ToolCall, item: ToolResultItem) -> None:
        await self.keep(call, item)


def asks(*names: str, **arguments: object) -> list[ToolCall]:
    return [ToolCall(f"c{k}", name, json.dumps({"n": k, **arguments})) for k, name in enumerate(names)]


def a_guard(settings: GuardSettings | None = None) -> TurnGuard:
    return TurnGuard(settings or GuardSettings(), EFFECTS.get)


async def whole_turn(
    batches: Sequence[Sequence[ToolCall]], outside: Outside, guard: TurnGuard, most: int
) -> Halted | None:
    for calls in batches:
        ended = await Batch(outside, guard, most).run(calls)
        if isinstance(ended, Halted):
            outside.log += [(i.call_id, i.status.value, i.text) for i in ended.closing]
            return ended
        assert isinstance(ended, Results)
        assert [i.call_id for i in ended.items] == [c.call_id for c in calls]
    return None


NAMES = st.sampled_from(("read", "read", "look", "put", "send", "nothing"))
ONE_CALL = st.tuples(NAMES, st.integers(0, 3), st.sampled_from((0.0, 1.0, 5.0)))
BATCHES = st.lists(st.lists(ONE_CALL, min_size=1, max_size=12), min_size=1, max_size=6)
ANSWERS = st.lists(st.tuples(st.sampled_from("xy"), st.booleans()), min_size=1, max_size=5)
COUNTS = st.builds(Counts, st.integers(1, 4), st.integers(1, 6), st.integers(1, 4))
STOPS = st.sampled_from((True, True, False))
SETTINGS = st.builds(GuardSettings, st.booleans(), STOPS, COUNTS, COUNTS, st.integers(1, 4))


def numbered(batches: list[list[tuple[str, int, float]]]) -> list[list[ToolCall]]:
    return [
        [
            ToolCall(f"s{step}.{k}", name, json.dumps({"n": n, "slow": slow} if k % 3 else {"slow": slow, "n": n}))
            for k, (name, n, slow) in enumerate(calls)
        ]
        for step, calls in enumerate(batches)
    ]


@given(BATCHES, ANSWERS, SETTINGS, st.integers(2, 9))
def test_a_parallel_run_decides_and_leaves_what_a_sequential_one_does(
    batches: list[list[tuple[str, int, float]]],
    answers: list[tuple[str, bool]],
    settings: GuardSettings,
    most: int,
) -> None:
    found = []
    for at_once in (1, most):
        outside, guard = Outside(tuple(answers)), a_guard(settings)
        halted = run_virtual(whole_turn(numbered(batches), outside, guard, at_once), debug=False)
        assert outside.peak <= at_once
        assert not any(len(names) > 1 and names & {"put", "send"} for names in outside.together)
        found.append((outside.log, sorted(outside.began), halted, guard.state))
    assert found[0] == found[1]


@given(BATCHES, ANSWERS, SETTINGS, st.data())
def test_a_guard_rebuilt_from_the_journal_is_the_one_that_was_lost(
    batches: list[list[tuple[str, int, float]]],
    answers: list[tuple[str, bool]],
    settings: GuardSettings,
    data: st.DataObject,
) -> None:
    """R11: after any number of results on disk, the fold over them is the guard that was in memory."""
    outside, guard = Outside(tuple(answers)), a_guard(settings)
    states = [guard.state]
    calls = numbered(batches)
    keep = outside.keep

    class Watched(Outside):
        async def keep(self, call: ToolCall, item: ToolResultItem) -> None:
            await keep(call, item)
            states.append(guard.state)

    watched = Watched(tuple(answers))
    watched.log = outside.log
    run_virtual(whole_turn(calls, watched, guard, 4), debug=False)
    kept = data.draw(st.integers(0, len(states) - 1))
    texts = {i: ToolResultItem(i, "", text, ToolStatus(status)) for i, status, text in outside.log[:kept]}
    items: list[Item] = []
    for batch in calls:
        if not any(c.call_id in texts for c in batch):
            break
        items.append(AssistantItem("", tuple(batch)))
        items += [texts[c.call_id] for c in batch if c.call_id in texts]
    again = a_guard(settings)
    again.replay(items)
    assert again.state == states[kept]


def test_readers_run_side_by_side_up_to_the_bound_and_the_rest_waits() -> None:
    outside = Outside((("a", True), ("b", True), ("c", True), ("d", True), ("e", True)))
    calls = asks(*("read", "look") * 5)
    run_virtual(whole_turn([calls], outside, a_guard(), 4))
    assert outside.peak == 4
    assert [i for i, _, _ in outside.log] == [c.call_id for c in calls]


def test_a_call_that_could_be_one_too_many_waits_for_those_before_it() -> None:
    outside = Outside()
    same = [ToolCall(f"c{k}", "read", '{"n": 0}') for k in range(500)]
    halted = run_virtual(whole_turn([same], outside, a_guard(), 100))
    assert isinstance(halted, Halted)
    assert len(outside.began) == 3
    assert outside.peak == 3
    assert [status for _, status, _ in outside.log] == ["ok"] * 3 + ["not_run"] * 497


def test_what_changes_something_runs_alone_and_in_its_place() -> None:
    outside = Outside((("a", True), ("b", True), ("c", True)))
    calls = asks("read", "look", "send", "read", "put", "look", "read")
    run_virtual(whole_turn([calls], outside, a_guard(), 8))
    assert outside.peak == 2
    assert outside.began == [c.call_id for c in calls]


def test_a_failing_call_disturbs_no_other() -> None:
    outside = Outside((("a", True), ("b", False), ("c", True)))
    run_virtual(whole_turn([asks("read", "look", "read", "look")], outside, a_guard(), 8))
    assert [status for _, status, _ in outside.log] == ["ok", "error", "ok", "ok"]


@pytest.mark.parametrize("fault", [LostFence("newer"), StoreUnavailable("full")])
def test_what_is_no_tools_fault_ends_the_batch_as_itself_and_leaves_no_task(fault: HermesError) -> None:
    async def go() -> tuple[Outside, set[str]]:
        outside = Outside((("a", True), ("b", True)), fault=fault)
        lost, slow = '{"lost": 1, "n": 9}', '{"n": 3, "slow": 99}'
        calls = [*asks("read", "look"), ToolCall("bad", "read", lost), ToolCall("d", "look", slow)]
        with pytest.raises(type(fault)):
            await Batch(outside, a_guard(), 8).run(calls)
        return outside, {t.get_name() for t in asyncio.all_tasks()}

    outside, left = run_virtual(go())
    assert len(left) == 1
    assert [i for i, _, _ in outside.log] == ["c0", "c1"]


def test_a_cancelled_batch_ends_every_call_under_way() -> None:
    async def go() -> Outside:
        outside = Outside((("a", True), ("b", True)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await Batch(outside, a_guard(), 8).run(asks("read", "look", "read", slow=60))
        assert len(asyncio.all_tasks()) == 1
        return outside

    outside = run_virtual(go())
    assert (outside.running, outside.log) == (0, [])


def test_a_question_is_asked_after_all_before_it_and_before_all_after_it() -> None:
    outside = Outside((("a", True), ("b", True)))
    ended = run_virtual(Batch(outside, a_guard(), 8).run(asks("read", "look", "ask", "read")))
    assert isinstance(ended, Suspended)
    assert [i for i, _, _ in outside.log] == ["c0", "c1"]


HIGH = Counts(99, 99, 99)
FIVE = (("a", True), ("b", True), ("c", True), ("d", True), ("e", True))
LOOPS = {
    "the same failure": ((("x", False),), HIGH, Counts(3, 99, 99), ("read",), (0,) * 12, 3),
    "failures of one tool": ((("x", False),), HIGH, Counts(99, 5, 99), ("read",), range(12), 5),
    "failures of any tools": ((("x", False),), HIGH, Counts(99, 5, 99), ("read", "look", "a", "b"), range(24), 10),
    "the same answer": ((("x", True),), HIGH, Counts(99, 99, 3), ("read",), (0,) * 12, 3),
    "one answer to siblings": ((("x", True),), HIGH, Counts(99, 99, 2), ("read",), range(40), 20),
    "a circle of five": (FIVE, HIGH, Counts(99, 99, 3), ("read",), (0, 1, 2, 3, 4) * 5, 15),
}


@pytest.mark.parametrize("most", [1, 2, 8, 99])
@pytest.mark.parametrize("loop", LOOPS)
def test_of_a_loop_in_one_batch_as_many_calls_run_as_one_by_one(loop: str, most: int) -> None:
    answers, warn, block, tools, numbers, runs = LOOPS[loop]
    outside, guard = Outside(answers), a_guard(GuardSettings(warn_after=warn, block_after=block))
    calls = [
        ToolCall(f"c{k}", tools[k % len(tools)], json.dumps({"n": n, "slow": 9 - k % 5})) for k, n in enumerate(numbers)
    ]
    if len(set(numbers)) < len(calls):
        calls = [ToolCall(c.call_id, c.name, json.dumps({"n": n})) for c, n in zip(calls, numbers, strict=True)]
    halted = run_virtual(whole_turn([calls], outside, guard, most))
    assert isinstance(halted, Halted)
    assert len(outside.began) == runs
    assert [status == "not_run" for _, status, _ in outside.log] == [False] * runs + [True] * (len(calls) - runs)
