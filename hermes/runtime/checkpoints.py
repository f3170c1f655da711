"""Named places at which a test lets the process die as by `kill -9`."""

from __future__ import annotations

import os
import signal


class Checkpoints:
    """`spec` is `NAME` or `NAME:N`: the process kills itself the N-th time it reaches NAME (N counts from 1).

    None or an empty text: every `reach` is one attribute check. Raises ValueError for a malformed spec.
    """

    __slots__ = ("_left", "_name")

    def __init__(self, spec: str | None) -> None:
        self._name: str | None = None
        self._left = 1
        if not spec:
            return
        name, colon, count = spec.partition(":")
        if not name or (colon and not (count.isascii() and count.isdigit() and int(count) > 0)):
            raise ValueError(f"crash point {spec!r}: give NAME or NAME:N with N >= 1, as in after_t1:2")
        self._name = name
        self._left = int(count) if colon else 1

    def reach(self, name: str) -> None:
        """Marks the place; returns, unless this is where the process is to die."""
        if self._name is None or name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
