"""Lines typed in a terminal while the loop goes on: no thread, and the terminal's modes stay as they are."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable

MAX_READ = 65536


class Terminal:
    """Reads standard input in its line mode; a context manager inside a running loop.

    Ctrl-C calls ``on_interrupt``; when that has nothing to interrupt (False) it ends the lines, as Ctrl-D does.
    """

    def __init__(self, *, on_interrupt: Callable[[], bool]) -> None:
        self._on_interrupt = on_interrupt
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._begun = b""

    def __enter__(self) -> Terminal:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._readable)
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(sys.stdin.fileno())
        loop.remove_signal_handler(signal.SIGINT)

    async def line(self, prompt: str) -> str | None:
        """The next line without its end; None when there is no more."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        return await self._lines.get()

    def _readable(self) -> None:
        data = os.read(sys.stdin.fileno(), MAX_READ)
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            self._end()

    def _interrupted(self) -> None:
        if not self._on_interrupt():
            self._end()

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        sys.stdout.write("\n")
        self._lines.put_nowait(None)
