"""What a test must not leave behind: asyncio tasks, threads, child processes."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import dataclass

import psutil

__all__ = ["Snapshot", "leaked_tasks"]

GRACE = 2.0
"""Seconds that something which is already ending gets before it counts as left behind."""

ALLOWED_THREADS = (
    "asyncio_",  # the loop's default executor; the test runner joins it when it closes the loop
    "pytest",  # the timeout and reporting threads of plugins
    "Thread-playwright",
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Threads and children that existed before the test, its fixtures of wider scope included."""

    threads: frozenset[int]
    children: frozenset[int]

    @classmethod
    def take(cls) -> Snapshot:
        threads = frozenset(thread.ident or 0 for thread in threading.enumerate())
        return cls(threads, frozenset(child.pid for child in _children()))

    def leftovers(self) -> list[str]:
        """Waits up to GRACE for what is ending; the rest is described, and children are killed."""
        until = time.monotonic() + GRACE
        for thread in self._new_threads():
            thread.join(max(0.0, until - time.monotonic()))
        found = [f"thread {thread.name!r}" for thread in self._new_threads()]
        children = [below for child in self._new_children() for below in [child, *_below(child)]]
        if children:
            _, alive = psutil.wait_procs(children, timeout=max(0.1, until - time.monotonic()))
            found += [_describe(child) for child in alive]
            for child in alive:
                _end(child)
        return found

    def _new_children(self) -> list[psutil.Process]:
        """What an older child starts is the business of the fixture that started that child."""
        return [child for child in _children() if child.pid not in self.children]

    def _new_threads(self) -> list[threading.Thread]:
        return [
            thread
            for thread in threading.enumerate()
            if thread.ident not in self.threads and not thread.name.startswith(ALLOWED_THREADS)
        ]


def leaked_tasks(runner: asyncio.Runner) -> list[str]:
    """Tasks that are still not done after the test's fixtures ended and the loop ran once more."""
    loop = runner.get_loop()
    if loop.is_closed():
        return []

    async def settle() -> list[str]:
        for _ in range(5):
            await asyncio.sleep(0)
        return [
            f"task {task.get_name()!r} ({task.get_coro()!r})"
            for task in asyncio.all_tasks()
            if task is not asyncio.current_task()
        ]

    return runner.run(settle())


def _children() -> list[psutil.Process]:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []  # the kernel knows of none: much cheaper than reading /proc
    return psutil.Process().children()


def _below(child: psutil.Process) -> list[psutil.Process]:
    try:
        return child.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _describe(child: psutil.Process) -> str:
    try:
        return f"process {child.pid} ({child.status()}): {' '.join(child.cmdline())[:200]}"
    except psutil.NoSuchProcess:
        return f"process {child.pid}"


def _end(child: psutil.Process) -> None:
    try:
        child.kill()
        child.wait(timeout=5)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        return
