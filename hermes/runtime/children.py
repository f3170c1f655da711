"""Child processes that can be killed with all their descendants (R24, R31)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

AFTERWARDS = 1.0
"""Seconds that output may still come after the child ended (a descendant may hold the pipe for ever)."""


class ChildTimeout(TimeoutError):
    """A child was killed because its time was up."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a child ended. `code` is negative for a signal; `truncated`: more was said than is kept."""

    code: int
    stdout: bytes
    stderr: bytes
    truncated: bool


class ChildGroups:
    """The process groups we started and must not leave behind."""

    def __init__(self) -> None:
        self._groups: set[int] = set()

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, group: int) -> None:
        """Registers the group of a child started with a session of its own (its pid)."""
        self._groups.add(group)

    def discard(self, group: int) -> None:
        """Forgets a group whose members have ended."""
        self._groups.discard(group)

    def kill(self, group: int) -> None:
        """Kills every member of the group; no error if there is none."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)

    def kill_all(self) -> None:
        """Kills every registered group and forgets them; for the very end of the process."""
        for group in tuple(self._groups):
            self.kill(group)
        self._groups.clear()


async def run_process(
    groups: ChildGroups,
    argv: Sequence[str],
    *,
    timeout: float,  # noqa: ASYNC109 - the child must be killed before the caller hears of it
    input: bytes = b"",
    max_output: int = 1 << 20,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> ProcessResult:
    """Runs a program without a shell, in a session of its own, and keeps `max_output` bytes of each stream.

    Its whole group is killed when `timeout` seconds are over (ChildTimeout), when the caller is cancelled,
    and when it ends and leaves descendants. Raises OSError if it cannot be started. `env` None: inherited.
    """
    child = _Child(max_output)
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: child,
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
        env=env,
    )
    group = transport.get_pid()
    groups.add(group)
    try:
        stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        stdin.write(input)
        stdin.write_eof()
        async with asyncio.timeout(timeout):
            await child.exited.wait()
        groups.kill(group)
        await _within(AFTERWARDS, child.silent)
    except TimeoutError:
        raise ChildTimeout(f"{argv[0]} was killed: it ran longer than {timeout:g} s") from None
    finally:
        groups.kill(group)
        try:  # bounded: a process in an uninterruptible call dies when it likes
            await _within(AFTERWARDS, child.exited)
        finally:
            transport.close()  # a descendant outside of the group may hold the other ends
            groups.discard(group)
    code = transport.get_returncode()
    assert code is not None
    return ProcessResult(code, bytes(child.kept[1]), bytes(child.kept[2]), child.truncated)


class _Child(asyncio.SubprocessProtocol):
    """Not asyncio's own streams: up to Python 3.12 their `wait` also waits for whoever inherited a pipe."""

    def __init__(self, limit: int) -> None:
        self.kept = {1: bytearray(), 2: bytearray()}
        self.truncated = False
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self._limit = limit
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd]
        room = self._limit - len(kept)
        kept += data[:room]
        self.truncated = self.truncated or len(data) > room

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


async def _within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
