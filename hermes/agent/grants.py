"""Permission for one model call: a context manager and a lease (R29)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from hermes.core.failures import Verdict

if TYPE_CHECKING:
    from hermes.agent.governor import Governor
    from hermes.agent.upstream import Upstream


class Grant:
    """Implements ``core.governor.Granted``."""

    __slots__ = ("_governor", "_target", "answered", "done", "fresh", "number", "probe", "started", "tokens")

    def __init__(
        self, governor: Governor, target: Upstream, number: int, started: float, tokens: int, probe: bool
    ) -> None:
        self._governor = governor
        self._target = target
        self.number = number
        self.started = started
        self.tokens = tokens
        self.probe = probe
        self.answered = False
        self.fresh = True
        self.done = False

    def __enter__(self) -> Grant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.done:
            self.abandon()

    def watch(self, on_text: Callable[[str], None]) -> Callable[[str], None]:
        """``on_text`` that also notices the first token."""

        def watching(text: str) -> None:
            if not self.answered:
                self.sign()
            on_text(text)

        return watching

    def sign(self) -> None:
        """The first sign of an answer: the upstream took the call."""
        if not self.answered and not self.done:
            self._signed()
            self._governor.taken(self._target, self)

    def succeeded(self, headers: Mapping[str, str] | None = None) -> None:
        if not self.done:
            self.sign()
            self._end()
            self._governor.finished(self._target, headers)

    def failed(self, verdict: Verdict, *, rotated: bool = False) -> None:
        """``rotated``: another credential takes over, so this one's refusal does not rest the target."""
        if not self.done:
            self._signed()
            crowd = len(self._target.grants)
            self._end()
            self._governor.judged(self._target, self, verdict, rotated, crowd)

    def abandon(self) -> None:
        if not self.done:
            self._signed()
            self._end()
            self._governor.returned(self._target, self)

    def stale(self) -> None:
        """No longer counted among the calls lately sent."""
        if self.fresh:
            self.fresh = False
            self._target.unanswered -= 1

    def _signed(self) -> None:
        if not self.answered:
            self.answered = True
            self._target.silent -= 1
        self.stale()

    def _end(self) -> None:
        self.done = True
        self._target.grants.pop(self.number, None)
