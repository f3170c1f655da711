"""The one way out."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from hermes.runtime.children import ChildGroups
from hermes.runtime.shutdown import Shutdown, Stage, Step
from hermes.runtime.virtual import run_virtual, running_clock


def test_stages_run_in_order_and_a_failure_stops_none() -> None:
    async def body() -> None:
        shutdown = Shutdown(10)
        seen: list[str] = []

        def step(name: str) -> Step:
            async def note(left: float) -> None:
                seen.append(name)
                if name == "drain":
                    raise ValueError(name)

            return note

        for stage in reversed(Stage):
            shutdown.add(stage, stage.name.lower(), step(stage.name.lower()))
        reports = await shutdown.run()
        shutdown.disarm()
        assert seen == ["stop_intake", "drain", "flush", "close"]
        assert [type(report.error).__name__ for report in reports] == [
            "NoneType",
            "ValueError",
            "NoneType",
            "NoneType",
        ]
        assert all(report.finished for report in reports)

    run_virtual(body())


def test_a_drain_that_never_ends_leaves_the_reserve_to_the_rest() -> None:
    async def body() -> None:
        clock = running_clock()
        shutdown = Shutdown(20, reserve=5)
        left_for: dict[str, float] = {}

        async def forever(left: float) -> None:
            left_for["drain"] = left
            await asyncio.Event().wait()

        async def flush(left: float) -> None:
            left_for["flush"] = left
            await clock.sleep(100)

        shutdown.add(Stage.DRAIN, "turns", forever)
        shutdown.add(Stage.FLUSH, "outbox", flush)
        reports = await shutdown.run()
        shutdown.disarm()
        assert [report.finished for report in reports] == [False, False]
        assert left_for == {"drain": pytest.approx(15), "flush": pytest.approx(5)}
        assert clock.monotonic() == pytest.approx(20)

    run_virtual(body())


def test_hurry_ends_the_drain_at_once_and_nothing_else() -> None:
    async def body() -> None:
        clock = running_clock()
        shutdown = Shutdown(60)

        async def drain(left: float) -> None:
            await clock.sleep(50)

        async def flush(left: float) -> None:
            await clock.sleep(3)

        shutdown.add(Stage.DRAIN, "turns", drain)
        shutdown.add(Stage.FLUSH, "outbox", flush)
        shutdown.request("SIGTERM")
        asyncio.get_running_loop().call_later(2, shutdown.hurry)
        shutdown.request("another part failed too")
        assert not shutdown.hurried.is_set()
        drained, flushed = await shutdown.run()
        shutdown.disarm()
        assert not drained.finished
        assert drained.seconds == pytest.approx(2)
        assert flushed.finished
        assert flushed.seconds == pytest.approx(3)
        assert shutdown.hurried.is_set()
        assert shutdown.reason == "SIGTERM"

    run_virtual(body())


async def test_signals_request_hurry_and_reload() -> None:
    loop = asyncio.get_running_loop()
    shutdown = Shutdown(60)
    reloaded = asyncio.Event()
    shutdown.install_signals(loop, on_hangup=reloaded.set)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        await reloaded.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await shutdown.requested.wait()
        assert not shutdown.hurried.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        await shutdown.hurried.wait()
        assert shutdown.reason == "SIGTERM"
    finally:
        shutdown.disarm()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)


def test_the_very_end_kills_children_then_closes_sinks_then_leaves() -> None:
    seen: list[object] = []

    class Groups(ChildGroups):
        def kill_all(self) -> None:
            seen.append("children")

    shutdown = Shutdown(1, leave=seen.append)
    shutdown.add_sink(lambda seconds: seen.append(seconds))
    shutdown.add_children(Groups())
    shutdown.exit_now(75)
    assert seen == ["children", 1.0, 75]


CODE = """
import os, sys, threading, time
from hermes.runtime.output import LineSink
from hermes.runtime.shutdown import Shutdown
sink = LineSink(1)
shutdown = Shutdown(float(sys.argv[1]), grace=0.1, hard_code=9)
shutdown.add_sink(sink.close)
threading.Thread(target=lambda: time.sleep(60)).start()     # not a daemon: would keep the process alive
sink.write_line("last words")
if sys.argv[2] == "hang":
    shutdown.request("test")
    time.sleep(60)
shutdown.exit_now(3)
"""


@pytest.mark.parametrize(("how", "code"), [("orderly", 3), ("hang", 9)])
def test_the_process_ends_whatever_hangs_and_says_its_last_words(how: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, "0.1", how], capture_output=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout) == (code, b"last words\n")
