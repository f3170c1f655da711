"""Admission, outages and the way back, in virtual time: the real gateway against an upstream with limits of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.core.failures import FaultKind
from hermes.core.governor import CallRequest, Circuit, Refused
from hermes.gateway.control import ControlServer
from hermes.gateway.held import Held
from tests.simulation.limits import (
    ANYBODY,
    SUPERVISOR,
    Bucket,
    Cli,
    Minute,
    Sliding,
    Upstream,
    WaitALittle,
    upstream,
)
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

@pytest.mark.parametrize("headers", [{}, {"retry-after": "30"}], ids=["silent", "retry-after"])
@pytest.mark.parametrize(
    "limit",
    [lambda: Minute(20), lambda: Minute(20, 47.0), lambda: Sliding(20), lambda: Bucket(20)],
    ids=["minutes", "wall clock", "sliding", "bucket"],
)
def test_fifty_sessions_and_the_cli_learn_an_unknown_limit_together(
    make: Make, limit: Callable[[], Callable[[float], bool]], headers: dict[str, str]
) -> None:
    world = make(settings=ANYBODY)
    model = upstream(world)
    model.admits, model.headers = limit(), headers
    world.run(1.0)
    cli = Cli(world)

    async def talk() -> None:
        task = asyncio.get_running_loop().create_task(cli.keep_talking())
        asked = dict.fromkeys((str(100 + n) for n in range(50)), 0)
        try:
            for _ in range(300):
                for chat, count in asked.items():
                    if len(world.heard(chat)) >= count:
                        asked[chat] = count + 1
                        world.say(f"message {count} of {chat}", chat=chat)
                await asyncio.sleep(1.0)
        finally:
            task.cancel()

    start = world.now()
    world._in_loop(talk())
    needed = sum(status == 200 for _, status in model.calls)
    assert needed >= 85, "the allowance is used"
    assert len(model.calls) / needed <= 1.1
    refused = [at - start for at in model.refused()]
    for window in range(1, 5):
        assert sum(60.0 * window <= at < 60.0 * (window + 1) for at in refused) <= 1, refused
    assert len(cli.answers) >= 1, "the command line has its turn too"
    assert max(len(world.heard(str(100 + n))) for n in range(50)) <= 3, "nobody is served before others"


def test_with_a_configured_limit_no_call_is_refused(make: Make) -> None:
    provider = {"kind": "openai", "base_url": "http://sim.invalid/v1", "requests_per_minute": 20}
    world = make(settings={**ANYBODY, "providers": {"sim": provider}})
    model = upstream(world)
    model.admits = Sliding(20)
    for n in range(50):
        world.say("hi", chat=str(100 + n))
    world.run(200)
    assert model.refused() == []
    assert all(world.heard(str(100 + n)) == ["You said: hi"] for n in range(50))


@pytest.mark.parametrize("restart", [False, True], ids=["one process", "a restart in the middle"])
def test_sixty_minutes_of_503_are_answered_afterwards_in_order(make: Make, restart: bool) -> None:
    world = make(settings=ANYBODY)
    model = upstream(world)
    model.down = (10.0, 3610.0)
    chats = [str(100 + n) for n in range(10)]
    world.run(15)
    for n in range(60):
        world.say(f"m{n}-", chat=chats[n % 10])
        world.run(57)
        if restart and n == 30:
            world.kill()
    assert all(len(world.heard(chat)) == 1 for chat in chats), "one notice a chat, and no answer yet"
    assert world.rows("SELECT count(*) FROM turns WHERE state='suspended' AND cause='outage'") == [(10,)]
    calls = len(model.calls)
    assert calls < 120, "an outage is probed, not hammered"
    world.run(300)
    assert len({outcome for _, outcome in world.outcomes()} - {"answered", "merged_into"}) == 0
    for at, chat in enumerate(chats):
        notice, *answers = world.heard(chat)
        assert "I keep your message" in notice
        said = "".join(answers)
        places = [said.find(f"m{n}-") for n in range(at, 60, 10)]
        assert -1 not in places
        assert places == sorted(places)
    assert world.rows("SELECT count(*) FROM turns WHERE state<>'done'") == [(0,)]
    assert world.rows("SELECT count(*) FROM ledger WHERE state='open'") == [(0,)]
    first = [next(m.at for m in world.server.chats[chat] if "You said" in m.text) for chat in chats]
    assert first == sorted(first), "oldest first"


def test_while_parked_the_session_is_open_to_commands(make: Make) -> None:
    world = make()
    model = upstream(world)
    model.down = (0.0, 400.0)
    world.say("hello")
    world.run(100)
    assert len(world.heard()) == 1
    world.say("/status")
    world.run(5)
    assert "model sim/m" in world.heard()[1]
    world.say("/stop")
    world.run(5)
    assert "topped" in world.heard()[2]
    assert world.outcomes()[0] == ("hello", "stopped")
    world.run(600)
    world.say("again")
    assert world.run(10).heard()[-1] == "You said: again"
    assert sum("You said" in text for text in world.heard()) == 1


def test_what_waits_too_long_ends_with_a_sentence(make: Make) -> None:
    world = make(settings={"gateway": {"max_age": 600}})
    model = upstream(world)
    model.down = (0.0, 1e9)
    world.say("hello")
    world.run(1000)
    assert "could not be reached for too long" in world.heard()[-1]
    assert world.outcomes() == [("hello", "expired_told")]


def test_another_upstream_is_not_disturbed(make: Make) -> None:
    world = make(spare=())
    model = upstream(world)
    model.down = (0.0, 1e9)
    world.say("hello")
    assert world.run(120).heard() == ["You said: hello"], "the fallback answers"
    world.run(30)
    before = len(model.calls)
    world.say("again")
    assert world.run(3).heard() == ["You said: hello", "You said: again"]
    assert len(model.calls) - before <= 1, "a guarded target is skipped without a call"


def test_while_one_upstream_is_down_calls_to_another_go_out_at_once(make: Make) -> None:
    """The command line calls the other one, admitted by the gateway's governor, while turns are parked."""
    world = make(settings=ANYBODY)
    model = upstream(world)
    model.down = (0.0, 1e9)
    for n in range(30):
        world.say("hello", chat=str(100 + n))
    world.run(120)
    g = world.gateway
    assert g is not None
    assert g.governor.views()["sim/m"].circuit is not Circuit.CLOSED
    port = ControlServer(Path("control.sock"), g.door, g.actions, str, str, SUPERVISOR, g.governor)
    waits = []

    async def send(message: dict[str, Any]) -> None:
        """Nobody reads it."""

    async def calls() -> None:
        held = Held()
        for _ in range(200):
            began = world.now()
            granted = await port.answer({"op": "admit", "target": "other/m"}, send, held)
            assert isinstance(granted, dict)
            await port.answer({"op": "settle", "grant": granted["grant"], "ok": True}, send, held)
            waits.append(world.now() - began)

    world._in_loop(calls())
    assert max(waits) < 0.01


