"""Time that jumps."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from hermes.core.clock import Clock
from hermes.runtime.clock import SystemClock
from hermes.runtime.virtual import START, NothingCanHappen, VirtualLoop, run_virtual, running_clock


def test_a_year_passes_in_a_moment_and_now_follows() -> None:
    async def body() -> tuple[float, float]:
        clock: Clock = running_clock()
        await clock.sleep(365 * 86400.0)
        return clock.now(), clock.monotonic()

    began = time.monotonic()
    now, monotonic = run_virtual(body())
    assert time.monotonic() - began < 1.0
    assert now == pytest.approx(START + 365 * 86400.0)
    assert monotonic == pytest.approx(365 * 86400.0)


def test_timers_fire_in_order_and_a_timeout_beats_a_longer_sleep() -> None:
    async def body() -> list[str]:
        clock = running_clock()
        seen: list[str] = []

        async def note(after: float, what: str) -> None:
            await clock.sleep(after)
            seen.append(f"{what}@{clock.monotonic():.3f}")

        async with asyncio.TaskGroup() as group:
            for after, what in ((3.0, "c"), (1.0, "a"), (2.0, "b")):
                group.create_task(note(after, what))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await clock.sleep(10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(clock.sleep(10), 1)
        seen.append(f"end@{clock.monotonic():.3f}")
        return seen

    assert run_virtual(body()) == ["a@1.000", "b@2.000", "c@3.000", "end@9.000"]


def test_the_start_is_chosen() -> None:
    async def body() -> float:
        return running_clock().now()

    assert run_virtual(body(), start=1000.0) == 1000.0


def test_time_stands_still_while_something_outside_is_under_way() -> None:
    async def body() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = running_clock()
        gate = threading.Event()
        done = asyncio.Event()

        def outside() -> None:
            gate.wait(5.0)
            loop.call_soon_threadsafe(done.set)

        thread = threading.Thread(target=outside)
        timer = loop.call_later(1.0, lambda: None)
        with loop.external("thread"):
            thread.start()
            loop.call_soon(gate.set)
            await done.wait()
            inside = clock.monotonic()
        thread.join()
        await clock.sleep(0.5)
        timer.cancel()
        return inside, clock.monotonic()

    inside, after = run_virtual(body())
    assert inside == 0.0
    assert after == pytest.approx(0.5)


def test_what_would_hang_is_an_error() -> None:
    async def body() -> None:
        await asyncio.Event().wait()

    loop = VirtualLoop()
    task = loop.create_task(body())
    with pytest.raises(NothingCanHappen):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


async def test_the_running_clock_needs_a_virtual_loop() -> None:
    with pytest.raises(TypeError, match="use run_virtual"):
        running_clock()


async def test_the_system_clock_is_the_machines() -> None:
    clock: Clock = SystemClock()
    assert abs(clock.now() - time.time()) < 5
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
