"""Simulation: /goal. A conversation works by itself, and stops at every bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hermes.core.transcript import ModelRequest, UserItem
from hermes.policy.goals import JUDGE
from tests.simulation.outside import Answer, ScriptedModel, answer, status
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


class Judged(ScriptedModel):
    """Works as scripted, and judges as scripted: two lines of words."""

    def __init__(self, work: list[Any], verdicts: list[str]) -> None:
        super().__init__(work)
        self.verdicts = verdicts
        self.judged = 0

    def _default(self, request: ModelRequest) -> Answer:
        said = [i.text for i in request.items if isinstance(i, UserItem)]
        return Answer(f"Did: {said[-1][:40]}")

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> Any:
        if request.system == JUDGE:
            self.judged += 1
            said = self.verdicts.pop(0) if self.verdicts else "continue"
            kept, self.script = self.script, type(self.script)([answer(said)])
            try:
                return await super().complete(request, on_text)
            finally:
                self.requests.pop()
                self.script = kept
        return await super().complete(request, on_text)


@pytest.fixture
def start(make: Make) -> Callable[..., tuple[World, Judged]]:
    def begun(work: list[Any], verdicts: list[str], **settings: Any) -> tuple[World, Judged]:
        world = make(settings=settings or None)
        world.model = model = Judged(work, verdicts)
        return world, model

    return begun


def verdict(word: str, why: str = "because") -> str:
    return json.dumps({"verdict": word, "why": why})


def test_a_goal_goes_on_by_itself_until_the_judge_finds_it_reached(start: Any) -> None:
    world, model = start(
        [answer("half"), answer("whole")], [verdict("continue", "a half is missing"), verdict("done", "all there")]
    )
    world.say("/goal bake a cake")
    world.run(120)
    set_, half, whole, reached = world.heard()
    assert set_.startswith("The goal is set.")
    assert (half, whole, reached) == ("half", "whole", "The goal is reached after 2 turns: all there")
    assert "a half is missing" in str(model.requests[1].items[-1])
    assert world.rows("SELECT state, turns FROM goals") == [("done", 2)]
    assert world.rows("SELECT purpose, count(*) FROM ledger GROUP BY purpose ORDER BY 1") == [("judge", 2), ("turn", 2)]


def test_a_goal_never_reached_takes_its_turns_and_no_more(start: Any) -> None:
    world, model = start([], [], goals={"max_turns": 4})
    world.say("/goal find the end of pi")
    world.run(600)
    assert len(model.requests) == 4
    assert "I took 4 turns and the goal is not reached" in world.heard()[-1]
    assert len([t for t in world.heard() if t.startswith("Did:")]) == 4
    world.say("/goal resume")
    world.run(600)
    assert len(model.requests) == 8


def test_a_message_is_answered_first_and_the_goal_goes_on_after_it(start: Any) -> None:
    world, model = start(
        [answer("one", after=20.0), answer("two"), answer("three")], [verdict("continue"), verdict("done")]
    )
    world.say("/goal count")
    world.run(10)
    world.say("how far are you?")
    world.run(200)
    assert [text for text in world.heard() if text in ("one", "two", "three")] == ["one", "two", "three"]
    assert dict(world.outcomes())["how far are you?"] == "answered"
    assert "how far are you?" in str(model.requests[1].items[-1])
    assert "standing goal" in str(model.requests[2].items[-1])


@pytest.mark.parametrize("command", ["/stop", "/goal clear", "/goal pause"])
def test_the_person_ends_it(start: Any, command: str) -> None:
    world, model = start([answer("one"), answer("two", after=30.0)], [])
    world.say("/goal count")
    world.run(15)
    world.say(command)
    world.run(300)
    assert len(model.requests) == 2
    left = world.rows("SELECT state FROM goals")
    assert left == ([] if command == "/goal clear" else [("paused",)])
    world.say("/goal")
    world.run(10)
    assert ("No goal is set" in world.heard()[-1]) == (command == "/goal clear")


@pytest.mark.parametrize("after", [3.0, 6.0, 8.0, 14.0, 20.0, 26.0])
def test_a_goal_survives_a_kill_wherever_it_comes(start: Any, after: float) -> None:
    work = [answer("one", after=5.0), answer("two", after=5.0), answer("three", after=5.0)]
    world, _ = start(work, [verdict("continue"), verdict("continue"), verdict("done")])
    world.say("/goal count to three")
    world.run(after)
    world.kill()
    world.run(300)
    assert world.rows("SELECT state FROM goals") == [("done",)]
    assert world.heard()[-1].startswith("The goal is reached")
    assert world.rows("SELECT count(*) FROM ledger WHERE state='open'") == [(0,)]
    assert world.rows("SELECT max(turns) <= 4 FROM goals") == [(1,)]


def test_a_goal_whose_turn_fails_is_paused(start: Any) -> None:
    world, model = start([status(401, "bad key")] * 9, [])
    world.say("/goal try")
    world.run(600)
    assert "paused: its last turn failed" in world.heard()[-1]
    assert len(model.requests) == 1


def test_judgements_that_cannot_be_read_pause_it(start: Any) -> None:
    world, model = start([], ["I think the goal is done!", "verdict: done"])
    world.say("/goal try")
    world.run(600)
    assert "cannot be read" in world.heard()[-1]
    assert (len(model.requests), model.judged) == (2, 2)


def test_a_blocked_goal_asks_the_person(start: Any) -> None:
    world, _ = start([answer("I need the key.")], [verdict("blocked", "the key is missing"), verdict("done")])
    world.say("/goal open the door")
    world.run(60)
    assert "The goal is blocked: the key is missing" in world.heard()[-1]
    world.say("/goal resume")
    world.run(60)
    assert world.heard()[-1].startswith("The goal is reached")


def test_a_goal_ends_where_the_money_does(start: Any) -> None:
    models = {"m": {"context_window": 100_000, "max_output": 1000, "price_input": 300.0, "price_output": 1500.0}}
    sim = {"kind": "openai", "base_url": "http://sim.invalid/v1", "models": models}
    world, model = start([], [], providers={"sim": sim}, agent={"budget": {"session_usd": 0.75}})
    world.say("/goal spend")
    world.run(3000)
    assert len(model.requests) < 15
    assert world.rows("SELECT state FROM goals") == [("paused",)]
    assert sum("used up" in text for text in world.heard()) == 1


def test_a_goal_sleeps_while_another_conversation_is_open(start: Any) -> None:
    world, model = start([answer("one", after=20.0), answer("fresh")], [])
    world.say("/goal count")
    world.run(10)
    world.say("/new")
    world.run(60)
    asked = len(model.requests)
    world.say("hello")
    world.run(60)
    assert len(model.requests) == asked + 1
    world.say("/goal")
    world.run(10)
    assert "No goal is set" in world.heard()[-1]


def test_a_goal_is_shown_by_status(start: Any) -> None:
    world, _ = start([answer("one", after=50.0)], [])
    world.say("/goal count")
    world.run(5)
    world.say("/status")
    world.run(5)
    assert "Goal, active, 1 of 15 turns taken: count" in world.heard()[-1]


def test_usage_says_what_calls_took_and_cost(make: Make) -> None:
    models = {"m": {"context_window": 100_000, "price_input": 3.0, "price_output": 15.0}}
    sim = {"kind": "openai", "base_url": "http://sim.invalid/v1", "models": models}
    budget = {"turn_usd": 0.5, "user_day_usd": 2.0}
    world = make([answer("x" * 400)], settings={"providers": {"sim": sim}, "agent": {"budget": budget}})
    world.say("go")
    world.run(20)
    world.say("/usage")
    world.run(5)
    told = world.heard()[-1]
    assert "This conversation: 1 call, 10 tokens in, 100 out, $0.0015" in told
    assert "• sim/m: 1 call" in told
    assert "• one turn: up to $0.50" in told
    assert "• you today: $0.0015 of $2.00, $2.00 left" in told


def test_usage_says_that_a_price_is_not_known(make: Make) -> None:
    world = make([answer("x" * 40)])
    world.say("go")
    world.run(20)
    world.say("/usage")
    world.run(5)
    assert "1 call, 10 tokens in, 10 out, price unknown" in world.heard()[-1]
    assert "No budget is set." in world.heard()[-1]


def test_a_goal_stops_when_its_author_may_not_talk_any_more(start: Any) -> None:
    world, model = start([answer("one", after=20.0)], [])
    world.say("/goal count")
    world.run(10)
    assert world.gateway is not None
    world.gateway.access.policies.clear()
    world.run(300)
    assert len(model.requests) == 1
    assert world.rows("SELECT state, reason FROM goals") == [("paused", "access")]


def test_a_goals_turns_wait_behind_people_and_have_a_users_rights(start: Any) -> None:
    world, _ = start([answer("one")], [verdict("done")])
    world.say("/goal count")
    world.run(60)
    assert world.rows("SELECT urgency, role, goal FROM turns") == [(1, 2, 1)]
