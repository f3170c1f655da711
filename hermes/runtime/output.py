"""Output that never blocks the loop (R27).

A full pipe blocks `write(2)` for ever, and O_NONBLOCK both tears lines and is shared with everyone who holds
the same description. So lines wait in memory, and one daemon thread writes at most PIPE_BUF bytes at a time,
only when poll(2) says that the descriptor takes them.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections import deque

CHUNK = min(getattr(select, "PIPE_BUF", 512), 4096)
"""Bytes of one write: what a pipe takes whole or not at all."""

_POLL = 0.2
"""Seconds between looks at `closing` while nobody reads."""


class LineSink:
    """Takes lines from any thread without waiting; never raises for what happens to the descriptor.

    `max_bytes` bounds what waits in memory: the oldest lines go first. `lost` counts lines dropped by that
    bound or refused by the descriptor; `lost_bytes` likewise. The descriptor is never closed here.
    """

    def __init__(self, fd: int, max_bytes: int = 1 << 20) -> None:
        self._fd = fd
        self._max = max_bytes
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None
        self._closing = False
        self._give_up_at = float("inf")
        self._busy = False
        self.lost = 0
        self.lost_bytes = 0
        self.written_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait in memory."""
        return self._bytes

    def write_line(self, line: str) -> None:
        """Queues one line; its newline is added. Lone surrogates are escaped."""
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._closing or len(data) > self._max:
                self._count_lost(data)
                return
            self._lines.append(data)
            self._bytes += len(data)
            while self._bytes > self._max:
                oldest = self._lines.popleft()
                self._bytes -= len(oldest)
                self._count_lost(oldest)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hermes-output", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Blocks up to `timeout` seconds until nothing waits; never for the loop. True: all written."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._busy, timeout)

    def close(self, timeout: float = 1.0) -> bool:
        """Writes what it can within `timeout` seconds, counts the rest as lost. True: the thread has ended.

        Later lines are counted as lost. Idempotent.
        """
        with self._changed:
            if not self._closing:
                self._closing = True
                self._give_up_at = time.monotonic() + timeout
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout + _POLL)
        with self._changed:
            for line in self._lines:
                self._count_lost(line)
            self._lines.clear()
            self._bytes = 0
        return thread is None or not thread.is_alive()

    def _count_lost(self, data: bytes) -> None:
        self.lost += max(1, data.count(b"\n"))
        self.lost_bytes += len(data)

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            left = self._write(batch)
            with self._changed:
                self.written_bytes += len(batch) - len(left)
                if left:
                    self._count_lost(left)
                self._busy = False
                self._changed.notify_all()

    def _next_batch(self) -> bytes | None:
        """Whole lines up to one chunk, or a single longer line; None when it is time to end."""
        with self._changed:
            while not self._lines:
                if self._closing:
                    return None
                self._changed.wait()
            if time.monotonic() >= self._give_up_at:
                return None
            batch = [self._lines.popleft()]
            size = len(batch[0])
            while self._lines and size + len(self._lines[0]) <= CHUNK:
                batch.append(self._lines.popleft())
                size += len(batch[-1])
            self._bytes -= size
            self._busy = True
            return b"".join(batch)

    def _write(self, batch: bytes) -> bytes:
        """Answers what the descriptor did not take."""
        rest = memoryview(batch)
        while rest:
            if time.monotonic() >= self._give_up_at:
                break
            try:
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                if poll.poll(_POLL * 1000):
                    rest = rest[os.write(self._fd, rest[:CHUNK]) :]
            except InterruptedError:
                continue
            except (OSError, ValueError) as error:
                if getattr(error, "errno", None) != errno.EAGAIN:
                    break
                time.sleep(_POLL / 10)  # another holder set O_NONBLOCK, and poll was too hopeful
        return bytes(rest)
