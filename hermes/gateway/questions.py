"""Open questions to people (R12): matched before the lane, so that an answer never waits behind its asker.

A question's buttons say which question and which option; whoever may answer is looked up when one is pressed, so
they work after a restart, and a button that nobody may use (any more) does nothing but a quiet word to its presser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.core.clock import Clock
from hermes.core.errors import PlatformFailure, Poison
from hermes.core.events import ButtonEvent, MessageEvent
from hermes.core.ids import InboxId, SessionId
from hermes.core.ports import Whispers
from hermes.core.records import InboxRow, OutboxRow, Question
from hermes.core.stores import Outbox, Turns
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.replies import PlatformReplies
from hermes.policy.buttons import is_place, pressed
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

FILES_FOLLOW = "(the answer is what is attached: it follows)"
NO_ANSWER = "(no answer came within the time allowed)"
STOPPED = "(stopped)"
CLOSED = "That question is not open to you, or not any more."
SHOWN_ANSWER = 200
"""Characters of an answer that its question shows."""


class Questions:
    """Knows which sessions wait, so that an ordinary message costs no look-up."""

    def __init__(
        self,
        turns: Turns,
        clock: Clock,
        outbox: Outbox,
        replies: PlatformReplies,
        platforms: PlatformBook,
        supervisor: Supervisor,
        offer: Callable[[Sequence[OutboxRow]], None],
    ) -> None:
        self._turns = turns
        self._clock = clock
        self._outbox = outbox
        self._replies = replies
        self._platforms = platforms
        self._supervisor = supervisor
        self._offer = offer
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
        """A pressed option. Buttons are bound to a question and, in a group, to a person (R39).

        False for one that means nothing here: its presser is told so, where the platform can whisper.
        """
        question = await self._turns.open_question(session)
        if question is not None and self._may_answer(question, event.identity.user_id):
            number = pressed(event.data, question.intent_id)
            if number is not None and 1 <= int(number) <= len(question.options):
                return await self._resolve(question, question.options[int(number) - 1], row.id)
        self._supervisor.spawn(self._whisper(row, event), "questions.whisper")
        return False

    async def expire(self) -> list[SessionId]:
        """Questions past their bound get "no answer"; returns the sessions to wake."""
        woken: list[SessionId] = []
        now = self._clock.now()
        for question in await self._turns.expired_questions(now):
            if await self._turns.answer_question(question.id, NO_ANSWER, (), now, expired=True):
                self.waiting.discard(question.session_id)
                woken.append(question.session_id)
                self._close(question, NO_ANSWER)
        return woken

    async def withdraw(self, session: SessionId) -> bool:
        """/stop while a question is open: the suspended turn may be claimed and ended."""
        question = await self._turns.open_question(session) if session in self.waiting else None
        self.waiting.discard(session)
        ended = bool(await self._turns.end_suspended(session, self._clock.now()))
        if question is not None:
            self._close(question, STOPPED)
        return ended

    async def _resolve(self, question: Question, text: str, *by: InboxId) -> bool:
        done = await self._turns.answer_question(question.id, text, by, self._clock.now())
        self.waiting.discard(question.session_id)
        if done:
            self._close(question, text)
        return done

    def _close(self, question: Question, answer: str) -> None:
        """Beside the turn, which goes on at once."""
        if question.options:
            self._supervisor.spawn(self._take_buttons(question, answer), "questions.close")

    async def _take_buttons(self, question: Question, answer: str) -> None:
        """The message that asked shows the answer in place of its buttons."""
        asked = await self._turns.asked_with(question)
        if asked is None:
            return
        try:
            shown = self._replies.closed(asked, question.prompt, answer[:SHOWN_ANSWER])
        except Poison as problem:
            log.info("buttons_stay", question=question.id, error=str(problem))
            return
        if shown is not None:
            self._offer(await self._outbox.enqueue([shown], self._clock.now()))

    async def _whisper(self, row: InboxRow, event: ButtonEvent) -> None:
        platform = self._platforms.find(row.update.platform)
        if not isinstance(platform, Whispers):
            return
        try:
            await platform.whisper(event, row.update.raw, CLOSED)
        except PlatformFailure as failure:
            log.info("whisper_failed", platform=row.update.platform, error=str(failure))

    @staticmethod
    def _may_answer(question: Question, user_id: str) -> bool:
        return question.user_id is None or question.user_id == user_id


def _chosen(question: Question, text: str) -> str:
    """"2" chooses the second option; anything else is the answer itself."""
    number = text.strip().rstrip(".)")
    if is_place(number) and 1 <= int(number) <= len(question.options):
        return question.options[int(number) - 1]
    return text
