"""Child processes that can be killed with all their descendants (R24, R31)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    timeout: float,  # noqa: ASYNC109 -- the child must be killed before the caller hears of it
    input: bytes = b"",
    max_output: int = 1 << 20,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> ProcessResult:
    """Runs a program without a shell, in a session of its own, and keeps `max_output` bytes of each stream.

    Its whole group is killed when `timeout` seconds are over (ChildTimeout), when the caller is cancelled,
    and when it ends and leaves descendants. Raises OSError if it cannot be started. `env` None: inherited.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
        env=env,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    groups.add(process.pid)
    readers = [
        asyncio.ensure_future(_read(stream, bytearray(), max_output))
        for stream in (process.stdout, process.stderr)
    ]
    feeder = asyncio.ensure_future(_feed(process.stdin, input))
    try:
        async with asyncio.timeout(timeout):
            await process.wait()
        groups.kill(process.pid)
        await asyncio.wait(readers, timeout=AFTERWARDS)
    except TimeoutError:
        raise ChildTimeout(f"{argv[0]} was killed: it ran longer than {timeout:g} s") from None
    finally:
        await _end(process, groups, [*readers, feeder])
    (out, more_out), (err, more_err) = (reader.result() for reader in readers)
    assert process.returncode is not None
    return ProcessResult(process.returncode, out, err, more_out or more_err)


async def _end(
    process: asyncio.subprocess.Process, groups: ChildGroups, tasks: Sequence[asyncio.Future[Any]]
) -> None:
    groups.kill(process.pid)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    if process.returncode is None:  # bounded: a process in an uninterruptible call dies when it likes
        await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=AFTERWARDS)
    groups.discard(process.pid)
    # A descendant outside of the group may hold the pipes: close our ends.
    process._transport.close()  # type: ignore[attr-defined]


async def _feed(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
        stream.close()


async def _read(stream: asyncio.StreamReader, kept: bytearray, limit: int) -> tuple[bytes, bool]:
    """Reads to the end, keeps the first `limit` bytes. Cancelled: answers what has come so far."""
    more = False
    try:
        while chunk := await stream.read(65536):
            more = more or len(kept) + len(chunk) > limit
            kept += chunk[: limit - len(kept)]
    except asyncio.CancelledError:
        return bytes(kept), True
    return bytes(kept), more
