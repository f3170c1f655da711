"""A standing goal of a conversation (/goal): turns begin by themselves until it is reached, or a bound is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hermes.core.events import Address
from hermes.core.ids import SessionId, TurnId
from hermes.core.principals import ChatRef, Identity, PrincipalId
from hermes.core.records import NewDelivery, OutboxRow


class GoalState(StrEnum):
    """active ⇄ paused | blocked; done. Only an active goal begins turns."""

    ACTIVE = "active"
    PAUSED = "paused"
    BLOCKED = "blocked"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Goal:
    """``said``: what its next turn is told. ``turns`` were begun by it; ``misread``: judgements in a row that
    could not be read."""

    session_id: SessionId
    principal_id: PrincipalId
    identity: Identity
    chat: ChatRef
    text: str
    said: str
    state: GoalState = GoalState.ACTIVE
    reason: str = ""
    turns: int = 0
    misread: int = 0

    @property
    def address(self) -> Address:
        """Where its answers go."""
        return Address(self.chat.platform, self.chat.account, self.chat.chat_id, self.chat.thread_id)


@dataclass(frozen=True, slots=True)
class Unjudged:
    """An active goal whose conversation's last turn has ended and was not judged yet."""

    goal: Goal
    turn_id: TurnId
    outcome: str
    reason: str
    answer: str


class Finding(StrEnum):
    """What a judge can find."""

    DONE = "done"
    CONTINUE = "continue"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Judgement:
    """``finding`` None: the judge's words could not be read."""

    finding: Finding | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class NoJudgement:
    """The judge could not be asked; the sentence says why."""

    sentence: str


class GoalJudge(Protocol):
    """Looks at the last answer and says whether the goal is reached."""

    async def judge(self, unjudged: Unjudged) -> Judgement | NoJudgement:
        """One model call, reserved and counted like any other."""


class Goals(Protocol):
    """Where goals are kept: one a conversation."""

    async def put(self, goal: Goal, now: float) -> None:
        """Replaces the conversation's goal; its first turn is due."""

    async def get(self, session: SessionId) -> Goal | None:
        """The conversation's goal, whatever its state."""

    async def drop(self, session: SessionId) -> bool:
        """Forgets it. False if there is none."""

    async def set_state(self, session: SessionId, state: GoalState, reason: str, now: float) -> bool:
        """Pauses or resumes; resuming begins its count of turns anew and makes a turn due. False: no such change."""

    async def active(self) -> list[SessionId]:
        """Conversations with an active goal."""

    async def unjudged(self, session: SessionId) -> Unjudged | None:
        """None while a turn is due, runs or waits, or a message waits to be answered first."""

    async def go_on(self, found: Unjudged, said: str, misread: int, now: float) -> bool:
        """The next turn is due. False if the goal is not active any more."""

    async def conclude(
        self, found: Unjudged, state: GoalState, reason: str, notice: NewDelivery, now: float
    ) -> list[OutboxRow]:
        """The goal ends or pauses, and the person is told, in one transaction; nothing if it is not active."""
