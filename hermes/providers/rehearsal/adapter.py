"""No model: a provider that plays answers, faults and recoveries on order, and says so.

What it raises goes through the same classification and recovery as a real upstream's failures. It knows
the conversation only by the transcript it is given; the one thing it remembers is how often it has
failed a call already, in a bounded table, so that a repeated call can succeed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.transcript import (
    FinishReason,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSpec,
    Usage,
    dump_item,
)
from hermes.providers.rehearsal import script
from hermes.providers.rehearsal.scenarios import FAULTS, PERFORMANCES, Fault, Performance, Scope

MODEL = "rehearsal"
REMEMBERED = 1_000
"""Calls whose failed attempts are counted at once; the oldest is forgotten first."""

WORD_PAUSE = 0.15
"""Seconds between the words of a slow answer, at speed 1."""

LOOP_LIMIT = 30
"""Tool calls after which ``loop`` ends by itself, should no guardrail have ended it."""

_TOOLS = ("session_search", "read_file", "search_files")
_ARGUMENTS = {"path": "README.md", "question": "Which of the two do you mean?"}


class RehearsalSettings(Protocol):
    """What this adapter reads of its configuration: a factor on its waits; 0: none."""

    @property
    def speed(self) -> float: ...


class RehearsalProvider:
    """The ``Provider`` of ``core.ports`` that needs no network."""

    def __init__(self, name: str, config: RehearsalSettings) -> None:
        self._name = name
        self._pace = config.speed
        self._failed: OrderedDict[str, int] = OrderedDict()
        self._closed = False

    @property
    def name(self) -> str:
        """The provider's name in the configuration."""
        return self._name

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """Plays what the last message orders. Raises ProviderFailure when that is a fault."""
        if self._closed:
            raise ProviderFailure(
                FailureFacts(
                    kind=FaultKind.REQUEST_INVALID,
                    phase=Phase.REQUEST,
                    provider=self._name,
                    model=request.model,
                    message="the provider is closed",
                )
            )
        name = script.order(script.question(request.items))
        if name is None:
            return await self._say(request, script.small_talk(request.items), on_text)
        if fault := FAULTS.get(name):
            return await self._fail(request, name, fault, on_text)
        if performance := PERFORMANCES.get(name):
            return await self._perform(request, performance, on_text)
        unknown = "" if name in ("", "help") else name
        return await self._say(request, script.help_text(unknown), on_text)

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Refuses further calls. Idempotent."""
        self._closed = True

    async def _fail(
        self, request: ModelRequest, name: str, fault: Fault, on_text: Callable[[str], None]
    ) -> ModelReply:
        key = _fingerprint(request, name, fault.scope)
        failed = self._failed.get(key, 0)
        if fault.times and failed >= fault.times:
            self._failed.pop(key, None)
            return await self._say(request, script.recovered(name, failed), on_text)
        self._failed[key] = failed + 1
        self._failed.move_to_end(key)
        while len(self._failed) > REMEMBERED:
            self._failed.popitem(last=False)
        for word in _words(script.slow_text())[: fault.words]:
            on_text(word)
            await self._pause(WORD_PAUSE)
        await self._pause(fault.wait)
        raise ProviderFailure(fault.facts(self._name, request.model))

    async def _perform(
        self, request: ModelRequest, performance: Performance, on_text: Callable[[str], None]
    ) -> ModelReply:
        match performance:
            case Performance.SLOW:
                return await self._say(request, script.slow_text(), on_text, pause=WORD_PAUSE)
            case Performance.LONG:
                return await self._say(request, script.long_text(), on_text)
            case Performance.MARKDOWN:
                return await self._say(request, script.MARKDOWN, on_text)
            case Performance.TOOL:
                return await self._use(request, _TOOLS, 1, on_text)
            case Performance.CLARIFY:
                return await self._use(request, ("clarify",), 1, on_text)
            case Performance.LOOP:
                return await self._use(request, _TOOLS, LOOP_LIMIT, on_text)

    async def _use(
        self, request: ModelRequest, names: tuple[str, ...], times: int, on_text: Callable[[str], None]
    ) -> ModelReply:
        """Asks for a tool call until it has ``times`` results, then says what the last one was."""
        results = script.results(request.items)
        if len(results) >= times:
            last = results[-1]
            text = f"The tool `{last.name}` ({last.status.value}) said: {script.said_back(last.text)}"
            return await self._say(request, text, on_text)
        offered = {spec.name: spec for spec in request.tools}
        spec = next((offered[name] for name in names if name in offered), None)
        if spec is None:
            text = f"None of these tools is offered to me here: {', '.join(names)}."
            return await self._say(request, text, on_text)
        call = ToolCall(f"call_{uuid.uuid4().hex[:24]}", spec.name, json.dumps(_arguments(spec)))
        return ModelReply("", (call,), FinishReason.TOOL_CALLS, _usage(request, call.arguments), MODEL)

    async def _say(
        self, request: ModelRequest, text: str, on_text: Callable[[str], None], *, pause: float = 0.0
    ) -> ModelReply:
        for word in _words(text) if pause else (text,):
            on_text(word)
            if pause:
                await self._pause(pause)
        return ModelReply(text, (), FinishReason.STOP, _usage(request, text), MODEL)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._pace)


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [f"{word} " for word in words[:-1]] + words[-1:]


def _fingerprint(request: ModelRequest, name: str, scope: Scope) -> str:
    if scope is Scope.QUESTION:
        said = script.question(request.items)
    else:
        said = "\n".join(dump_item(item) for item in request.items)
    return hashlib.sha256(f"{request.model}\n{name}\n{said}".encode("utf-8", "replace")).hexdigest()


def _usage(request: ModelRequest, text: str) -> Usage:
    """Four characters a token: nobody bills it, but budgets and meters have something to show."""
    said = len(request.system) + sum(len(item.text) for item in request.items)
    return Usage(said // 4 + 1, len(text) // 4 + 1)


def _arguments(spec: ToolSpec) -> dict[str, object]:
    """Plausible values for what the tool's schema demands."""
    properties = spec.parameters.get("properties") or {}
    required = spec.parameters.get("required") or list(properties)[:1]
    values: dict[str, object] = {}
    for key in required:
        schema = properties.get(key) or {}
        match schema.get("type", "string"):
            case "integer" | "number":
                values[key] = schema.get("minimum", 1)
            case "boolean":
                values[key] = False
            case "array":
                values[key] = ["the left one", "the right one"]
            case _:
                values[key] = _ARGUMENTS.get(key, "rehearse")
    return values
