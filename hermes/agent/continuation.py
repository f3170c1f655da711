"""One answer out of the parts that the output limit left of it; nothing of the joinery is ever stored.

A cut-off part is worth more than the same request again, which would be cut off at the same place. So the
part goes back to the model with the request to go on, a bounded number of times; the turn sees one answer.
"""

from __future__ import annotations

from dataclasses import replace

from hermes.core.ports import TurnObserver
from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
    UserItem,
)
from hermes.policy.budget import plus_usage
from hermes.policy.streams import CONTINUE, joined, may_repeat, repeated, resume_from


class Continuation:
    """The parts of one answer so far. ``limit``: how often more may be asked for."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._asked = 0
        self._text = ""
        self._model = ""
        self._usage = Usage()

    @property
    def begun(self) -> bool:
        """A part is there."""
        return bool(self._text)

    @property
    def kept(self) -> str:
        """What the next part is joined to."""
        return resume_from(self._text)

    def request(self, request: ModelRequest) -> ModelRequest:
        """The request for what is still missing: ``request`` itself before the first part."""
        if not self.begun:
            return request
        said = AssistantItem(self.kept, finish=FinishReason.LENGTH, model=request.model)
        return replace(request, items=(*request.items, said, UserItem(CONTINUE, note=True)))

    def take(self, part: ModelReply) -> bool:
        """Adds a part that was cut off in its turn; False when no more is to be asked for."""
        before, self._text = self._text, joined(self.kept, part.text)
        self._model = part.model
        self._usage = plus_usage(self._usage, part.usage)
        if len(self._text) <= len(before):
            self._text = before
            return False
        self._asked += 1
        return self._asked <= self._limit

    def as_it_stands(self) -> ModelReply:
        """The parts as an answer that is cut off."""
        return ModelReply(self._text, (), FinishReason.LENGTH, self._usage, self._model)

    def whole(self, last: ModelReply) -> ModelReply:
        """The answer that ``last`` completes: ``last`` itself when there was no part before it."""
        if not self.begun:
            return last
        calls: tuple[ToolCall, ...] = last.tool_calls
        text = joined(self.kept, last.text)
        return replace(last, text=text, tool_calls=calls, usage=plus_usage(self._usage, last.usage), opaque=())


class Showing:
    """Shows one attempt's text, without what it repeats of ``before``; what comes after ``end`` goes nowhere.

    ``stale``: earlier parts are on show; they are replaced by ``before`` and what follows at the first word.
    """

    def __init__(self, observer: TurnObserver, before: str = "", *, stale: bool = False) -> None:
        self._observer = observer
        self._before = before
        self._stale = stale
        self._held = ""
        self._joined = not before
        self._over = False
        self.any = False

    def on_text(self, text: str) -> None:
        """A piece as it comes."""
        if self._over:
            return
        if self._joined:
            self._show(text)
            return
        self._held += text
        if not may_repeat(self._before, self._held):
            self._join()

    def end(self, *, complete: bool) -> None:
        """The attempt is over. A complete one shows what was held back."""
        if complete and not self._over and not self._joined:
            self._join()
        self._over = True

    def _join(self) -> None:
        held, self._held, self._joined = self._held, "", True
        self._show(held[repeated(self._before, held) :])

    def _show(self, text: str) -> None:
        if not text:
            return
        if not self.any:
            self.any = True
            if self._stale:
                self._observer.on_restart()
            if self._before:
                self._observer.on_text(self._before)
        self._observer.on_text(text)
