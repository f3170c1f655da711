"""Open questions to people (R12): matched before the lane, so that an answer never waits behind its asker."""

from __future__ import annotations

from hermes.core.clock import Clock
from hermes.core.events import ButtonEvent, MessageEvent
from hermes.core.ids import InboxId, SessionId
from hermes.core.records import InboxRow, Question
from hermes.core.stores import Turns
from hermes.policy.buttons import pressed

FILES_FOLLOW = "(the answer is what is attached: it follows)"
NO_ANSWER = "(no answer came within the time allowed)"


class Questions:
    """Knows which sessions wait, so that an ordinary message costs no look-up."""

    def __init__(self, turns: Turns, clock: Clock) -> None:
        self._turns = turns
        self._clock = clock
        self.waiting: set[SessionId] = set()

    async def load(self) -> None:
        """Questions that were open when an earlier process ended."""
        self.waiting = await self._turns.sessions_with_questions()

    def asked(self, session: SessionId) -> None:
        """A turn of this session has just been suspended."""
        self.waiting.add(session)

    async def answer(self, row: InboxRow, session: SessionId, event: MessageEvent) -> bool:
        """A plain reply answers an open ``clarify``; False if nothing was open.

        A reply with files answers it too, and its row stays open: the files go into the turn with it.
        """
        question = await self._turns.open_question(session)
        if question is None or not self._may_answer(question, event.identity.user_id):
            return False
        if event.attachments:
            return await self._resolve(question, event.text or FILES_FOLLOW)
        return await self._resolve(question, _chosen(question, event.text), row.id)

    async def button(self, row: InboxRow, session: SessionId, event: ButtonEvent) -> bool:
        """A pressed option; buttons are bound to a question and, in a group, to a person (R39)."""
        question = await self._turns.open_question(session)
        if question is None or not self._may_answer(question, event.identity.user_id):
            return False
        number = pressed(event.data, question.intent_id)
        return number is not None and await self._resolve(question, _chosen(question, number), row.id)

    async def expire(self) -> list[SessionId]:
        """Questions past their bound get "no answer"; returns the sessions to wake."""
        woken: list[SessionId] = []
        now = self._clock.now()
        for question in await self._turns.expired_questions(now):
            if await self._turns.answer_question(question.id, NO_ANSWER, (), now, expired=True):
                self.waiting.discard(question.session_id)
                woken.append(question.session_id)
        return woken

    async def withdraw(self, session: SessionId) -> bool:
        """/stop while a question is open: the suspended turn may be claimed and ended."""
        self.waiting.discard(session)
        return bool(await self._turns.end_suspended(session, self._clock.now()))

    async def _resolve(self, question: Question, text: str, *by: InboxId) -> bool:
        done = await self._turns.answer_question(question.id, text, by, self._clock.now())
        self.waiting.discard(question.session_id)
        return done

    @staticmethod
    def _may_answer(question: Question, user_id: str) -> bool:
        return question.user_id is None or question.user_id == user_id


def _chosen(question: Question, text: str) -> str:
    """"2" chooses the second option; anything else is the answer itself."""
    number = text.strip().rstrip(".)")
    if number.isdigit() and 1 <= int(number) <= len(question.options):
        return question.options[int(number) - 1]
    return text