@pytest.mark.parametrize(("overflow", "whole"), [("compact", False), ("fallback", True)])
def test_a_long_conversation_is_shortened_or_goes_to_the_larger_window(
    make: Make, overflow: str, whole: bool
) -> None:
    providers = {
        name: {"kind": "openai", "base_url": f"http://{name}.invalid/v1", "models": {"m": {"context_window": window}}}
        for name, window in (("sim", 4_000), ("spare", 200_000))
    }
    world = make(spare=(), settings={"agent": {"overflow": overflow}, "providers": providers})
    for n in range(12):
        world.say(f"part {n} " + "word " * 300)
        world.run(10)
    assert world.spare is not None
    last = (world.spare if whole else world.model).requests[-1]
    assert ("part 0 " in str(last.items[:2])) is whole
    assert bool(world.spare.requests) is whole
    assert not any("error" in text for text in world.heard())


def test_the_primary_is_taken_back_inside_a_long_turn(make: Make) -> None:
    world = make(spare=(), tools=[WaitALittle()])
    model = upstream(world)
    spare = world.spare = Upstream(world.now, "spare")
    model.down = (0.0, 60.0)
    model.steps = spare.steps = 10_000
    world.say("work")
    world.run(2)
    while len(model.calls) + len(spare.calls) < 60 and world.now() < 600:
        if world.rows("SELECT max(step) FROM turns")[0][0] >= 36:
            model.steps = spare.steps = 0
        world.run(1)
    assert world.heard()[-1] == "You said: work"
    back = next(at for at, status in model.calls if status == 200)
    assert spare.calls, "the fallback worked meanwhile"
    assert all(at < back for at, _ in spare.calls), "from its recovery on the primary did all"
    assert sum(status == 503 for _, status in model.calls) <= 4 + 4, "its attempts, then probes only"


@pytest.mark.parametrize("down", [12.0, 45.0, 300.0])
def test_a_server_on_this_machine_that_was_killed_is_found_again_within_seconds(make: Make, down: float) -> None:
    provider = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1"}
    world = make(settings={"providers": {"sim": provider}})
    model = upstream(world)
    model.down, model.kind = (1.0, down), FaultKind.REFUSED
    world.run(1.5)
    world.say("hello")
    world.run(down - world.now())
    assert "You said: hello" not in world.heard()
    world.say("and now?", chat="8")
    back = 15.0 if down < 40.0 else 4.5  # within the first half minute the call's own retries wait
    world.run(back)
    assert "You said: hello" in world.heard()
    assert "You said: and now?" in world.heard("8")


