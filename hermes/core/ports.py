"""The Protocols through which petals meet; ``app`` hands each its counterparts.

Everything async here may block on a disk, a network or a person; everything else must not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes.core.delivery import Operation
from hermes.core.events import Address, Batch, Event
from hermes.core.ids import DeliveryId, InboxId, QuestionId, SessionId, TurnId
from hermes.core.principals import PrincipalId
from hermes.core.records import (
    Accepted,
    Admitted,
    Claim,
    Draft,
    InboxRow,
    NewDelivery,
    OutboxRow,
    Outcome,
    OutgoingPart,
    Question,
    SessionInfo,
    StepIntent,
    StepResult,
    Stopped,
    StoredMessage,
    StoreFigures,
    StrangerCount,
    ToolEffect,
    ToolIntent,
    ToolOutcome,
    TurnCause,
    TurnFinish,
)
from hermes.core.transcript import ModelReply, ModelRequest, ToolSpec

# ---- the outside: platforms and providers ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One send. ``message_ref`` is what an edit edits. ``marked``: show the repeat mark (R18)."""

    address: Address
    operation: Operation
    payload: str
    nonce: str
    marked: bool = False
    message_ref: str | None = None
    plain: bool = False  # a formatting refusal: send the whole text without markup


@dataclass(frozen=True, slots=True)
class Receipt:
    """The platform's own name for what was delivered."""

    message_ref: str


class Platform(Protocol):
    """A platform adapter: facts up, effects thin. Decides nothing about retries or order."""

    @property
    def name(self) -> str:
        """The platform's name in the configuration, e.g. ``telegram``."""

    @property
    def account(self) -> str:
        """The bot's own id on the platform; known after ``connect``."""

    @property
    def delivers_at_commit(self) -> bool:
        """True when the store is the destination and ``send`` is never called (R21)."""

    @property
    def creates_are_safe(self) -> bool:
        """True when the platform itself refuses a second create with one nonce (R18)."""

    async def connect(self) -> None:
        """Proves the credential and opens what receiving needs. Raises PlatformFailure."""

    async def receive(self) -> Batch:
        """One completed receive cycle (empty is a fine cycle). Raises PlatformFailure."""

    def confirm(self, batch: Batch) -> None:
        """The batch is on disk: the next cycle may tell the platform so (R3, R4)."""

    def normalise(self, raw: str) -> Event:
        """What the stored update means. Raises Poison when it means nothing we understand."""

    def render(self, text: str) -> tuple[OutgoingPart, ...]:
        """A reply's Markdown as parts within the platform's limits. Raises Poison."""

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Carries out one operation, once. Raises PlatformFailure."""

    async def typing(self, address: Address) -> None:
        """Shows that work goes on, best effort. Raises PlatformFailure."""

    async def rebuild(self) -> None:
        """Fresh client, session and sockets; ``connect`` follows."""

    async def aclose(self) -> None:
        """Ends every task, thread and socket of the adapter. Idempotent."""


class Provider(Protocol):
    """A model provider: one call, no retries of its own (``max_retries=0``)."""

    @property
    def name(self) -> str:
        """The provider's name in the configuration."""

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """One streamed call. ``on_text`` gets each piece of visible text as it comes.

        Raises ProviderFailure for everything that is not a complete answer.
        """

    async def rebuild(self) -> None:
        """A fresh connection pool; calls under way are not disturbed."""

    async def aclose(self) -> None:
        """Closes the pool. Idempotent."""


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

    async def replace(self, platform: str, account: str, message_ref: str, by: InboxId, now: float) -> bool:
        """An edit came: the original, if still ``new``, ends as ``replaced_by_edit``. True if it did."""


