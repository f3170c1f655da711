"""What reaches the loop unhandled, and who holds it up."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from hermes.runtime.lag import LagMonitor, Stall, StallKind
from hermes.runtime.loop import LoopGuard
from tests.waiting import until


class Fault(Exception):
    """Ours."""


async def test_errors_are_counted_by_type_and_cleanup_noise_is_not_reported() -> None:
    seen: list[tuple[str, str]] = []
    guard = LoopGuard(lambda kind, message, error: seen.append((kind, message)))
    loop = asyncio.get_running_loop()
    guard.install(loop)
    try:
        loop.call_soon(_raise, Fault("x"))
        loop.call_soon(_raise, RuntimeError("Event loop is closed"))
        loop.call_soon(_raise, RuntimeError("another matter"))
        for _ in range(3):
            await asyncio.sleep(0)
        loop.call_exception_handler({"message": "only words"})
    finally:
        guard.uninstall(loop)
    assert guard.counts == {"Fault": 1, "RuntimeError": 1, "none": 1}
    assert guard.silenced == 1
    assert [kind for kind, _ in seen] == ["Fault", "RuntimeError", "none"]
    assert seen[2][1] == "only words"
    assert loop.get_exception_handler() is None


def _raise(error: Exception) -> None:
    raise error


async def test_what_a_destructor_raises_is_heard_too() -> None:
    seen: list[str] = []
    guard = LoopGuard(lambda kind, message, error: seen.append(kind))
    loop = asyncio.get_running_loop()
    guard.install(loop)
    try:
        for error in (Fault("x"), RuntimeError("Event loop is closed")):
            Dying(error)
        gc.collect()
    finally:
        guard.uninstall(loop)
    assert seen == ["Fault"]
    assert guard.silenced == 1


class Dying:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def compute_for_a_while() -> None:
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        hashlib.sha256(b"x").digest()


def block_for_a_while() -> None:
    threading.Event().wait(0.4)


@pytest.mark.parametrize(
    ("hold_up", "kind"),
    [(compute_for_a_while, StallKind.CPU), (block_for_a_while, StallKind.WAIT)],
    ids=["cpu", "wait"],
)
async def test_a_stall_is_seen_told_apart_and_its_frame_is_named(
    hold_up: Callable[[], None], kind: StallKind
) -> None:
    stalls: list[Stall] = []
    seen = asyncio.Event()

    def note(stall: Stall) -> None:
        stalls.append(stall)
        if any(hold_up.__name__ in frame for frame in stall.frames):
            seen.set()

    monitor = LagMonitor(threshold=0.05, interval=0.02, on_stall=note)
    monitor.start()
    try:
        await asyncio.sleep(0)
        hold_up()
        await seen.wait()
    finally:
        monitor.stop()
    stall = next(one for one in stalls if any(hold_up.__name__ in frame for frame in one.frames))
    assert stall.kind is kind
    assert stall.seconds > 0.2
    assert monitor.max_lag >= stall.seconds
    assert monitor.stalls[kind] >= 1
    assert (monitor.max_cpu_block > 0.2) is (kind is StallKind.CPU)


STOPPED = """
import asyncio
from hermes.runtime.lag import LagMonitor
async def main():
    seen = asyncio.get_running_loop().create_future()
    def note(stall):
        if stall.seconds > 0.3 and not seen.done():
            seen.set_result(stall)
    monitor = LagMonitor(interval=0.02, on_stall=note)
    monitor.start()
    print("ready", flush=True)
    stall = await seen
    monitor.stop()
    print(stall.kind.value, flush=True)
asyncio.run(main())
"""


def test_a_stopped_process_is_told_apart_from_a_blocked_loop() -> None:
    with subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 1.0
        until(lambda: time.monotonic() > end, within=5, why="a second passes for the stopped process")
        child.send_signal(signal.SIGCONT)
        assert child.stdout.readline() == "suspended\n"


async def test_a_present_stall_shows_before_it_ends_and_stop_ends_the_thread() -> None:
    monitor = LagMonitor(threshold=0.05, interval=0.01)
    monitor.start()
    await asyncio.sleep(0)
    threading.Event().wait(0.1)
    assert monitor.lag_seconds > 0.05
    monitor.stop()
    monitor.stop()
    assert not any(thread.name == "hermes-lag" for thread in threading.enumerate())
