"""The calls of one step, side by side where nothing can come of it but time.

A call starts when no outcome of those still running could make the guard refuse it, so every decision is the
one that a run call by call would have made (parallel batches decide as sequential ones do). Only mere readers
(``pure``) run beside each other: what may change something runs alone and in its place, so that what is read
after it in the batch is read after it. Results are observed and stored in the order of the
calls: what is on disk is always what a run call by call would have left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes.agent.guarding import TurnGuard
from hermes.core.errors import HermesError
from hermes.core.records import OutboxRow, ToolEffect
from hermes.core.transcript import ToolCall, ToolResultItem, ToolStatus
from hermes.policy.call_keys import Act
from hermes.policy.guardrails import Block, Halt, Proceed


@dataclass(frozen=True, slots=True)
class Results:
    """All calls of a step have their results, on disk and in the order of the calls."""

    items: tuple[ToolResultItem, ...]


@dataclass(frozen=True, slots=True)
class Suspended:
    """The turn waits for a person; ``rows`` carries the question."""

    rows: list[OutboxRow]


@dataclass(frozen=True, slots=True)
class Halted:
    """The turn is to end with ``sentence``. ``closing`` are the results of the calls that were not run: they go
    to disk with the turn's end."""

    closing: tuple[ToolResultItem, ...]
    reason: str
    sentence: str


class Acts(Protocol):
    """What a batch does through the toolbox, for the calls of one step."""

    def waits_for_person(self, call: ToolCall) -> bool:
        """Whether the call suspends the turn."""

    async def suspend(self, call: ToolCall) -> Suspended:
        """Asks the person."""

    async def start(self, calls: Sequence[ToolCall]) -> None:
        """The intents of these calls are on disk."""

    async def perform(self, call: ToolCall) -> ToolResultItem | HermesError:
        """Runs a started call. Raises nothing but cancellation: what is no result is handed back."""

    async def keep(self, call: ToolCall, item: ToolResultItem) -> None:
        """The result of a started call is on disk."""

    async def skip(self, call: ToolCall, item: ToolResultItem) -> None:
        """The result of a call that is not run is on disk."""


@dataclass(frozen=True, slots=True)
class _Flight:
    call: ToolCall
    act: Act
    task: asyncio.Task[ToolResultItem | HermesError]


class Batch:
    """One step's calls; ``run`` may be called once."""

    def __init__(self, acts: Acts, guard: TurnGuard, max_parallel: int) -> None:
        self._acts = acts
        self._guard = guard
        self._most = max_parallel
        self._flights: deque[_Flight] = deque()
        self._items: list[ToolResultItem] = []

    async def run(self, calls: Sequence[ToolCall]) -> Results | Suspended | Halted:
        """Raises what the store raises; cancellation ends every call under way."""
        fault: HermesError | None = None
        ended: Results | Suspended | Halted | None = None
        # the group is for cancellation: a failing tool is a result and disturbs no other call (R25)
        async with asyncio.TaskGroup() as group:
            try:
                ended = await self._go(deque((c, self._guard.act(c)) for c in calls), group)
            except HermesError as error:
                fault = error
                for flight in self._flights:
                    flight.task.cancel()
        if fault is not None:
            raise fault
        assert ended is not None
        return ended

    async def _go(
        self, waiting: deque[tuple[ToolCall, Act]], group: asyncio.TaskGroup
    ) -> Results | Suspended | Halted:
        while waiting or self._flights:
            await self._land()
            if starting := self._take(waiting):
                await self._acts.start([call for call, _ in starting])
                for call, act in starting:
                    self._flights.append(_Flight(call, act, group.create_task(self._acts.perform(call))))
            elif self._flights:
                under_way = [f.task for f in self._flights if not f.task.done()]
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            elif waiting:
                ended = await self._alone(waiting)
                if ended is not None:
                    return ended
        return Results(tuple(self._items))

    def _take(self, waiting: deque[tuple[ToolCall, Act]]) -> list[tuple[ToolCall, Act]]:
        """The next calls that may start now, in order."""
        taken: list[tuple[ToolCall, Act]] = []
        while waiting:
            call, act = waiting[0]
            acts = [*(f.act for f in self._flights), *(a for _, a in taken)]
            running = len(taken) + sum(not f.task.done() for f in self._flights)
            alone = any(a.effect is not ToolEffect.PURE for a in (act, *acts))
            if running >= self._most or (acts and alone) or self._acts.waits_for_person(call):
                break
            if not self._guard.certain(acts, act):
                break
            taken.append(waiting.popleft())
        return taken

    async def _land(self) -> None:
        """Observes and stores what has ended, up to the first call that still runs."""
        while self._flights and self._flights[0].task.done():
            flight = self._flights[0]
            result = flight.task.result()
            if isinstance(result, HermesError):
                raise result
            item = self._guard.observe(flight.act, result)
            await self._acts.keep(flight.call, item)
            self._items.append(item)
            self._flights.popleft()

    async def _alone(self, waiting: deque[tuple[ToolCall, Act]]) -> Suspended | Halted | None:
        """The next call, all before it being done: it asks a person, or is not run."""
        call, act = waiting[0]
        decision = self._guard.before(act)
        match decision:
            case Proceed():
                return await self._acts.suspend(call)
            case Block():
                item = self._guard.observe(act, _not_run(call, decision.text))
                await self._acts.skip(call, item)
                self._items.append(item)
                waiting.popleft()
                return None
            case Halt(kind, _, sentence):
                return Halted(tuple(self._close(waiting)), f"tool_loop:{kind.value}", sentence)

    def _close(self, waiting: deque[tuple[ToolCall, Act]]) -> list[ToolResultItem]:
        closing = []
        for call, act in waiting:
            decision = self._guard.before(act)
            assert isinstance(decision, Halt)
            closing.append(self._guard.observe(act, _not_run(call, decision.text)))
        return closing


def _not_run(call: ToolCall, text: str) -> ToolResultItem:
    return ToolResultItem(call.call_id, call.name, text, ToolStatus.NOT_RUN)
