"""Simulation: money. Whatever loops, fails or dies, no cap is passed by more than one reservation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hermes.agent.account import prompt_tokens
from hermes.core.transcript import AssistantItem, ModelReply, ModelRequest, Usage
from hermes.policy.trim import item_tokens
from tests.simulation.outside import Answer, ScriptedModel, answer, cut_after, refused, status, tool_call
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

PRICE = {"context_window": 100_000, "max_output": 1000, "price_input": 3.0, "price_output": 15.0}


def priced(budget: dict[str, float], **more: Any) -> dict[str, Any]:
    models = {"m": {**PRICE, **more}}
    sim = {"kind": "openai", "base_url": "http://sim.invalid/v1", "models": models}
    unbounded = {"hard_stop_enabled": False}
    return {
        "providers": {"sim": sim}, "agent": {"budget": budget, "max_turns": 400}, "tool_loop_guardrails": unbounded,
    }  # fmt: skip


def loop() -> list[Any]:
    """A model that never ends by itself."""
    return [tool_call("session_search", query=f"tea {n} {n * 7919}") for n in range(500)]


class HonestModel(ScriptedModel):
    """Reports the tokens that were sent and said."""

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        reply = await super().complete(request, on_text)
        said = item_tokens(AssistantItem(reply.text, reply.tool_calls))
        return replace(reply, usage=Usage(prompt_tokens(request), said))


@pytest.fixture
def make(make: Make) -> Make:
    def honest(script: Sequence[Any] = (), **more: Any) -> World:
        world = make((), **more)
        world.model = HonestModel(script)
        return world

    return honest


def spent(world: World) -> float:
    [(usd,)] = world.rows("SELECT coalesce(sum(actual_usd), 0) FROM ledger")
    return float(usd)


def check_books(world: World) -> None:
    """Nothing stays open, and each running total is the sum of its rows."""
    assert world.rows("SELECT count(*) FROM ledger WHERE state='open'") == [(0,)]
    for scope, columns in (
        ("turn", "turn_id"), ("session", "session_id || ':' || generation"),
        ("person", "principal_id || ':' || day"), ("day", "day"),
    ):  # fmt: skip
        sums = world.rows(f"SELECT '{scope}:' || {columns} AS k, sum(actual_usd) FROM ledger GROUP BY k")
        totals = dict(world.rows("SELECT key, usd FROM spend"))
        for key, usd in sums:
            assert totals.get(key, 0.0) == pytest.approx(usd, abs=1e-9), key


CAPS = ("turn_usd", "session_usd", "user_day_usd", "day_usd")
SAID = {
    "turn_usd": "for one turn is used up", "session_usd": "for this conversation is used up",
    "user_day_usd": "Your budget of", "day_usd": "for everybody is used up",
}  # fmt: skip


@pytest.mark.parametrize("cap", CAPS)
def test_a_looping_model_stops_at_each_cap_and_the_person_is_told_once(make: Make, cap: str) -> None:
    world = make(loop(), settings=priced({cap: 0.1}))
    world.say("go")
    world.run(2000)
    assert 0.08 < spent(world) <= 0.1 + 1e-9
    [told] = world.heard()
    assert SAID[cap] in told
    assert dict(world.outcomes()) == {"go": "failed_told"}
    check_books(world)


@pytest.mark.parametrize("cap", ["session_usd", "user_day_usd", "day_usd"])
def test_under_an_exhausted_cap_a_message_gets_the_same_sentence_and_costs_no_call(make: Make, cap: str) -> None:
    world = make(loop(), settings=priced({cap: 0.1}))
    world.say("go")
    world.run(2000)
    asked = len(world.model.requests)
    world.say("again")
    world.run(30)
    assert len(world.model.requests) == asked
    assert world.heard()[0] == world.heard()[1]
    assert dict(world.outcomes()) == {"go": "failed_told", "again": "failed_told"}


def test_a_new_conversation_has_a_new_budget(make: Make) -> None:
    world = make(loop(), settings=priced({"session_usd": 0.1}))
    world.say("go")
    world.run(2000)
    world.model.script.clear()
    world.say("/new")
    world.run(10)
    world.say("hello")
    world.run(30)
    assert world.heard()[-1] == "You said: hello"


def test_a_new_day_has_a_new_budget_in_the_owners_zone(make: Make) -> None:
    world = make(loop(), settings=priced({"day_usd": 0.1}) | {"timezone": "Asia/Tokyo"})
    world.say("go")
    world.run(2000)
    world.model.script.clear()
    world.run(24 * 3600)
    world.say("hello")
    world.run(30)
    assert world.heard()[-1] == "You said: hello"


def test_twenty_conversations_at_once_do_not_pass_the_days_cap(make: Make) -> None:
    people = [str(n) for n in range(100, 120)]
    settings = priced({"day_usd": 0.5})
    settings["platforms"] = {"telegram": {"enabled": True, "token": "1:abcdefgh", "allowed_users": people}}
    world = make(loop(), settings=settings)
    for one in people:
        world.say("go", chat=one)
    world.run(3000)
    assert 0.4 < spent(world) <= 0.5 + 1e-9
    for one in people:
        assert len(world.heard(one)) == 1
        assert SAID["day_usd"] in world.heard(one)[0]
    check_books(world)


@pytest.mark.parametrize("round_", range(6))
def test_kills_in_mid_call_charge_what_was_reserved_and_pass_no_cap(make: Make, round_: int, seed: int) -> None:
    rng = random.Random(seed)
    world = make(loop(), settings=priced({"session_usd": 0.1, "day_usd": 0.15}), seed=seed)
    for n in range(12):
        world.say(f"message {n}", chat=rng.choice("789"))
        world.run(rng.expovariate(0.3))
        if rng.random() < 0.6:
            world.kill()
    world.run(3000)
    assert spent(world) <= 0.15 + 1e-9
    per_session = world.rows("SELECT sum(actual_usd) FROM ledger GROUP BY session_id")
    assert all(usd <= 0.1 + 1e-9 for (usd,) in per_session)
    assert all(outcome for _, outcome in world.outcomes())
    check_books(world)


def test_a_refused_connection_costs_nothing_and_a_cut_stream_what_came(make: Make) -> None:
    world = make([refused(), status(500), cut_after(3), answer("done")], settings=priced({}))
    world.say("go")
    world.run(200)
    assert world.heard() == ["done"]
    rows = world.rows("SELECT state, actual_usd, reserved_usd FROM ledger ORDER BY id")
    assert [state for state, _, _ in rows] == ["released", "released", "charged", "settled"]
    assert rows[0][1] == rows[1][1] == 0.0
    assert 0.0 < rows[2][1] < rows[2][2]
    check_books(world)


def test_retries_and_fallbacks_are_reserved_at_their_own_price(make: Make) -> None:
    settings = priced({})
    world = make([status(404, "model not found")] * 3, spare=[answer("from the spare")], settings=settings)
    world.say("go")
    world.run(300)
    assert world.heard() == ["from the spare"]
    rows = world.rows("SELECT provider, state, reserved_usd, priced FROM ledger ORDER BY id")
    assert rows[0][:2] == ("sim", "released")
    assert rows[-1] == ("spare", "settled", 0.0, 0), "the spare has no price: its tokens are counted"


def test_without_prices_an_attempt_costs_no_transaction_of_its_own(make: Make) -> None:
    world = make([status(500), status(500), answer("done")])
    world.say("go")
    world.run(200)
    assert world.rows("SELECT state, calls, input_tokens > 0 FROM ledger") == [("settled", 3, 1)]
    assert world.rows("SELECT count(*) FROM spend") == [(0,)]


def test_a_steps_budget_ends_with_one_closing_call_without_tools(make: Make) -> None:
    script = [*loop()[:3], answer("I looked three times; the rest is left.")]
    world = make(script, settings={"agent": {"max_turns": 3}})
    world.say("go")
    world.run(200)
    [told] = world.heard()
    assert told.startswith("I looked three times; the rest is left.\n\nI stopped after 3 steps")
    assert [len(r.tools) > 0 for r in world.model.requests] == [True, True, True, False]
    purposes = world.rows("SELECT purpose, count(*) FROM ledger GROUP BY purpose ORDER BY 1")
    assert purposes == [("closing", 1), ("turn", 3)]
    assert dict(world.outcomes()) == {"go": "failed_told"}


@pytest.mark.parametrize("last", [tool_call("session_search", query="more"), status(400, "bad"), Answer("  ")])
def test_where_the_closing_call_gives_no_words_the_sentence_stands_alone(make: Make, last: Any) -> None:
    world = make([*loop()[:2], last, last, last, last], settings={"agent": {"max_turns": 2, "api_max_retries": 0}})
    world.say("go")
    world.run(400)
    assert world.heard() == ["I stopped after 2 steps without a final answer. Say “go on” and I continue from here."]


def test_failed_calls_cost_no_step(make: Make) -> None:
    script = [status(500), *loop()[:1], status(500), status(500), answer("done")]
    world = make(script, settings={"agent": {"max_turns": 2}})
    world.say("go")
    world.run(300)
    assert world.heard() == ["done"]


def test_a_turns_tokens_are_bounded_over_a_kill(make: Make) -> None:
    world = make(loop(), settings={"agent": {"budget": {"turn_tokens": 5_000}}})
    world.say("go")
    world.run(4)
    world.kill()
    world.run(300)
    assert "budget of 5,000 tokens" in world.heard()[0]
    assert len(world.model.requests) < 12


def test_a_kill_in_the_closing_call_makes_no_second_one(make: Make) -> None:
    world = make([*loop()[:2], answer("closing", after=50.0)], settings={"agent": {"max_turns": 2}})
    world.say("go")
    world.run(20)
    assert len(world.model.requests) == 3
    world.kill()
    world.run(300)
    assert len(world.model.requests) == 3
    assert "I stopped after 2 steps" in world.heard()[0]


def test_an_answer_is_bounded_to_what_the_money_allows(make: Make) -> None:
    world = make([answer("short")], settings=priced({"turn_usd": 0.008}))
    world.say("go")
    world.run(30)
    assert world.heard() == ["short"]
    [request] = world.model.requests
    assert request.max_output is not None
    assert 256 <= request.max_output < 1000


def test_a_call_dearer_than_the_whole_budget_is_said_to_be_so(make: Make) -> None:
    world = make([answer("never")], settings=priced({"turn_usd": 0.0001}))
    world.say("go")
    world.run(30)
    assert not world.model.requests
    assert "One call to the model may cost up to" in world.heard()[0]
    assert "agent.budget.turn_usd" in world.heard()[0]


def test_a_model_without_a_price_is_not_kept_back_by_caps_on_money(make: Make) -> None:
    world = make(settings={"agent": {"budget": {"turn_usd": 0.000001, "day_usd": 0.000001}}})
    world.say("go")
    assert world.run(30).heard() == ["You said: go"]


def test_caps_that_change_hold_for_the_turn_that_runs(make: Make) -> None:
    world = make(loop(), settings=priced({}))
    world.say("go")
    world.run(20)
    assert world.gateway is not None
    money = world.gateway.runner.money
    money.caps = type(money.caps)(turn=spent(world))
    world.run(60)
    assert SAID["turn_usd"] in world.heard()[0]


def test_a_stop_in_mid_call_charges_what_came(make: Make) -> None:
    world = make([answer("word " * 100, pieces=50)], settings=priced({}))
    world.say("go")
    world.run(6)
    world.say("/stop")
    world.run(30)
    [(state, usd, reserved)] = world.rows("SELECT state, actual_usd, reserved_usd FROM ledger")
    assert state == "charged"
    assert 0 < usd < reserved
    check_books(world)


def test_the_models_own_count_is_what_is_paid(make: Make) -> None:
    world = make([*loop()[:2], answer("done")], settings=priced({"day_usd": 1.0}))
    world.say("go")
    world.run(60)
    for usd, tokens_in, tokens_out in world.rows("SELECT actual_usd, input_tokens, output_tokens FROM ledger"):
        assert usd == pytest.approx((tokens_in * 3 + tokens_out * 15) / 1e6)
