"""A model with a real window: it counts, refuses what is too long in words of its own, and summarises as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.transcript import FinishReason, ModelReply, ModelRequest, ToolCall, Usage, UserItem
from hermes.policy.summary import SYSTEM
from hermes.providers.openai.translate import render

__all__ = ["ANSWERS", "WindowedModel", "prompt_text"]

STALL = 100_000.0

ANSWERS: dict[str, Callable[[str], str]] = {
    "honest": lambda asked: "They talked about one thing after the other.",
    "nothing": lambda asked: " ",
    "echo": lambda asked: asked.partition("<transcript>")[2].partition("</transcript>")[0],
    "longer": lambda asked: asked * 3,
    "refuses": lambda asked: "I'm sorry, I can't help with that.",
    "fails": lambda asked: "",
    "stalls": lambda asked: "",
}


def prompt_text(request: ModelRequest) -> str:
    """All that a template would show."""
    body = render(request)
    return "\n".join(str(part) for part in (*body.get("tools", ()), *body["messages"]))


@dataclass
class WindowedModel:
    """``window`` in its own tokens, of ``chars`` characters each. ``words``: the overflow's message."""

    window: int
    summaries: str = "honest"
    chars: float = 4.0
    words: str = (
        "This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens."
    )
    name: str = "sim"
    reports: bool = True
    calls: int = 0
    """Of each answer so many tools are called, one step after the other."""
    requests: list[ModelRequest] = field(default_factory=list)
    refused: list[ModelRequest] = field(default_factory=list)

    def size(self, request: ModelRequest) -> int:
        """Tokens of a prompt."""
        return int(len(prompt_text(request)) / self.chars)

    @property
    def asked_for_summaries(self) -> list[ModelRequest]:
        """Its requests for summaries."""
        return [request for request in self.requests if request.system == SYSTEM]

    @property
    def turns(self) -> list[ModelRequest]:
        """The others."""
        return [request for request in self.requests if request.system != SYSTEM]

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.requests.append(request)
        await asyncio.sleep(0.5)
        size = self.size(request)
        if size > self.window:
            self.refused.append(request)
            raise ProviderFailure(self._facts(400, self.words.format(window=self.window, size=size)))
        usage = Usage(size if self.reports else 0, 5)
        if request.system == SYSTEM:
            if self.summaries == "fails":
                raise ProviderFailure(self._facts(500, "broken"))
            if self.summaries == "stalls":
                await asyncio.sleep(STALL)
            text = ANSWERS[self.summaries](request.items[-1].text)
            return ModelReply(text, (), FinishReason.STOP, usage, request.model)
        done = len(request.items) - 1 - max(i for i, item in enumerate(request.items) if isinstance(item, UserItem))
        if request.tools and done // 2 < self.calls:
            call = ToolCall(f"c{len(self.requests)}", "read_file", '{"path": "long.txt"}')
            return ModelReply("", (call,), FinishReason.TOOL_CALLS, usage, request.model)
        text = f"You said: {request.items[-1].text[:40]}"
        on_text(text)
        return ModelReply(text, (), FinishReason.STOP, usage, request.model)

    def _facts(self, status: int, message: str) -> FailureFacts:
        return FailureFacts(FaultKind.HTTP_STATUS, Phase.RESPONSE, "sim", "m", status, message=message)

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Nothing to close."""
