"""The Protocols of the store: what gateway, agent and tools may ask of it (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from hermes.core.events import Address
from hermes.core.ids import DeliveryId, InboxId, QuestionId, SessionId, TurnId
from hermes.core.money import Refusal, Reservation
from hermes.core.principals import PrincipalId, Role
from hermes.core.records import (
    Accepted,
    Admitted,
    Asked,
    Claim,
    Draft,
    InboxRow,
    NewDelivery,
    OutboxRow,
    Outcome,
    Question,
    SessionInfo,
    StepIntent,
    StepResult,
    Stopped,
    StoredMessage,
    StoreFigures,
    StrangerCount,
    ToolIntent,
    ToolOutcome,
    TurnFinish,
)
from hermes.core.transcript import ToolResultItem

NOTE_ONLY = 1e12
"""``not_before`` of a row that begins no turn of its own."""

# ---- the store ------------------------------------------------------------------------------------


class Inbox(Protocol):
    """The durable inbox."""

    async def accept(
        self,
        admitted: Sequence[Admitted],
        strangers: Sequence[StrangerCount],
        cursors: Mapping[str, str],
        now: float,
    ) -> list[Accepted]:
        """T1: all of a batch in one transaction, on disk when this returns (R1–R4)."""

    async def cursors(self, platform: str, account: str) -> dict[str, str]:
        """An account's watermarks by channel, those written last first."""

    async def backlog(self) -> list[InboxRow]:
        """All rows in state ``new``, in order."""

    async def count_failure(self, row: InboxId, error: str, not_before: float) -> int:
        """Counts a failed normalisation on disk; returns the new count."""

    async def finish(
        self,
        rows: Sequence[InboxId],
        outcome: Outcome,
        *,
        now: float,
        reason: str | None = None,
        ref: str | None = None,
        replies: Sequence[NewDelivery] = (),
    ) -> list[OutboxRow]:
        """Ends rows that need no turn, with what is to be said about them, in one transaction.

        Rows that are not ``new`` any more are left alone; if none was, nothing is said.
        """

    async def defer(self, row: InboxId, not_before: float) -> None:
        """The row waits; at ``NOTE_ONLY`` it begins no turn and goes with the next one (an edit's note)."""

    async def dead_letters(self) -> list[InboxRow]:
        """Rows that ended as ``dead_letter`` and were not dropped."""

    async def revive(self, row: InboxId) -> InboxRow | None:
        """A dead letter whose envelope could be read becomes ``new`` again; None if there is none."""

    async def drop(self, row: InboxId, now: float) -> int:
        """Takes a dead letter off the list."""

    async def replace(
        self, platform: str, account: str, message_ref: str, by: InboxId, now: float
    ) -> list[InboxId]:
        """An edit came: the original, if still ``new``, ends as ``replaced_by_edit``. Which rows did."""


class Turns(Protocol):
    """Turns, their transcript and journal. Every write is conditional on the fence (R10)."""

    async def claim(
        self,
        session: SessionId,
        now: float,
        allowed: Callable[[InboxRow], Role | bool | None],
        first_step: Callable[[Claim], StepIntent | None] | None = None,
    ) -> Claim | None:
        """The session's unfinished turn, else a new one over its ``new`` rows, else None.

        ``first_step`` says what a new turn's first step is, so that it is written in the same transaction
        (``Claim.begun``); it runs on the writer's thread, must be pure and quick, and may say None.

        Rows that ``allowed`` refuses end as ``ignored(access)`` (R6); None leaves a row for
        later; a role says what its author may do, and the turn may do what the least of them may.
        Raises the epoch of a resumed turn.
        """

    async def transcript(self, session: SessionId) -> tuple[str, ...]:
        """The live transcript as stored now, oldest first."""

    async def begin_step(self, intent: StepIntent, now: float) -> Reservation | Refusal:
        """Inputs become transcript items; the call and its reserved money are on disk. Raises LostFence.

        A Refusal (a cap on money): the inputs are in the transcript, and no call may be made.
        """

    async def bind(
        self,
        turn: TurnId,
        epoch: int,
        rows: Sequence[InboxId],
        allowed: Callable[[InboxRow], bool | None],
        now: float,
    ) -> list[InboxRow]:
        """Those of the ``new`` rows that may run become inputs of a running turn; unused ones go back at T2 (R10).

        Rows that ``allowed`` refuses end as ``ignored(access)``; None leaves a row for later. Raises LostFence.
        """

    async def finish_step(self, result: StepResult, now: float) -> None:
        """The model's answer with tool calls is on disk. Raises LostFence."""

    async def start_tools(self, intents: Sequence[ToolIntent], now: float) -> None:
        """Tool calls are about to run. Raises LostFence."""

    async def finish_tool(self, outcome: ToolOutcome, now: float) -> bool:
        """A result for an intent; False if one was there already."""

    async def skip_tools(
        self, turn: TurnId, epoch: int, step: int, results: Sequence[ToolResultItem], now: float
    ) -> None:
        """Results of calls that are not run and never had an intent. Raises LostFence."""

    async def turn_items(self, turn: TurnId) -> tuple[str, ...]:
        """Every item that a turn has written, oldest first, whatever a model is still shown of it."""

    async def finish(self, finish: TurnFinish, now: float) -> list[OutboxRow]:
        """T2. Raises LostFence; nothing is written then."""

    async def suspend(
        self, turn: TurnId, epoch: int, question: Question, reply: NewDelivery, now: float
    ) -> list[OutboxRow]:
        """The turn waits for a person (R13). Raises LostFence."""

    async def release(self, turn: TurnId, epoch: int, active_seconds: float, now: float) -> None:
        """A drain gives the turn back: it resumes later and nothing is counted (R15)."""

    async def stop(self, session: SessionId, line: InboxId, now: float) -> Stopped:
        """/stop: rows below ``line`` end as ``stopped``; unsent parts of finished turns are withdrawn (R14)."""

    async def unfinished_sessions(self) -> list[SessionId]:
        """Sessions with a running turn, oldest first; after a start they are an earlier process's."""

    async def new_generation(self, session: SessionId, now: float) -> None:
        """/new: what was said before is no longer part of the conversation (R36)."""

    async def open_question(self, session: SessionId) -> Question | None:
        """The session's open question, if any."""

    async def answer_question(
        self, question: QuestionId, answer: str, by: Sequence[InboxId], now: float, *, expired: bool = False
    ) -> bool:
        """Resolves it: the tool result is written, the turn may be claimed again, rows are done."""

    async def sessions_with_questions(self) -> set[SessionId]:
        """Sessions that wait for an answer."""

    async def end_suspended(self, session: SessionId, now: float) -> int:
        """/stop on a suspended turn: its question closes and its lane ends it."""

    async def cut_history(self, session: SessionId, keep_from_seq: int) -> None:
        """What is older is no longer sent to a model; it stays stored and searchable."""

    async def asked_with(self, question: Question) -> Asked | None:
        """The message that asks a question; None while it was not delivered."""

    async def expired_questions(self, now: float) -> list[Question]:
        """Open questions past their bound."""