class Turns(Protocol):
    """Turns, their transcript and journal. Every write is conditional on the fence (R10)."""

    async def claim(
        self, session: SessionId, now: float, allowed: Callable[[InboxRow], bool]
    ) -> Claim | None:
        """The session's unfinished turn, else a new one over its ``new`` rows, else None.

        Rows that ``allowed`` refuses end as ``ignored(access)`` (R6). Raises epoch of a resumed turn.
        """

    async def transcript(self, session: SessionId) -> tuple[str, ...]:
        """The live transcript as stored now, oldest first."""

    async def begin_step(self, intent: StepIntent, now: float) -> None:
        """Inputs become transcript items; the call and its reserved money are on disk. Raises LostFence."""

    async def finish_step(self, result: StepResult, now: float) -> None:
        """The model's answer with tool calls is on disk. Raises LostFence."""

    async def start_tools(self, intents: Sequence[ToolIntent], now: float) -> None:
        """Tool calls are about to run. Raises LostFence."""

    async def finish_tool(self, outcome: ToolOutcome, now: float) -> bool:
        """A result for an intent; False if one was there already."""

    async def finish(self, finish: TurnFinish, now: float) -> list[OutboxRow]:
        """T2. Raises LostFence; nothing is written then."""

    async def suspend(self, turn: TurnId, epoch: int, question: Question, reply: NewDelivery, now: float) -> list[OutboxRow]:
        """The turn waits for a person (R13). Raises LostFence."""

    async def release(self, turn: TurnId, epoch: int, active_seconds: float, now: float) -> None:
        """A drain gives the turn back: it resumes later and nothing is counted (R15)."""

    async def stop(self, session: SessionId, line: InboxId, now: float) -> Stopped:
        """/stop: rows below ``line`` end as ``stopped``; unsent parts of finished turns are withdrawn (R14)."""

    async def unfinished_sessions(self) -> list[SessionId]:
        """Sessions with a running turn of an earlier process or with ``new`` rows, oldest first."""

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

    async def expired_questions(self, now: float) -> list[Question]:
        """Open questions past their bound."""


class Outbox(Protocol):
    """The durable outbox."""

    async def enqueue(self, deliveries: Sequence[NewDelivery], now: float) -> list[OutboxRow]:
        """Notices and messages that belong to no turn."""

    async def recover(self, uncertain: str, now: float) -> int:
        """After a start: rows left ``sending`` are uncertain: marked or held (R18). Returns how many."""

    async def pending(self) -> list[OutboxRow]:
        """All rows to be sent, in order."""

    async def start_sending(self, seq: int, now: float) -> bool:
        """pending → sending; False if the row was withdrawn meanwhile."""

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


# ---- between gateway, agent and web ---------------------------------------------------------------


class TurnObserver(Protocol):
    """What a running turn shows to those who look on; must return at once."""

    def on_text(self, text: str) -> None:
        """A piece of visible answer text."""

    def on_restart(self) -> None:
        """The attempt failed after text was shown: what was shown is void."""

    def on_notice(self, kind: str, text: str) -> None:
        """A retry, fallback or repair, in words for the person."""

    def on_tool(self, name: str, phase: str) -> None:
        """A tool starts or ends."""

    async def settle(self) -> None:
        """Called before T2: no draft is on its way when this returns, or its bound has passed."""


class Replies(Protocol):
    """Renders a turn's final text for its address; given to the agent by the gateway."""

    def reply(self, address: Address, session: SessionId | None, text: str) -> NewDelivery:
        """Raises Poison when the text cannot be rendered."""


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A normalised input of a turn: who said what, for the prompt."""

    row: InboxRow
    event: Event


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn that did not end itself is to be ended by its lane."""

    cause: TurnCause | None
    sentence: str
    outcome: Outcome
    reason: str
    active_seconds: float


class TurnRunner(Protocol):
    """Runs one claimed turn to its end; T2 is its last act."""

    async def run(
        self, claim: Claim, inputs: Sequence[TurnInput], observer: TurnObserver
    ) -> list[OutboxRow]:
        """Returns the reply's outbox rows. Raises LostFence; CancelledError leaves the end to the lane."""

    async def end(self, claim: Claim, end: TurnEnd) -> list[OutboxRow]:
        """Writes the end of a turn that did not end itself: stopped, released, failed, parked (R14)."""


class ToolRun(Protocol):
    """What a tool may know about its call."""

    @property
    def session_id(self) -> SessionId: ...

    @property
    def principal_id(self) -> PrincipalId: ...


class Tool(Protocol):
    """One tool. Raises ToolError for what the model should read; anything else is a fault."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effect(self) -> ToolEffect: ...

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        """The result's text, bounded."""
