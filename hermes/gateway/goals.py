"""/goal: a conversation works on a standing goal by itself, turn after turn, and stops at every bound.

    /goal TEXT ─► due ─► claim begins a turn ─► it ends ─► judge ─┬─► continue: due again (at most goals.max_turns)
                           ▲  a message goes first                └─► done · blocked · paused: told once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from hermes.core.clock import Clock
from hermes.core.events import MessageEvent
from hermes.core.goals import Goal, GoalJudge, Goals, GoalState, Unjudged
from hermes.core.ids import SessionId
from hermes.core.principals import PrincipalId, Role
from hermes.core.records import OutboxRow
from hermes.gateway.ingest import AccessBook
from hermes.gateway.replies import PlatformReplies
from hermes.policy.access import Allow
from hermes.policy.goals import (
    AGAIN,
    MAX_GOAL_CHARS,
    Conclude,
    GoOn,
    LeaveIt,
    after_judging,
    before_judging,
    first_words,
)
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

NONE_SET = "No goal is set. /goal TEXT sets one: I work on it by myself until it is reached."
_CLEAR = frozenset({"clear", "off", "none", "cancel"})


class GoalKeeper:
    """Knows which conversations have an active goal, so that others cost no look-up."""

    def __init__(
        self,
        goals: Goals,
        judge: GoalJudge,
        replies: PlatformReplies,
        access: AccessBook,
        clock: Clock,
        *,
        offer: Callable[[Sequence[OutboxRow]], None],
        wake: Callable[[SessionId], None],
        max_turns: int = 15,
    ) -> None:
        self._goals = goals
        self._judge = judge
        self._replies = replies
        self._access = access
        self._clock = clock
        self._offer = offer
        self._wake = wake
        self.max_turns = max_turns
        self._active: set[SessionId] = set()

    async def load(self) -> list[SessionId]:
        """After a start: the conversations that go on. A goal whose author was shut out meanwhile is paused."""
        for session in await self._goals.active():
            goal = await self._goals.get(session)
            if goal is not None and self._may(goal):
                self._active.add(session)
            else:
                await self._goals.set_state(session, GoalState.PAUSED, "access", self._clock.now())
        return sorted(self._active)

    async def after(self, session: SessionId) -> bool:
        """A turn of the conversation has ended, or nothing is to be claimed: True when the goal's next is due."""
        if session not in self._active:
            return False
        found = await self._goals.unjudged(session)
        if found is None:
            return False
        first = before_judging(found)
        if isinstance(first, LeaveIt):
            return False
        step = first or after_judging(found, await self._judge.judge(found), self.max_turns)
        match step:
            case GoOn(said, misread) if self._may(found.goal):
                return await self._goals.go_on(found, said, misread, self._clock.now())
            case GoOn():
                await self._goals.set_state(session, GoalState.PAUSED, "access", self._clock.now())
                self._active.discard(session)
            case Conclude():
                await self._conclude(found, step)
            case _:
                assert_never(step)
        return False

    async def _conclude(self, found: Unjudged, step: Conclude) -> None:
        goal = found.goal
        self._active.discard(goal.session_id)
        notice = self._replies.reply(goal.address, goal.session_id, step.sentence)
        log.info("goal_ended", session=goal.session_id, state=step.state.value, reason=step.reason, turns=goal.turns)
        self._offer(await self._goals.conclude(found, step.state, step.reason, notice, self._clock.now()))

    def _may(self, goal: Goal) -> bool:
        """Its turns run with a user's rights, so whoever set it must still be one."""
        answer = self._access.decide(goal.identity, goal.chat)
        return isinstance(answer, Allow) and answer.role >= Role.USER

    # ---- commands ----

    async def command(
        self, session: SessionId, principal: PrincipalId | None, event: MessageEvent, argument: str
    ) -> str:
        """``/goal``, ``/goal TEXT``, ``/goal pause``, ``/goal resume``, ``/goal clear``."""
        text = argument.strip()
        match text.lower():
            case "" | "status" | "show":
                return await self.status(session) or NONE_SET
            case "pause":
                paused = await self.pause(session)
                return f"The goal is paused. {AGAIN}" if paused else "No goal is active."
            case "resume":
                return await self._resume(session)
            case word if word in _CLEAR:
                return "The goal is cleared." if await self.drop(session) else NONE_SET
            case _:
                return await self._set(session, principal, event, text)

    async def _set(
        self, session: SessionId, principal: PrincipalId | None, event: MessageEvent, text: str
    ) -> str:
        if principal is None:
            return NONE_SET
        if len(text) > MAX_GOAL_CHARS:
            return f"That goal is too long: at most {MAX_GOAL_CHARS:,} characters."
        goal = Goal(session, principal, event.identity, event.chat, text, first_words(text))
        await self._goals.put(goal, self._clock.now())
        self._active.add(session)
        self._wake(session)
        return (
            f"The goal is set. I work on it by myself, for at most {self.max_turns} turns; write to me at any time. "
            "/goal shows it, /goal pause and /goal clear end it, /stop too."
        )

    async def _resume(self, session: SessionId) -> str:
        goal = await self._goals.get(session)
        if goal is None:
            return NONE_SET
        if not await self._goals.set_state(session, GoalState.ACTIVE, "", self._clock.now()):
            return "The goal is active already."
        self._active.add(session)
        self._wake(session)
        return f"I go on with the goal, for at most {self.max_turns} turns."

    async def pause(self, session: SessionId) -> bool:
        """/stop, and ``/goal pause``: no further turn begins by itself."""
        if session not in self._active:
            return False
        self._active.discard(session)
        return await self._goals.set_state(session, GoalState.PAUSED, "stopped", self._clock.now())

    async def drop(self, session: SessionId) -> bool:
        """/new, and ``/goal clear``."""
        self._active.discard(session)
        return await self._goals.drop(session)

    async def status(self, session: SessionId) -> str:
        """A line for /goal and /status; empty where there is no goal."""
        goal = await self._goals.get(session)
        if goal is None:
            return ""
        why = f" ({goal.reason})" if goal.reason else ""
        return f"Goal, {goal.state.value}{why}, {goal.turns} of {self.max_turns} turns taken: {goal.text}"
