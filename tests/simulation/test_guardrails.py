"""Models that loop, in the whole gateway: every turn ends within its count, one by one and side by side alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from hermes.core.errors import ToolError
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect, TurnCause
from hermes.core.transcript import AssistantItem, ToolResultItem, ToolSpec, ToolStatus, load_item
from hermes.simulators.looping import Habit, looping
from tests.simulation.outside import Calls, answer
from tests.simulation.test_cancellation import tasks
from tests.simulation.test_kills import check_legal, check_promises
from tests.simulation.world import World
from tests.stepping import TURN, stop_at

pytestmark = pytest.mark.simulation
Make = Callable[..., World]
OBJECT = {"type": "object", "properties": {}}


class Counting:
    """A tool that counts how often it ran; what it says may depend on its arguments."""

    def __init__(self, name: str, effect: ToolEffect, *, says: str = "the same", good: bool = True) -> None:
        self.effect = effect
        self.spec = ToolSpec(name, "Counts.", OBJECT)
        self.says, self.good = says, good
        self.ran: list[Mapping[str, object]] = []
        self.at_once = self.peak = 0

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        self.ran.append(arguments)
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        try:
            for _ in range(3):
                await asyncio.sleep(0.2)
        finally:
            self.at_once -= 1
        text = self.says.replace("{n}", str(arguments.get("n")))
        if not self.good:
            raise ToolError(text)
        return text


@dataclass(frozen=True)
class Case:
    """A habit, the tools it uses, and how often they may run and the model may be asked."""

    habit: Habit
    calls: tuple[tuple[str, dict[str, Any]], ...]
    runs: int
    asks: int
    kind: str
    width: int = 1


PATH = {"path": "a", "n": "{n}"}
CASES = {
    "repeats a failure": Case(Habit.REPEAT, (("broken", {}),), 3, 5, "exact_failure"),
    "repeats an answer": Case(Habit.REPEAT, (("look", {}),), 3, 5, "idempotent_no_progress"),
    "repeats a success": Case(Habit.REPEAT, (("act", {}),), 3, 5, "idempotent_no_progress"),
    "repeats in one answer": Case(Habit.REPEAT, (("look", {}),), 3, 1, "idempotent_no_progress", 50),
    "alternates": Case(Habit.ALTERNATE, (("look", {"n": 1}), ("other", {"n": 2})), 6, 8, "cycle"),
    "alternates failures": Case(Habit.ALTERNATE, (("broken", {}), ("look", {})), 6, 8, "cycle"),
    "alternates effects": Case(Habit.ALTERNATE, (("act", {}), ("other", {})), 6, 8, "cycle"),
    "fails with siblings": Case(Habit.SIBLINGS, (("broken", PATH),), 5, 7, "same_tool_failure"),
    "fans out failures": Case(Habit.SIBLINGS, (("broken", PATH),), 5, 1, "same_tool_failure", 20),
    "fans out": Case(Habit.SIBLINGS, (("look", PATH),), 30, 4, "spread", 9),
    "fans out effects": Case(Habit.SIBLINGS, (("act", PATH),), 30, 4, "spread", 9),
    "invents tools": Case(Habit.SIBLINGS, (("no_such_tool", PATH),), 0, 7, "same_tool_failure"),
}


def tools() -> list[Counting]:
    return [
        Counting("look", ToolEffect.PURE),
        Counting("other", ToolEffect.PURE, says="something else"),
        Counting("broken", ToolEffect.PURE, says="broken for {n}", good=False),
        Counting("act", ToolEffect.ONCE, says="done"),
    ]


def script(case: Case, answers: int = 60) -> list[Calls]:
    plays = looping(case.habit, case.calls, width=case.width)
    return [
        Calls(tuple((c.name, json.loads(c.arguments)) for c in next(plays).calls), after=0.1) for _ in range(answers)
    ]


def transcript(world: World) -> list[Any]:
    return [load_item(text) for (text,) in world.rows("SELECT item FROM messages ORDER BY seq")]


def results(world: World) -> list[ToolResultItem]:
    return [item for item in transcript(world) if isinstance(item, ToolResultItem)]


def played(make: Make, case: Case, at_once: int) -> tuple[World, list[Counting]]:
    counting = tools()
    world = make(script(case), tools=counting, settings={"tools": {"max_parallel": at_once}})
    world.say("work")
    world.run(300)
    return world, counting


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_loops_is_stopped_at_its_count_alike_one_by_one_and_side_by_side(make: Make, name: str) -> None:
    case = CASES[name]
    found = []
    for at_once in (1, 8):
        world, counting = played(make, case, at_once)
        assert sum(len(tool.ran) for tool in counting) == case.runs
        assert len(world.model.requests) == case.asks
        [told] = world.heard()
        assert told.startswith("I stopped because I was going in circles: ")
        assert world.rows("SELECT outcome, reason FROM turns") == [("failed_told", f"tool_loop:{case.kind}")]
        check_legal(world)
        found.append((transcript(world), told, [tool.ran for tool in counting]))
        world.model.script.clear()
        world.say("and now?")
        assert world.run(60).heard()[1:] == ["You said: and now?"]
        world.close()
    assert json.dumps(found[0], default=repr) == json.dumps(found[1], default=repr)


def test_readers_of_one_answer_run_side_by_side(make: Make) -> None:
    look = Counting("look", ToolEffect.PURE, says="text {n}")
    world = make([Calls(tuple(("look", {"n": n}) for n in range(30))), answer("read")], tools=[look])
    world.say("read all")
    assert world.run(60).heard() == ["read"]
    assert (len(look.ran), look.peak) == (30, 5)
    assert [r.status for r in results(world)] == [ToolStatus.OK] * 30
    assert [r.text for r in results(world)] == [f"text {n}" for n in range(30)]


def test_the_model_reads_why_it_was_blocked_and_may_go_on(make: Make) -> None:
    broken, look = Counting("broken", ToolEffect.PURE, good=False), Counting("look", ToolEffect.PURE)
    calls = [Calls((("broken", {"a": 1, "b": "x"}),))] * 4
    world = make([*calls, Calls((("look", {}),)), answer("found another way")], tools=[broken, look])
    world.say("work")
    assert world.run(120).heard() == ["found another way"]
    texts = [r.text for r in results(world)]
    assert "[Loop guard: the same call failed 2 times with the same arguments." in texts[1]
    assert texts[3].startswith("Not run: the same call failed 3 times with the same arguments.")
    assert world.outcomes() == [("work", "answered")]


def test_a_new_message_begins_anew(make: Make) -> None:
    broken = Counting("broken", ToolEffect.PURE, good=False)
    call = Calls((("broken", {}),))
    world = make([call, call, answer("no"), call, answer("still no")], tools=[broken])
    world.say("try")
    world.run(30)
    world.say("try again")
    assert world.run(30).heard() == ["no", "still no"]
    assert "Loop guard" not in results(world)[-1].text


@pytest.mark.parametrize("point", ["after_step_intent", "after_step_result", "after_tool_intent", "after_tool_effect",
                                   "after_tool_result", "before_t2"])  # fmt: skip
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_a_turn_killed_in_a_loop_decides_after_the_restart_as_if_nothing_had_happened(
    make: Make, point: str, nth: int
) -> None:
    case = CASES["alternates failures"]
    undisturbed, _ = played(make, case, 8)
    whole = [(r.status, r.text) for r in results(undisturbed)]
    undisturbed.close()
    world = make(script(case), tools=tools())
    world.checkpoints.at, world.checkpoints.after = point, nth
    world.say("work")
    world.run(300)
    assert world.kills == (1 if point != "before_t2" or nth == 1 else 0)
    # an unfinished step is asked again: the scripted model goes on in its script then, and so in the circle
    assert world.rows("SELECT outcome FROM turns") == [("failed_told",)]
    if point != "after_step_intent":
        assert [(r.status, r.text) for r in results(world)] == whole
    check_promises(world, {"7": ["I stopped because"]})


@pytest.mark.parametrize("nth", range(1, 9))
def test_a_batch_killed_in_its_midst_leaves_one_result_each_and_runs_nothing_twice_that_may_not(
    make: Make, nth: int
) -> None:
    act, look = Counting("act", ToolEffect.ONCE, says="done {n}"), Counting("look", ToolEffect.PURE, says="text {n}")
    batch = tuple((("act", "look", "look", "look")[n % 4], {"n": n}) for n in range(8))
    for point in ("after_tool_intent", "after_tool_effect", "after_tool_result"):
        act.ran.clear()
        world = make([Calls(batch), answer("done")], tools=[act, look])
        world.checkpoints.at, world.checkpoints.after = point, nth
        world.say("work")
        world.run(120)
        assert len(act.ran) <= 2
        assert len({str(a) for a in act.ran}) == len(act.ran)
        assert world.heard() == ["done"]
        check_legal(world)
        asked = next(i for i in transcript(world) if isinstance(i, AssistantItem))
        assert [r.call_id for r in results(world)] == [c.call_id for c in asked.tool_calls]
        world.close()


@pytest.mark.parametrize("after", [0.15, 0.4, 0.7, 1.2, 1.7])
def test_a_stopped_batch_leaves_one_result_each_and_no_call_under_way(make: Make, after: float) -> None:
    act, look = Counting("act", ToolEffect.ONCE), Counting("look", ToolEffect.PURE, says="text {n}")
    batch = tuple((("look", "look", "look", "act")[n % 4], {"n": n}) for n in range(12))
    world = make([Calls(batch, after=0.0), answer("never")], tools=[act, look])
    world.run(1)
    world.say("work")
    world.run(after)
    world.say("/stop")
    world.run(20)
    assert (act.at_once, look.at_once) == (0, 0)
    assert len(results(world)) in (0, 12)
    check_legal(world)
    assert dict(world.outcomes())["work"] == "stopped"


@pytest.mark.parametrize("cause", [TurnCause.STOP, TurnCause.SHUTDOWN])
@pytest.mark.parametrize("coroutine", [TURN, "_Step.perform"])
def test_a_batch_ended_at_any_await_leaves_no_task_and_no_call_without_result(
    make: Make, cause: TurnCause, coroutine: str
) -> None:
    batch = Calls(tuple(("act" if n % 3 == 2 else "look", {"n": n}) for n in range(6)))
    for at in range(1, 60):
        act = Counting("act", ToolEffect.ONCE, says="done {n}")
        look = Counting("look", ToolEffect.PURE, says="text {n}")
        world = make([batch, answer("done")], tools=[act, look])
        world.run(1)
        quiet = tasks(world)
        assert world.gateway is not None
        assert world._runner is not None
        lane = world.gateway.lane
        loop = world._runner.get_loop()
        steps = stop_at(loop, coroutine, at, lambda lane=lane: lane.cancel_all(cause))
        world.say("work")
        world.run(60)
        loop.set_task_factory(None)
        assert tasks(world) == quiet
        assert (act.at_once, look.at_once) == (0, 0)
        if cause is TurnCause.SHUTDOWN:
            world.kill()
            world.run(60)
            # an answer that was on its way is lost, and the script with it
            assert world.heard() in (["done"], ["You said: work"])
        assert len({str(a) for a in act.ran}) == len(act.ran), "run twice"
        check_legal(world)
        assert len(results(world)) in (0, 6)
        world.model.script.clear()
        world.say("next")
        assert world.run(60).heard()[-1] == "You said: next"
        reached = any(step.awaits >= at for step in steps)
        world.close()
        if not reached:
            break
    assert 3 < at < 59


def test_without_hard_stops_the_steps_end_it(make: Make) -> None:
    settings = {"tool_loop_guardrails": {"hard_stop_enabled": False}, "agent": {"max_turns": 6}}
    world = make(script(CASES["repeats an answer"], 6), tools=tools(), settings=settings)
    world.say("work")
    world.run(120)
    assert len(results(world)) == 6
    assert "Loop guard" in results(world)[-1].text


def test_a_question_asked_again_and_again_is_blocked_as_any_other_call(make: Make) -> None:
    world = make([Calls((("clarify", {"question": "Tea?"}),))] * 4 + [answer("tea then")])
    world.say("order")
    for _ in range(3):
        world.run(20)
        world.say("yes")
    world.run(20)
    assert world.heard() == ["Tea?"] * 3 + ["tea then"]
    assert [r.status.value for r in results(world)] == ["ok"] * 3 + ["not_run"]


def test_what_the_person_adds_in_mid_turn_begins_the_counts_anew_also_after_a_kill(make: Make) -> None:
    call = Calls((("broken", {}),), after=5.0)
    for killed in (False, True):
        broken = Counting("broken", ToolEffect.PURE, good=False)
        world = make([call] * 20, tools=[broken])
        world.say("work")
        world.run(12)
        assert len(broken.ran) == 2
        world.say("/steer it should work now")
        world.run(7)
        if killed:
            world.kill()
        world.run(120)
        told = next(k for k, i in enumerate(transcript(world)) if "should work now" in i.text)
        after = [i.status.value for i in transcript(world)[told:] if isinstance(i, ToolResultItem)]
        assert after == ["error"] * 3 + ["not_run"] * 2
        world.close()


# ---- FIELD_REPORTS 38, 39 ----


def test_report_38_the_same_call_five_hundred_times_runs_three_times(make: Make) -> None:
    act = Counting("act", ToolEffect.ONCE)
    world = make([Calls((("act", {}),) * 500)], tools=[act])
    world.say("work")
    world.run(120)
    assert len(act.ran) == 3
    assert len(results(world)) == 500
    check_legal(world)


def test_report_39_a_block_is_a_result_first_and_the_halt_stops_the_later_calls_too(make: Make) -> None:
    broken, act = Counting("broken", ToolEffect.PURE, good=False), Counting("act", ToolEffect.ONCE)
    batch = Calls((*((("broken", {}),) * 5), ("act", {"n": 1})))
    world = make([Calls((("broken", {}),) * 4), answer("I see"), batch], tools=[broken, act])
    world.say("once")
    assert world.run(60).heard() == ["I see"]
    world.say("again")
    world.run(60)
    assert act.ran == []
    assert [r.status.value for r in results(world)][4:] == ["error"] * 3 + ["not_run"] * 3
