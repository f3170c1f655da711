"""One failure stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from hermes.runtime.supervisor import LeakedCancellation, Supervisor, outcome_of
from hermes.runtime.virtual import run_virtual, running_clock


class Fault(Exception):
    """Ours."""


async def fail() -> None:
    raise Fault("x")


def test_a_failing_task_is_counted_and_cancels_no_sibling() -> None:
    async def body() -> None:
        seen: list[tuple[str, str]] = []
        supervisor = Supervisor(
            "s", clock=running_clock(), on_crash=lambda name, error: seen.append((name, repr(error)))
        )
        sibling = supervisor.spawn(asyncio.Event().wait(), "sibling")
        await asyncio.wait([supervisor.spawn(fail(), "bad")])
        await asyncio.sleep(0)
        assert supervisor.tasks == ("sibling",)
        assert seen == [("bad", "Fault('x')")]
        assert supervisor.crashes == {"Fault": 1}
        assert await supervisor.aclose(1.0) == []
        assert sibling.cancelled()

    run_virtual(body())


@pytest.mark.parametrize("essential", [True, False])
def test_beyond_the_intensity_an_essential_task_escalates_and_another_is_parked(essential: bool) -> None:
    async def body() -> None:
        clock = running_clock()
        escalated: list[BaseException] = []
        starts: list[float] = []
        supervisor = Supervisor("s", clock=clock, on_escalate=escalated.append)

        async def part() -> None:
            starts.append(clock.monotonic())
            raise Fault

        await supervisor.spawn_forever(part, "part", restarts=3, seconds=300, essential=essential)
        assert starts == pytest.approx([0, 0.5, 1.5, 3.5], abs=1e-3)
        assert supervisor.crashes == {"Fault": 4}
        assert isinstance(supervisor.parked["part"], Fault)
        assert len(escalated) == (1 if essential else 0)

    run_virtual(body())


def test_rare_failures_are_restarted_for_ever_and_a_return_ends_it() -> None:
    async def body() -> None:
        clock = running_clock()
        count = 0
        supervisor = Supervisor("s", clock=clock)

        async def part() -> None:
            nonlocal count
            count += 1
            await clock.sleep(200)
            if count < 50:
                raise Fault

        await supervisor.spawn_forever(part, "part", restarts=2, seconds=300)
        assert count == 50
        assert supervisor.parked == {}

    run_virtual(body())


def test_a_cancellation_that_a_library_leaks_is_a_failure_and_ours_is_not() -> None:
    async def body() -> None:
        supervisor = Supervisor("s", clock=running_clock())

        async def leaks() -> None:
            raise asyncio.CancelledError

        await supervisor.spawn_forever(leaks, "leaks", restarts=0)
        assert isinstance(supervisor.parked["leaks"], LeakedCancellation)
        task = supervisor.spawn_forever(asyncio.Event().wait, "ours")
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert "ours" not in supervisor.parked

    run_virtual(body())


def test_the_end_names_those_that_do_not_end_and_refuses_new_ones() -> None:
    async def body() -> None:
        release = asyncio.Event()

        async def stubborn() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await release.wait()

        supervisor = Supervisor("s", clock=running_clock())
        task = supervisor.spawn(stubborn(), "stubborn")
        supervisor.spawn(asyncio.Event().wait(), "meek")
        await asyncio.sleep(0)
        assert await supervisor.aclose(2.0) == ["stubborn"]
        assert running_clock().monotonic() == pytest.approx(2.0, abs=1e-3)
        with pytest.raises(RuntimeError, match="late cannot start"):
            supervisor.spawn(fail(), "late")
        release.set()
        await asyncio.wait([task])

    run_virtual(body())


def test_a_supervised_task_may_close_its_supervisor() -> None:
    async def body() -> list[str]:
        supervisor = Supervisor("s", clock=running_clock())
        closing: Coroutine[Any, Any, list[str]] = supervisor.aclose(1.0)
        return await supervisor.spawn(closing, "closer")

    assert run_virtual(body()) == []


def test_an_outcome_is_a_value_or_what_was_raised() -> None:
    assert outcome_of(int, "3") == (3, None)
    value, error = outcome_of(int, "x")
    assert value is None
    assert isinstance(error, ValueError)
