"""How late the loop is, and who holds it up."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import FrameType

FRAMES = 8
"""Innermost frames that a report names."""


class StallKind(Enum):
    """Why the loop did not turn."""

    CPU = "cpu"
    """Its thread computed most of the time."""
    WAIT = "wait"
    """Its thread sat in a blocking call, or other threads held the interpreter."""
    SUSPENDED = "suspended"
    """The watcher did not run either: stopped, swapped out, a machine under load, or C code that sleeps
    without letting go of the interpreter."""


@dataclass(frozen=True, slots=True)
class Stall:
    """One time at which the loop was late. `frames`: innermost first; empty if it could not be seen."""

    kind: StallKind
    seconds: float
    cpu_seconds: float
    frames: tuple[str, ...]


class LagMonitor:
    """A heartbeat on the loop, and one watcher thread that looks at the loop's thread when a beat is late.

    A block longer than `interval` + `threshold` seconds is always seen, a shorter one above `threshold` with
    luck. `lag_seconds` is the latest beat's lateness (or the present one, if longer), `max_cpu_block` the
    longest stall's CPU seconds, `stalls` counts by kind. `on_stall` is called on the loop, after the stall.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.05,
        interval: float = 0.2,
        on_stall: Callable[[Stall], None] = lambda stall: None,
    ) -> None:
        self.threshold = threshold
        self.interval = interval
        self.max_lag = 0.0
        self.max_cpu_block = 0.0
        self.stalls: dict[StallKind, int] = dict.fromkeys(StallKind, 0)
        self._on_stall = on_stall
        self._lag = 0.0
        self._due = 0.0
        self._cpu = 0.0
        self._sample: tuple[float, tuple[str, ...]] | None = None
        self._watcher_late = 0.0
        self._thread_id = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def lag_seconds(self) -> float:
        """Seconds by which the loop is or was last late; may be asked from any thread."""
        return max(self._lag, time.monotonic() - self._due) if self._handle is not None else self._lag

    def start(self) -> None:
        """Begins on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._stop.clear()
        self._next_beat(time.monotonic())
        self._watcher = threading.Thread(target=self._watch, name="hermes-lag", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Ends heartbeat and watcher; idempotent. Waits for the watcher, a few milliseconds."""
        self._stop.set()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._watcher is not None:
            self._watcher.join(1.0)
            self._watcher = None

    def _next_beat(self, now: float) -> None:
        self._due = now + self.interval
        self._cpu = time.thread_time()
        self._sample = None
        self._watcher_late = 0.0
        if self._loop is not None:
            self._handle = self._loop.call_later(self.interval, self._beat)

    def _beat(self) -> None:
        now = time.monotonic()
        late = max(0.0, now - self._due)
        self._lag = late
        if late > self.threshold:
            self._record(late, time.thread_time() - self._cpu)
        self._next_beat(now)

    def _record(self, late: float, cpu: float) -> None:
        blocked = late + self.interval  # the block may have begun at any time since the last beat
        computed = min(cpu, blocked)
        sample = self._sample if self._sample is not None and self._sample[0] == self._due else None
        unwatched = self._watcher_late if sample is not None else late - 2 * self.threshold
        if computed >= late / 2:
            kind = StallKind.CPU
        elif unwatched >= late / 2:
            kind = StallKind.SUSPENDED
        else:
            kind = StallKind.WAIT
        self.max_lag = max(self.max_lag, late)
        self.max_cpu_block = max(self.max_cpu_block, computed)
        self.stalls[kind] += 1
        self._on_stall(Stall(kind, late, computed, sample[1] if sample is not None else ()))

    def _watch(self) -> None:
        while True:
            due = self._due
            wake_at = due + self.threshold
            if self._stop.wait(max(0.005, wake_at - time.monotonic())):
                return
            if due != self._due:
                continue  # it beat in time
            if self._sample is None:
                self._watcher_late = max(0.0, time.monotonic() - wake_at - self.threshold)
                frame = sys._current_frames().get(self._thread_id)
                self._sample = (due, _names(frame))
            # Seen once is enough; look again at the earliest when the next beat could be late.
            if self._stop.wait(self.interval):
                return


def _names(frame: FrameType | None) -> tuple[str, ...]:
    found: list[str] = []
    while frame is not None and len(found) < FRAMES:
        code = frame.f_code
        found.append(f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return tuple(found)
