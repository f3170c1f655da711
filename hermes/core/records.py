"""Rows of the store as the layers above see them, and the states they go through."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hermes.core.delivery import Operation
from hermes.core.events import Address, RawUpdate
from hermes.core.ids import DeliveryId, InboxId, IntentId, MessageSeq, QuestionId, SessionId, TurnId
from hermes.core.money import Quote, Refusal, Reservation, Settlement
from hermes.core.principals import ChatRef, PrincipalId, Role
from hermes.core.transcript import Item, ToolResultItem
from hermes.core.urgency import Urgency


class InboxState(StrEnum):
    """new → claimed → done(outcome)."""

    NEW = "new"
    CLAIMED = "claimed"
    DONE = "done"


class Outcome(StrEnum):
    """How an accepted row ended; each ends with exactly one (R8)."""

    ANSWERED = "answered"
    COMMAND = "command"
    ANSWERED_QUESTION = "answered_question"
    MERGED_INTO = "merged_into"
    STEERED_INTO = "steered_into"
    REPLACED_BY_EDIT = "replaced_by_edit"
    STOPPED = "stopped"
    EXPIRED_TOLD = "expired_told"
    IGNORED = "ignored"
    FAILED_TOLD = "failed_told"
    DEAD_LETTER = "dead_letter"


class TurnState(StrEnum):
    """running ⇄ suspended → done. A running turn of an earlier process is resumed by its lane."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"


class TurnCause(StrEnum):
    """Why a turn was ended or suspended by others; set before its task is cancelled (R14)."""

    STOP = "stop"
    SHUTDOWN = "shutdown"
    DEADLINE = "deadline"
    INTERRUPT = "interrupt"
    LOST_FENCE = "lost_fence"
    OUTAGE = "outage"  # suspended: its upstream is out of reach; running: it was so for too long


class OutboxState(StrEnum):
    """drafting → pending → sending → delivered | uncertain → (pending, marked | held) | withdrawn | failed."""

    DRAFTING = "drafting"
    PENDING = "pending"
    SENDING = "sending"
    DELIVERED = "delivered"
    UNCERTAIN = "uncertain"
    HELD = "held"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


class Priority(StrEnum):
    """Between chats: final before approval before notice (R20). The order of members is the order."""

    FINAL = "final"
    APPROVAL = "approval"
    NOTICE = "notice"


class ToolEffect(StrEnum):
    """What running a tool again would do; ``ONCE`` is never repeated silently (promise 7)."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class InboxRow:
    """An accepted update. Times are unix seconds."""

    id: InboxId
    update: RawUpdate
    session_id: SessionId | None
    principal_id: PrincipalId | None
    attempts: int
    received_at: float


@dataclass(frozen=True, slots=True)
class Admitted:
    """An update that passed ``authorise``; ``session_key`` is None for a dead letter."""

    update: RawUpdate
    session_key: str | None
    principal_hint: str | None = None  # existing principal, e.g. the owner for the local page
    hold_seconds: float = 0.0  # burst merging: album parts and client-split pastes only (R7)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What T1 made of an admitted update; ``duplicate`` means the thing was known already (R2)."""

    row: InboxRow
    duplicate: bool


@dataclass(frozen=True, slots=True)
class OutgoingPart:
    """One rendered part of a reply; ``payload`` is the platform's own JSON, opaque to all others."""

    payload: str
    file: str | None = None  # the hash of what the part carries; its bytes are in the spool (R22)


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A reply or notice to be put into the outbox, all parts in order."""

    address: Address
    parts: tuple[OutgoingPart, ...]
    priority: Priority = Priority.FINAL
    expires_at: float | None = None
    delivered_at_commit: bool = False  # the store is the destination (R21)
    session_id: SessionId | None = None
    creates_are_safe: bool = False  # the platform sees to it that a repeated create makes no second message (R18)
    edits: str | None = None  # the message that its one part takes the place of


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One part of one delivery. ``seq`` orders a chat; ``part`` orders a delivery."""

    seq: int
    delivery_id: DeliveryId
    part: int
    address: Address
    operation: Operation
    priority: Priority
    payload: str
    nonce: str
    state: OutboxState
    marked: bool
    attempts: int
    not_before: float
    expires_at: float
    turn_id: TurnId | None
    receipt: str | None
    created_at: float
    reason: str | None = None
    file: str | None = None  # as in OutgoingPart


@dataclass(frozen=True, slots=True)
class Draft:
    """A streamed message on its way: the row exists before its first byte (R17)."""

    seq: int
    delivery_id: DeliveryId
    receipt: str | None