def test_a_half_open_circuit_lets_one_probe_through(make: Make) -> None:
    world = make(settings=ANYBODY)
    model = upstream(world)
    model.down = (0.0, 200.0)
    for n in range(20):
        world.say("hi", chat=str(100 + n))
    world.run(100)
    model.most_at_once = 0
    probes_from = len(model.calls)
    for n in range(20, 40):
        world.say("hi", chat=str(100 + n))
        world.run(5)
    assert model.calls[probes_from:], "it was probed"
    assert model.most_at_once == 1
    world.run(200)
    assert all("You said: hi" in world.heard(str(100 + n)) for n in range(40))


def test_a_cancelled_prober_leaves_no_circuit_stuck(make: Make) -> None:
    world = make()
    model = upstream(world)
    model.down = (0.0, 100.0)
    world.say("hi", chat="7")
    world.run(99)
    model.hangs = True
    calls = len(model.calls)
    while len(model.calls) == calls:
        world.run(1)
    assert world.gateway is not None
    assert world.gateway.governor.views()["sim/m"].in_flight == 1
    model.hangs = False
    world.say("/stop", chat="7")
    world.run(1)
    assert world.gateway.governor.views()["sim/m"].in_flight == 0
    world.say("hello", chat="8")
    assert "You said: hello" in world.run(3).heard("8"), "the next call probes at once"


def test_a_client_of_the_control_port_that_goes_away_gives_its_grants_back(make: Make) -> None:
    world = make()
    upstream(world)
    world.run(1)
    g = world.gateway
    assert g is not None
    port = ControlServer(Path("control.sock"), g.door, g.actions, str, str, SUPERVISOR, g.governor)
    held = Held()

    async def send(message: dict[str, Any]) -> None:
        """Nobody reads it."""

    async def calls() -> None:
        assert await port.answer({"op": "admit", "target": "sim/m"}, send, held) == {"grant": 1}
        assert await port.answer({"op": "admit", "target": "sim/m"}, send, held) == {"grant": 2}
        failure = {"status": 429, "headers": {"retry-after": "300"}, "body": "Too many requests"}
        told = await port.answer({"op": "settle", "grant": 1, "failure": failure}, send, held)
        assert told == {"reason": "rate_limit"}
        refused = await port.answer({"op": "admit", "target": "sim/m", "wait": 5}, send, held)
        assert isinstance(refused, dict)
        assert refused["refused"] == "blocked"
        entered = await g.governor.enter(CallRequest("sim/m", patience=10.0))
        assert isinstance(entered, Refused), "what the client met holds for the gateway's own calls"

    world._in_loop(calls())
    assert g.governor.views()["sim/m"].in_flight == 1
    held.release()
    assert g.governor.views()["sim/m"].in_flight == 0


PREPARED: dict[str, Callable[[Upstream], None]] = {
    "answering": lambda model: None,
    "with a tool": lambda model: setattr(model, "steps", 1),
    "retrying": lambda model: setattr(model, "down", (0.0, 1.0)),
    "parking": lambda model: setattr(model, "down", (0.0, 50.0)),
    "waiting for a turn": lambda model: setattr(model, "admits", Minute(0)),
}


@pytest.mark.parametrize("prepare", PREPARED.values(), ids=PREPARED)
def test_a_turn_cancelled_at_any_moment_leaves_no_task_and_no_lease(
    make: Make, prepare: Callable[[Upstream], None]
) -> None:
    cancelled = 0
    for moment in range(60):
        world = make(tools=[WaitALittle()])
        model = upstream(world)
        prepare(model)
        world.run(0.5)
        world.say("hello")
        world._in_loop(_pass(moment))
        g = world.gateway
        assert g is not None
        stopped = [g.lane.stop(session) for session in tuple(g.lane.running)]
        world.run(2.0)
        views = g.governor.views().get("sim/m")
        assert views is None or (views.in_flight, views.waiting) == (0, 0) or not stopped
        assert model.under_way == 0 or not stopped
        if stopped:
            cancelled += 1
            assert not g.lane.running
            assert not g.dispatch.lanes.running_keys()
        world.close()
    assert cancelled >= 20, "most moments lie within the turn"


async def _pass(moment: int) -> None:
    """The n-th turn of the loop, then the n-th tenth of a second."""
    for _ in range(min(moment, 30)):
        await asyncio.sleep(0)
    await asyncio.sleep(max(0, moment - 30) * 0.2)
