"""The loop's one exception handler."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

Report = Callable[[str, str, "BaseException | None"], None]
"""Called with the error's type name, a sentence and the error."""

_CLOSED = ("Event loop is closed", "the handler is closed", "Transport is closed")


def _is_cleanup_noise(error: BaseException | None) -> bool:
    """A transport's `__del__` after the loop is closed: nothing is wrong and nothing can be done."""
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _CLOSED)


class LoopGuard:
    """Counts what reached the loop unhandled, by error type, and reports it; silences clean-up noise only.

    `counts` holds what was reported, `silenced` how often noise was dropped. `report` must not raise.
    """

    def __init__(self, report: Report) -> None:
        self.counts: Counter[str] = Counter()
        self.silenced = 0
        self._report = report
        self._previous: Callable[[sys.UnraisableHookArgs], Any] | None = None

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Becomes the loop's handler and hears of what is raised in `__del__` as well."""
        loop.set_exception_handler(self.handle)
        if self._previous is None:
            self._previous = sys.unraisablehook
            sys.unraisablehook = self.handle_unraisable

    def uninstall(self, loop: asyncio.AbstractEventLoop) -> None:
        """Puts back what was there before."""
        loop.set_exception_handler(None)
        if self._previous is not None:
            sys.unraisablehook = self._previous
            self._previous = None

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """As asyncio calls an exception handler."""
        error = context.get("exception")
        if _is_cleanup_noise(error):
            self.silenced += 1
            return
        about = context.get("task") or context.get("future") or context.get("handle")
        message = context.get("message") or "unhandled"
        self._count(error, f"{message}: {about!r}" if about is not None else message)

    def handle_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """As the interpreter calls sys.unraisablehook."""
        if _is_cleanup_noise(unraisable.exc_value):
            self.silenced += 1
            return
        self._count(unraisable.exc_value, unraisable.err_msg or f"ignored in {unraisable.object!r}")

    def _count(self, error: BaseException | None, message: str) -> None:
        kind = type(error).__name__ if error is not None else "none"
        self.counts[kind] += 1
        self._report(kind, message, error)