@dataclass(frozen=True, slots=True)
class StartedTool:
    """A tool call that was started and has no result: what became of it is unknown (promise 7)."""

    call_id: str
    intent_id: IntentId
    name: str
    effect: ToolEffect


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn to run or to go on with. ``history`` is the live transcript up to now, oldest first.

    ``rows`` are bound inputs not yet written to the transcript. ``step`` is the number of the next
    step, from 1. ``active_seconds`` were used before this claim (R13).
    """

    turn_id: TurnId
    session_id: SessionId
    principal_id: PrincipalId
    epoch: int
    resumed: bool
    address: Address
    rows: tuple[InboxRow, ...]
    history: tuple[str, ...]
    step: int
    active_seconds: float
    draft: Draft | None = None
    parked: bool = False  # the blame rule (R15): do not run it, tell the person
    started: tuple[StartedTool, ...] = ()
    more: bool = False  # rows were left for a further claim
    begun: bool = False  # its first step's intent was written together with the claim
    cause: TurnCause | None = None  # its end was decided before (a /stop): end it, do not run it
    suspect: bool = False  # crashed with a local step open, twice or more: run it alone (R15)
    goal_words: str = ""  # what a turn that a standing goal began is told; its rows are empty
    spent_tokens: int = 0  # by its calls so far, all processes together
    urgency: Urgency = Urgency.INTERACTIVE  # that of its most urgent input
    role: Role = Role.USER  # the least of its inputs' authors
    reservation: Reservation | Refusal | None = None  # the first step's, where the claim began it


@dataclass(frozen=True, slots=True)
class InputItem:
    """A transcript item and the inbox rows it used (R10)."""

    item: Item
    inbox_ids: tuple[InboxId, ...] = ()


@dataclass(frozen=True, slots=True)
class StepIntent:
    """A model call about to be made: written, with its money reserved, before the call (R16)."""

    turn_id: TurnId
    epoch: int
    step: int
    inputs: tuple[InputItem, ...]
    quote: Quote


@dataclass(frozen=True, slots=True)
class StepResult:
    """A model call's answer that asks for tools; its open calls become rows before they run."""

    turn_id: TurnId
    epoch: int
    step: int
    item: Item
    charges: tuple[Settlement, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolIntent:
    """A tool call about to run."""

    turn_id: TurnId
    epoch: int
    step: int
    intent_id: IntentId
    call_id: str
    name: str
    effect: ToolEffect


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """A tool call's result: accepted for its intent whatever the epoch, if none is there yet (R10)."""

    turn_id: TurnId
    intent_id: IntentId
    item: ToolResultItem


@dataclass(frozen=True, slots=True)
class TurnFinish:
    """T2: consumed rows done, turn done, reply parts, last step, money: one transaction (R16)."""

    turn_id: TurnId
    epoch: int
    outcome: Outcome
    reason: str | None = None
    items: tuple[Item, ...] = ()
    charges: tuple[Settlement, ...] = ()  # calls of the turn that are not named are charged in full
    active_seconds: float = 0.0
    replies: tuple[NewDelivery, ...] = ()
    cause: TurnCause | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """An open question to a person (R12); ``expires_at`` in unix seconds."""

    id: QuestionId
    session_id: SessionId
    turn_id: TurnId
    intent_id: IntentId
    call_id: str
    kind: str
    prompt: str
    options: tuple[str, ...]
    expires_at: float
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a delivered question stands: the message of its last part, and how many parts it has."""

    address: Address
    message: str
    parts: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A transcript item as readers see it."""

    seq: MessageSeq
    session_id: SessionId
    item: Item
    created_at: float
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as listed."""

    id: SessionId
    principal_id: PrincipalId
    title: str | None
    created_at: float
    last_active_at: float
    messages: int


@dataclass(frozen=True, slots=True)
class StrangerCount:
    """Someone not allowed who knocked: no content is kept (R6)."""

    platform: str
    account: str
    user_id: str
    count: int
    last_at: float
    chat: ChatRef | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """What /stop found: rows ended as ``stopped``, whether a turn was running, parts withdrawn."""

    queued: int
    running: bool
    withdrawn: int


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """What health and metrics show; ages in seconds, None for an empty queue."""

    inbox_new: int = 0
    inbox_claimed: int = 0
    inbox_oldest_at: float | None = None
    outbox_pending: int = 0
    outbox_oldest_at: float | None = None
    outbox_held: int = 0
    outbox_failed: int = 0
    suspended_turns: int = 0
    sessions: int = 0
    dead_letters: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
