"""How long prompts are for each model: estimated by script, corrected by what providers count (policy.estimate)."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.agent.repairs import LearnedBook
from hermes.agent.targets import Target
from hermes.core.transcript import ModelRequest
from hermes.policy.estimate import PRIOR, Calibration, differs, dump, learned, load, prompt_measure, tokens

VOCABULARY = "vocabulary"
"""The learned fact's key; its value is ``policy.estimate.dump``'s."""
_ALWAYS, _AGAIN = 3, 200
"""So many first counts are kept on disk whatever they changed, and after that each of so many, for the expiry."""


@dataclass(slots=True)
class _Known:
    now: Calibration
    kept: Calibration | None = None  # as it is on disk


class TokenBook:
    """The calibration of each target, in memory; kept with what else was learned about it."""

    def __init__(self, book: LearnedBook) -> None:
        self._book = book
        self._known: dict[str, _Known] = {}

    def calibration(self, target: Target) -> Calibration:
        """What is known of a target's vocabulary; ``PRIOR`` while nothing was counted, and after a clearing."""
        return self._of(target).now

    def prompt(self, target: Target, request: ModelRequest) -> int:
        """Tokens that a request's prompt takes."""
        return tokens(prompt_measure(request.system, request.items, request.tools), self.calibration(target))

    async def note(self, target: Target, request: ModelRequest, counted: int) -> None:
        """The provider counted so many input tokens for this request; 0 = it did not say."""
        known = self._of(target)
        measured = prompt_measure(request.system, request.items, request.tools)
        after = learned(known.now, measured, counted)
        if after is known.now:
            return
        known.now = after
        early = after.counts <= _ALWAYS or after.counts % _AGAIN == 0
        if early or known.kept is None or differs(after, known.kept):
            known.kept = after
            await self._book.keep(target, {VOCABULARY: dump(after)}, quietly=True)

    def _of(self, target: Target) -> _Known:
        found = self._known.get(target.name)
        if found is None or found.kept is not None:
            text = self._book.of(target).get(VOCABULARY)
            if text is None:
                found = _Known(PRIOR)
            elif found is None:
                kept = load(text)
                found = _Known(kept, kept)
            self._known[target.name] = found
        return found
