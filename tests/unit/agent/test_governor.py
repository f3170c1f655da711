"""The governor's shell: grants, the queue, and what outlives the process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from hermes.agent.governor import Governor
from hermes.agent.upstream import Grant
from hermes.core.failures import Reason, Verdict
from hermes.core.governor import CallRequest, Circuit, Guard, Refused, StoredUpstream
from hermes.core.urgency import Urgency
from hermes.policy.rate_limit import Limits
from hermes.runtime.virtual import VirtualClock, VirtualLoop, run_virtual, running_clock

DOWN = Verdict(Reason.SERVER_ERROR, "test", retryable=True)
LIMITED = Verdict(Reason.RATE_LIMIT, "test", retry_after=30.0, retryable=True)


def governor(**more: Any) -> Governor:
    """Over virtual time, with two calls at once."""
    return Governor(running_clock(), lambda: 0.0, limits=lambda target: Limits(max_concurrency=2), **more)


async def granted(g: Governor, principal: str = "p", **more: Any) -> Grant:
    """A grant; fails when there is none."""
    found = await g.enter(CallRequest("a/b", principal=principal, **more))
    assert isinstance(found, Grant)
    return found


async def later(seconds: float) -> None:
    """Virtual time passes."""
    clock = running_clock()
    await clock.sleep(seconds)


async def waiting(g: Governor, count: int) -> None:
    """The calls just begun have come as far as they can, and so many wait."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert g.views()["a/b"].waiting == count


async def ask(g: Governor, name: str, order: list[str], **more: Any) -> None:
    """Enters, notes its name, and leaves."""
    with await granted(g, name, **more) as grant:
        order.append(name)
        grant.succeeded()


async def open_circuit(g: Governor) -> None:
    """Five failures in a row."""
    for _ in range(5):
        (await granted(g)).failed(DOWN)


def in_virtual_time(test: Callable[[], Any]) -> None:
    """Runs a test's coroutine; nothing may be left of it."""
    run_virtual(test())


def test_a_cancelled_waiter_leaves_its_place_and_a_grant_on_its_way_goes_back() -> None:
    async def check() -> None:
        g = governor()
        held = [await granted(g), await granted(g)]
        first = asyncio.ensure_future(granted(g))
        second = asyncio.ensure_future(granted(g))
        await waiting(g, 2)
        first.cancel()
        await asyncio.wait([first])
        assert g.views()["a/b"].waiting == 1
        held[0].abandon()  # the grant is made for the second, which is cancelled before it hears of it
        second.cancel()
        await asyncio.wait([second])
        assert (g.views()["a/b"].in_flight, g.views()["a/b"].waiting) == (1, 0)
        held[1].abandon()
        assert g.views()["a/b"].in_flight == 0

    in_virtual_time(check)


def test_a_grant_is_settled_once_and_by_leaving_its_block() -> None:
    async def check() -> None:
        g = governor()
        with await granted(g) as grant:
            pass
        grant.failed(DOWN)
        grant.abandon()
        assert g.views()["a/b"].in_flight == 0
        assert g.views()["a/b"].circuit is Circuit.CLOSED

    in_virtual_time(check)


def test_an_open_circuit_refuses_then_lets_the_most_urgent_waiter_probe_and_its_first_token_frees_all() -> None:
    async def check() -> None:
        g = governor()
        await open_circuit(g)
        refused = await g.enter(CallRequest("a/b"))
        assert isinstance(refused, Refused)
        assert (refused.guard, refused.verdict.reason) == (Guard.CIRCUIT, Reason.SERVER_ERROR)
        await later(refused.verdict.retry_after or 0.0)
        probe = await granted(g)
        assert probe.probe
        order: list[str] = []
        tasks = [
            asyncio.ensure_future(ask(g, "later", order, urgency=Urgency.SCHEDULE)),
            asyncio.ensure_future(ask(g, "person", order)),
        ]
        await waiting(g, 2)
        probe.watch(lambda text: None)("first token")
        await asyncio.gather(*tasks)
        assert order == ["person", "later"]
        probe.succeeded()

    in_virtual_time(check)


def test_a_cancelled_probe_is_followed_by_the_next_waiter_at_once() -> None:
    async def check() -> None:
        g = governor()
        await open_circuit(g)
        await later(10.0)
        probe = await granted(g)
        follower = asyncio.ensure_future(granted(g))
        await waiting(g, 1)
        at = running_clock().monotonic()
        probe.abandon()
        assert (await follower).probe
        assert running_clock().monotonic() == at

    in_virtual_time(check)


def test_a_prober_that_says_nothing_loses_its_lease() -> None:
    async def check() -> None:
        g = governor()
        await open_circuit(g)
        await later(10.0)
        silent = await granted(g)
        assert (await granted(g)).probe
        assert running_clock().monotonic() >= 10.0 + g.policy.lease
        silent.succeeded()

    in_virtual_time(check)


def test_a_blocked_call_waits_within_its_patience_and_is_refused_beyond_it() -> None:
    async def check() -> None:
        g = governor()
        (await granted(g)).failed(LIMITED)
        refused = await g.enter(CallRequest("a/b", patience=10.0))
        assert isinstance(refused, Refused)
        assert refused.guard is Guard.BLOCKED
        await granted(g, patience=40.0)
        assert running_clock().monotonic() >= 30.0

    in_virtual_time(check)


def test_another_key_takes_over_and_the_target_does_not_rest() -> None:
    async def check() -> None:
        g = governor()
        (await granted(g)).failed(LIMITED, rotated=True)
        assert not (await granted(g, patience=0.0)).probe

    in_virtual_time(check)


def test_what_it_learned_outlives_the_process_and_waits_are_clamped() -> None:
    async def learn() -> list[StoredUpstream]:
        g = governor()
        await open_circuit(g)
        return g.unsaved()

    rows = run_virtual(learn(), start=1_800_000_000.0)

    async def restart() -> None:
        g = governor()
        g.load(rows)
        found = g.views()["a/b"]
        assert found.circuit is Circuit.OPEN
        assert 0.0 < found.opens_in <= 10.0
        assert found.outage == "a/b@1800000000"

    for start in (1_800_000_000.0, 1_700_000_000.0):  # the second: the clock was set back by years
        run_virtual(restart(), start=start)


def test_a_row_that_cannot_be_read_is_as_none() -> None:
    async def check() -> None:
        for state in ("", "[]", "null", '{"until": "x"}', json.dumps({"opened": -1}), '{"reason": "nonsense"}'):
            g = governor()
            g.load([StoredUpstream("a/b", state, None, 0.0)])
            (await granted(g)).abandon()
            assert g.views()["a/b"].circuit is Circuit.CLOSED

    in_virtual_time(check)


def test_with_nothing_known_nothing_is_waited_for() -> None:
    loop = VirtualLoop()
    g = Governor(VirtualClock(loop), lambda: 0.0)
    coro = g.enter(CallRequest("a/b"))
    with pytest.raises(StopIteration) as done:
        coro.send(None)
    assert isinstance(done.value.value, Grant)
    loop.close()


def test_another_target_is_not_disturbed() -> None:
    async def check() -> None:
        g = governor()
        await open_circuit(g)
        assert isinstance(await g.enter(CallRequest("a/b")), Refused)
        for _ in range(2):
            other = await g.enter(CallRequest("other/m", patience=0.0))
            assert isinstance(other, Grant)
        assert running_clock().monotonic() == 0.0, "nothing was waited for"
        assert (g.room(["a/b"]), g.room(["other/m"])) == (0, 0)
        assert g.room(["a/b", "third/m"]) > 0

    in_virtual_time(check)
