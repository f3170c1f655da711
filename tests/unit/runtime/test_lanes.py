"""One run per key, a bounded number in all, nothing for an idle key."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.urgency import Urgency
from hermes.runtime.lanes import LaneRun, Lanes
from hermes.runtime.virtual import run_virtual, running_clock


class Recorder:
    """A handler that waits for `gate` and notes what it saw."""

    def __init__(self, width: int = 2) -> None:
        self.gate = asyncio.Event()
        self.started: list[str] = []
        self.errors: list[tuple[str, str]] = []
        self.causes: list[object] = []
        self.lanes: Lanes[str] = Lanes(width=width, handler=self.serve, on_error=self.note)

    async def serve(self, key: str, run: LaneRun) -> None:
        self.started.append(key)
        try:
            await self.gate.wait()
        finally:
            self.causes.append(run.cause)
        if key.startswith("bad"):
            raise KeyError(key)

    def note(self, key: str, error: BaseException) -> None:
        self.errors.append((key, type(error).__name__))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_many_wakes_before_a_run_make_one_run_and_a_wake_during_it_one_more() -> None:
    recorder = Recorder()
    for _ in range(3):
        recorder.lanes.wake("a")
    await settle()
    assert recorder.started == ["a"]
    assert recorder.lanes.running("a")
    recorder.lanes.wake("a")
    recorder.lanes.wake("a")
    recorder.gate.set()
    await settle()
    assert recorder.started == ["a", "a"]
    assert len(recorder.lanes) == 0
    assert recorder.lanes._running == {}
    assert recorder.lanes.waiting == 0


async def test_keys_beyond_the_width_wait_first_come_first_served() -> None:
    recorder = Recorder(width=2)
    for key in ("a", "b", "c", "d", "c"):
        recorder.lanes.wake(key)
    recorder.lanes.wake("a")  # during its run: behind c and d
    await settle()
    assert recorder.started == ["a", "b"]
    assert recorder.lanes.waiting == 2
    recorder.gate.set()
    await settle()
    assert recorder.started == ["a", "b", "c", "d", "a"]


async def test_a_handler_that_raises_ends_only_its_own_run() -> None:
    recorder = Recorder(width=1)
    for key in ("bad", "good"):
        recorder.lanes.wake(key)
    recorder.gate.set()
    await settle()
    assert recorder.errors == [("bad", "KeyError")]
    assert recorder.started == ["bad", "good"]
    assert len(recorder.lanes) == 0


async def test_the_cause_stands_before_the_cancellation_and_the_first_stays() -> None:
    recorder = Recorder()
    assert recorder.lanes.cancel("a", "stop") is False
    recorder.lanes.wake("a")
    await settle()
    assert recorder.lanes.cancel("a", "stop") is True
    recorder.lanes.cancel("a", "shutdown")
    await settle()
    assert recorder.causes == ["stop"]
    assert recorder.errors == []
    assert not recorder.lanes.running("a")


async def test_a_wake_survives_the_cancellation_of_the_run_it_came_in() -> None:
    recorder = Recorder()
    recorder.lanes.wake("a")
    await settle()
    recorder.lanes.wake("a")
    recorder.lanes.cancel("a", "stop")
    await settle()
    assert recorder.started == ["a", "a"]
    recorder.gate.set()
    assert await recorder.lanes.drain(1.0) == []


def test_drain_waits_no_longer_than_told_and_names_who_still_runs() -> None:
    async def body() -> None:
        recorder = Recorder(width=1)
        recorder.lanes.wake("a")
        recorder.lanes.wake("b")
        recorder.lanes.stop_intake()
        recorder.lanes.wake("c")
        assert await recorder.lanes.drain(3.0) == ["a"]
        assert running_clock().monotonic() == pytest.approx(3.0, abs=1e-3)
        recorder.gate.set()
        assert await recorder.lanes.drain(3.0) == []
        assert recorder.started == ["a"]

    run_virtual(body())


async def test_what_the_waker_bound_is_not_the_runs() -> None:
    about: contextvars.ContextVar[str] = contextvars.ContextVar("about", default="nothing")
    seen: list[str] = []

    async def serve(key: str, run: LaneRun) -> None:
        seen.append(about.get())

    lanes: Lanes[str] = Lanes(width=1, handler=serve, on_error=lambda key, error: None)
    about.set("the waker")
    lanes.wake("a")
    assert await lanes.drain(1.0) == []
    assert seen == ["nothing"]


def test_a_width_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Recorder(width=0)


@given(seed=st.integers(0, 2**32), width=st.integers(1, 4))
def test_no_wake_is_lost_no_key_runs_twice_at_once_and_the_width_holds(seed: int, width: int) -> None:
    """After the last wake of a key a run of it begins, whatever is cancelled or fails meanwhile."""
    rng = random.Random(seed)

    async def body() -> None:
        running: Counter[int] = Counter()
        owed: set[int] = set()
        clock = running_clock()

        async def serve(key: int, run: LaneRun) -> None:
            owed.discard(key)
            running[key] += 1
            try:
                assert running[key] == 1
                assert sum(running.values()) <= width
                await clock.sleep(rng.random())
                if rng.random() < 0.2:
                    raise ValueError
            finally:
                running[key] -= 1

        faults: list[BaseException] = []
        lanes: Lanes[int] = Lanes(
            width=width, handler=serve, on_error=lambda key, error: faults.append(error)
        )
        for _ in range(60):
            key = rng.randrange(6)
            # Cancelling a run that has not begun loses that run's wake: the one who cancels knows it.
            if rng.random() < 0.15 and key not in owed:
                lanes.cancel(key, "x")
            else:
                owed.add(key)
                lanes.wake(key)
            await clock.sleep(rng.choice((0.0, 0.1, 0.5)))
        assert await lanes.drain(1000.0) == []
        assert owed == set()
        assert len(lanes) == 0
        assert all(isinstance(fault, ValueError) for fault in faults)

    run_virtual(body())


async def test_a_flood_of_scheduled_keys_leaves_width_for_those_that_people_wait_for() -> None:
    recorder = Recorder(width=4)
    for n in range(20):
        recorder.lanes.wake(f"s{n}", Urgency.SCHEDULE)
    await settle()
    assert recorder.started == ["s0", "s1", "s2"]
    recorder.lanes.wake("a")
    await settle()
    assert recorder.started[-1] == "a"
    recorder.gate.set()
    await recorder.lanes.drain(5.0)
    assert len(recorder.started) == 21


async def test_of_those_that_wait_the_most_urgent_is_next_and_a_second_wake_may_raise_one() -> None:
    recorder = Recorder(width=1)
    recorder.lanes.wake("first")
    recorder.lanes.wake("scheduled", Urgency.SCHEDULE)
    recorder.lanes.wake("background", Urgency.BACKGROUND)
    recorder.lanes.wake("raised", Urgency.SCHEDULE)
    recorder.lanes.wake("person")
    recorder.lanes.wake("raised")
    recorder.gate.set()
    for _ in range(5):
        await settle()
    assert recorder.started == ["first", "person", "raised", "background", "scheduled"]


def test_a_key_that_waits_becomes_as_urgent_as_the_others() -> None:
    async def scenario() -> list[str]:
        started: list[str] = []

        async def serve(key: str, run: LaneRun) -> None:
            started.append(key)
            await running_clock().sleep(50.0)

        lanes: Lanes[str] = Lanes(width=1, handler=serve, on_error=lambda key, error: None)
        lanes.wake("p0")
        lanes.wake("scheduled", Urgency.SCHEDULE)
        for n in range(1, 8):
            lanes.wake(f"p{n}")
            await running_clock().sleep(45.0)
        await lanes.drain(1000.0)
        return started

    started = run_virtual(scenario())
    assert "scheduled" in started[:5], started
