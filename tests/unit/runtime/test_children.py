"""Child processes, and what they try to leave behind."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from hermes.runtime.children import ChildGroups, ChildTimeout, run_process
from hermes.runtime.offload import Offload, PoolLimits
from tests.waiting import until

PYTHON = sys.executable


def is_gone(pid: int) -> bool:
    """Dead, or dead and not yet collected by whoever inherited it; a kill takes a moment."""

    def ended() -> bool:
        try:
            return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    return until(ended, within=5, why=f"{pid} still runs")


async def test_output_input_code_and_directory(tmp_path: Path) -> None:
    groups = ChildGroups()
    code = "import os,sys; print(sys.stdin.read() + os.getcwd()); sys.stderr.write('e'); sys.exit(3)"
    result = await run_process(groups, [PYTHON, "-c", code], timeout=20, input=b"in:", cwd=str(tmp_path))
    assert (result.code, result.stderr, result.truncated) == (3, b"e", False)
    assert result.stdout.decode() == f"in:{tmp_path}\n"
    assert len(groups) == 0


def test_the_same_on_the_loop_that_production_uses(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is for CPython on Linux")
    note = tmp_path / "pid"
    argv = [PYTHON, "-c", SPAWNER.format(seconds=0) + "print(sys.stdin.read())", str(note)]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(run_process(ChildGroups(), argv, timeout=20, input=b"hi"))
        assert (result.code, result.stdout) == (0, b"hi\n")
        assert is_gone(int(note.read_text()))
        with pytest.raises(ChildTimeout):
            runner.run(run_process(ChildGroups(), [PYTHON, "-c", "import time; time.sleep(60)"], timeout=0.3))


async def test_output_is_bounded_and_the_child_is_not_held_up_by_it() -> None:
    result = await run_process(
        ChildGroups(), [PYTHON, "-c", "print('x' * 3_000_000)"], timeout=20, max_output=1000
    )
    assert (result.code, result.stdout, result.truncated) == (0, b"x" * 1000, True)


async def test_offload_runs_programs_too() -> None:
    offload = Offload({"one": PoolLimits()})
    assert (await offload.run_process(["true"], timeout=20)).code == 0
    assert offload.close() == []


SPAWNER = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(str(child.pid))
import time
time.sleep({seconds})
"""


async def test_a_timeout_kills_the_child_and_its_descendants(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(ChildTimeout, match="longer than 1 s"):
        await run_process(ChildGroups(), [PYTHON, "-c", SPAWNER.format(seconds=60), str(note)], timeout=1)
    assert is_gone(int(note.read_text()))


async def test_a_descendant_does_not_outlive_an_orderly_end(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    result = await run_process(
        ChildGroups(), [PYTHON, "-c", SPAWNER.format(seconds=0), str(note)], timeout=20
    )
    assert result.code == 0
    assert is_gone(int(note.read_text()))


class WatchedGroups(ChildGroups):
    """Tells which group was added."""

    def __init__(self) -> None:
        super().__init__()
        self.added: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def add(self, group: int) -> None:
        super().add(group)
        self.added.set_result(group)


async def test_cancellation_kills_the_child() -> None:
    groups = WatchedGroups()
    argv = [PYTHON, "-c", "import time; time.sleep(60)"]
    task = asyncio.ensure_future(run_process(groups, argv, timeout=60))
    pid = await groups.added
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert is_gone(pid)
    assert len(groups) == 0


async def test_what_cannot_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        await run_process(ChildGroups(), ["no-such-program-here"], timeout=1)


async def test_the_end_of_the_process_kills_all_groups() -> None:
    groups = ChildGroups()
    process = await asyncio.create_subprocess_exec(
        PYTHON, "-c", "import time; time.sleep(60)", start_new_session=True
    )
    groups.add(process.pid)
    groups.kill_all()
    assert await process.wait() == -9
    groups.kill(process.pid)
    assert len(groups) == 0
