"""Who may be asked, what is asked, and how a call ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from hermes.core.failures import Verdict
from hermes.core.money import Price, Refusal
from hermes.core.ports import Provider
from hermes.core.transcript import Item, ModelReply, ToolSpec
from hermes.core.urgency import Urgency


@dataclass(frozen=True, slots=True)
class Target:
    """A provider and one of its models; window and output in tokens, None = unknown."""

    provider: Provider
    model: str
    context_window: int | None = None
    max_output: int | None = None
    tools: bool = True
    price: Price | None = None  # None: not known, so its calls count as tokens only
    images: bool = False  # whether it is shown pictures
    betas: tuple[str, ...] = ()  # features of a long window, by the vendor's names
    most_images: int = 20  # of a conversation, the newest

    @property
    def name(self) -> str:
        """``provider/model``."""
        return f"{self.provider.name}/{self.model}"


@dataclass(frozen=True, slots=True)
class Answered:
    """A complete answer and who gave it."""

    reply: ModelReply
    target: Target


@dataclass(frozen=True, slots=True)
class GaveUp:
    """No answer: why, and the sentence for the person."""

    verdict: Verdict
    sentence: str


@dataclass(frozen=True, slots=True)
class Parked:
    """No answer now: ``outage`` names what is waited for (``target@since``), ``sentence`` says why."""

    verdict: Verdict
    outage: str
    sentence: str


@dataclass(frozen=True, slots=True)
class OverBudget:
    """No call: a cap on money stands in the way. ``part``: what had come before it did."""

    refusal: Refusal
    part: Answered | None = None


Shorter: TypeAlias = Callable[[int], Awaitable[tuple[Item, ...] | None]]
"""Items to send in place of the asked ones, for a prompt of so many tokens; None if there are none."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked, before it is fitted to a target."""

    system: str
    items: tuple[Item, ...]
    tools: tuple[ToolSpec, ...]
    principal: str = ""
    urgency: Urgency = Urgency.INTERACTIVE
    max_output: int | None = None  # fewer tokens than the target's own limit
    shorter: Shorter | None = None  # asked after an overflow


class UpstreamBook:
    """The last outcome of each target, for health: no mark without a call (promise 8)."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[float, Verdict | None]] = {}

    def note(self, target: str, at: float, verdict: Verdict | None) -> None:
        """``verdict`` None: the call succeeded."""
        self.last[target] = (at, verdict)
