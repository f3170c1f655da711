"""kill -9 at every named point and at random moments, in virtual time: promises 1, 2 and 7."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from hermes.core.delivery import MARK_PREFIX
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolResultItem, ToolSpec, load_item
from tests.simulation.outside import answer, tool_call
from tests.simulation.world import SimulatedKill, World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

POINTS = (
    "before_t1", "after_t1", "after_offset", "after_claim", "after_step_intent", "after_step_result",
    "after_tool_intent", "after_tool_effect", "after_tool_result", "before_t2", "after_t2",
    "sending_before_bytes", "sending_after_bytes",
)  # fmt: skip


class Effect:
    """A tool with a side effect: it counts how often it ran."""

    effect = ToolEffect.ONCE
    spec = ToolSpec("effect", "Does something once.", {"type": "object", "properties": {}})

    def __init__(self, kills: int = 0) -> None:
        self.runs = 0
        self.kills = kills

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        self.runs += 1
        if self.kills:
            self.kills -= 1
            raise SimulatedKill("the tool")
        return "done"


def check_promises(world: World, said: dict[str, list[str]]) -> None:
    """Each accepted row has one outcome, each message one unmarked answer at most and one answer at least."""
    assert all(outcome for _, outcome in world.outcomes())
    for chat, texts in said.items():
        heard = world.heard(chat)
        unmarked = [t for t in heard if not t.startswith(MARK_PREFIX)]
        for text in texts:
            assert any(text in t for t in heard), (chat, text, heard)
            assert sum(text in t for t in unmarked) <= 1, (chat, text, heard)
    assert world.rows("SELECT count(*) FROM turns WHERE state<>'done'") == [(0,)]
    open_rows = "SELECT count(*) FROM outbox WHERE state IN ('drafting','pending','sending','uncertain')"
    assert world.rows(open_rows) == [(0,)]
    assert world.rows("SELECT count(*) FROM ledger WHERE state='open'") == [(0,)]
    assert world.rows("SELECT count(*) FROM turns WHERE parked=1") == [(0,)]
    check_legal(world)


def check_legal(world: World) -> None:
    """Promise 6: each tool call has exactly one result."""
    for (session,) in world.rows("SELECT id FROM sessions"):
        found = world.rows(f"SELECT item FROM messages WHERE session_id='{session}' ORDER BY seq")
        items = [load_item(text) for (text,) in found]
        calls = [c.call_id for i in items for c in getattr(i, "tool_calls", ())]
        results = [i.call_id for i in items if isinstance(i, ToolResultItem)]
        assert sorted(calls) == sorted(results)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_named_point_everything_is_answered_once(make: Make, point: str) -> None:
    tool = Effect()
    world = make([tool_call("effect"), answer("You said: first")], tools=[tool])
    world.checkpoints.at = point
    world.say("first")
    world.run(120)
    assert world.kills == 1, f"{point} was never reached"
    world.say("second")
    world.run(120)
    check_promises(world, {"7": ["first", "second"]})
    assert tool.runs <= 1


def test_a_draft_of_unknown_fate_is_followed_by_a_marked_answer_after_half_a_minute(make: Make) -> None:
    world = make([answer("word " * 20, pieces=20), answer("the whole answer")])
    world.checkpoints.at = "drafting"
    world.say("tell me")
    world.run(25)
    assert world.kills == 1
    assert world.heard() == []
    world.run(60)
    assert world.heard() == [f"{MARK_PREFIX}the whole answer"]


def test_a_draft_of_unknown_fate_is_held_where_repeats_are_not_wanted(make: Make) -> None:
    hold = {"gateway": {"delivery": {"uncertain": "hold"}}}
    world = make([answer("word " * 20, pieces=20), answer("the whole answer")], settings=hold)
    world.checkpoints.at = "drafting"
    world.say("tell me")
    world.run(120)
    assert world.heard() == []
    assert world.rows("SELECT state FROM outbox") == [("held",)]


@pytest.mark.parametrize("point", ["after_t2", "sending_before_bytes", "sending_after_bytes"])
def test_a_committed_answer_costs_no_further_model_request(make: Make, point: str) -> None:
    world = make([answer("paid for")])
    world.checkpoints.at = point
    world.say("hi")
    world.run(120)
    assert world.kills == 1
    assert len(world.model.requests) == 1
    assert any("paid for" in t for t in world.heard())


def test_a_tool_cut_off_between_effect_and_result_comes_back_as_unknown(make: Make) -> None:
    tool = Effect()
    world = make([tool_call("effect"), answer("I will check")], tools=[tool])
    world.checkpoints.at = "after_tool_effect"
    world.say("do it")
    world.run(120)
    assert tool.runs == 1
    assert "outcome is unknown" in str(world.model.requests[-1].items)
    assert world.heard() == ["I will check"]


def test_a_tool_that_kills_three_times_is_parked_and_all_else_goes_on(make: Make) -> None:
    tool = Effect(kills=3)
    world = make([tool_call("effect"), tool_call("effect"), tool_call("effect"), tool_call("effect")], tools=[tool])
    world.say("deadly")
    world.run(30)
    world.say("hello", chat="8")
    world.run(300)
    assert world.kills == 3
    assert world.heard("8") == ["You said: hello"]
    assert "put this request aside" in world.heard("7")[-1]
    assert dict(world.outcomes()) == {"deadly": "dead_letter", "hello": "answered"}
    world.say("still there?")
    assert "You said: still there?" in world.run(60).heard("7")[-1]


def test_an_orderly_stop_in_mid_turn_counts_nothing_and_resumes(make: Make) -> None:
    world = make([answer("never", after=500.0), answer("after the restart")])
    world.say("hi")
    world.run(5).stop(drain=1.0)
    world.run(60)
    assert world.heard() == ["after the restart"]
    assert world.rows("SELECT crashes FROM turns") == [(0,)]


@pytest.mark.parametrize("round_", range(12))
def test_random_kills_under_load(make: Make, round_: int, seed: int) -> None:
    rng = random.Random(seed)
    world = make(seed=seed)
    said: dict[str, list[str]] = {"7": [], "8": [], "9": []}
    for n in range(30):
        chat = rng.choice("789")
        said[chat].append(f"message-{n}-")
        world.say(f"message-{n}-", chat=chat)
        world.run(rng.expovariate(1.0))
        if rng.random() < 0.4:
            world.kill()
    world.run(400)
    check_promises(world, said)


def test_a_command_accepted_right_before_a_kill_never_becomes_text_for_the_model(make: Make) -> None:
    world = make([answer("working", after=30.0)])
    world.say("work")
    world.run(5)
    world.say("/status")
    world.say("/help")
    world.say("more")
    world.checkpoints.at = "after_t1"
    world.run(200)
    assert world.kills == 1
    outcomes = dict(world.outcomes())
    assert (outcomes["/status"], outcomes["/help"]) == ("command", "command")
    assert not any("/status" in str(r.items) for r in world.model.requests)