class Outbox(Protocol):
    """The durable outbox."""

    async def enqueue(self, deliveries: Sequence[NewDelivery], now: float) -> list[OutboxRow]:
        """Notices and messages that belong to no turn."""

    async def recover(self, uncertain: str, now: float, safe: Collection[str] = ()) -> int:
        """After a start: rows left ``sending`` are uncertain: marked or held (R18). Returns how many.

        On the platforms in ``safe`` a create may be repeated: the platform knows it, or it is looked for.
        """

    async def pending(self) -> list[OutboxRow]:
        """All rows to be sent, in order."""

    async def start_sending(self, seq: int, now: float) -> bool:
        """pending → sending; False if the row was withdrawn meanwhile."""

    async def reread(self, seq: int) -> OutboxRow | None:
        """The row as it is on disk now."""

    async def delivered(self, seq: int, receipt: str | None, now: float) -> None:
        """sending → delivered."""

    async def put_back(self, seq: int, *, not_before: float, attempts: int, marked: bool, now: float) -> None:
        """sending → pending."""

    async def hold(self, seq: int, reason: str, now: float) -> None:
        """sending → held; the rest of the delivery waits with it."""

    async def bury(self, seq: int, reason: str, now: float) -> None:
        """→ failed (a dead letter); the rest of the delivery with it."""

    async def withdraw(self, turn: TurnId, now: float) -> int:
        """Unsent parts of a turn's reply are withdrawn; returns how many."""

    async def open_draft(self, turn: TurnId, epoch: int, address: Address, now: float) -> Draft:
        """A ``drafting`` row, before its first byte. Raises LostFence."""

    async def discard_draft(self, seq: int, now: float) -> None:
        """The draft's first send was certainly not made: no trace of it is needed."""

    async def draft_receipt(self, seq: int, receipt: str, now: float) -> None:
        """Stored before the first edit."""

    async def dead_letters(self) -> list[OutboxRow]:
        """Failed and held rows."""

    async def retry(self, delivery: DeliveryId, now: float) -> list[OutboxRow]:
        """failed/held → pending, attempts and age anew. Returns the parts to send."""

    async def drop(self, delivery: DeliveryId, now: float) -> int:
        """failed/held → withdrawn. Returns how many parts."""

    async def retire_chat(self, address: Address, reason: str, now: float) -> None:
        """The chat cannot be written to; kept until ``heal_chat``."""

    async def heal_chat(self, address: Address) -> None:
        """The chat is open again."""

    async def dead_chats(self) -> dict[tuple[str, str, str], str]:
        """(platform, account, chat) → why it is retired, oldest first."""

    async def ban(self, address: Address, until: float, now: float) -> None:
        """A flood ban of a chat, persisted."""

    async def bans(self, now: float) -> dict[tuple[str, str, str], float]:
        """(platform, account, chat) → until."""


class Sessions(Protocol):
    """Reading what was said, always filtered by principal (R37)."""

    async def history(self, session: SessionId, after_seq: int, limit: int) -> list[StoredMessage]:
        """Transcript items of the current generation, oldest first."""

    async def search(self, principal: PrincipalId, query: str, limit: int) -> list[StoredMessage]:
        """Full-text search over the principal's messages, newest first."""

    async def overview(self, principal: PrincipalId | None, limit: int) -> list[SessionInfo]:
        """Sessions, most recently active first."""

    async def session_for(self, key: str) -> SessionId | None:
        """The session a key points to."""

    async def deliveries(self, platform: str, chat_id: str, after_seq: int, limit: int) -> list[OutboxRow]:
        """Delivered parts of a chat by sequence (R21)."""

    async def recent_positions(self, platform: str, chat_id: str, limit: int) -> tuple[int, int]:
        """(outbox seq, inbox id) after which at most ``limit`` lines of a chat follow."""

    async def chats(self, platform: str) -> list[tuple[str, str, str | None]]:
        """(account, chat id, thread id) of chats a platform has spoken from, most recent first."""

    async def said(self, platform: str, chat_id: str, after_id: int, limit: int) -> list[InboxRow]:
        """Accepted rows of a chat by id, whatever became of them."""

    async def figures(self) -> StoreFigures:
        """Counts and ages for health and metrics."""

    async def strangers(self, limit: int) -> list[StrangerCount]:
        """Who knocked and was not let in, newest first."""
