"""One ask, fitted to whichever target is tried, with the repairs made so far."""

from __future__ import annotations

from hermes.agent.targets import Ask, Target
from hermes.core.transcript import ModelRequest
from hermes.policy.trim import estimate_tokens, trim_to


class Fit:
    """One ask, fitted to whichever target is tried, with the repairs made so far."""

    def __init__(self, ask: Ask, begun: float = 0.0) -> None:
        self.begun = begun
        self._ask = ask
        self._items = ask.items
        self.max_output: int | None = None

    def request(self, target: Target, trim_share: float) -> ModelRequest:
        """The request for a target: trimmed to a share of its window where that is known."""
        items = self._items
        if target.context_window is not None:
            room = int(target.context_window * trim_share)
            if estimate_tokens(items) > room:
                items = trim_to(items, room)
        return ModelRequest(
            target.model,
            self._ask.system,
            items,
            self._ask.tools if target.tools else (),
            self.max_output if self.max_output is not None else target.max_output,
        )

    def compact(self, limit: int | None) -> None:
        """Halves what is sent, or brings it under three quarters of the window the error named."""
        half = estimate_tokens(self._items) // 2
        room = min(half, int(limit * 0.75)) if limit else half
        self._items = trim_to(self._items, room)
