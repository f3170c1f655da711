"""The Protocols through which petals meet; ``app`` hands each its counterparts.

Everything async here may block on a disk, a network or a person; everything else must not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hermes.core.attachments import Received
from hermes.core.delivery import Operation
from hermes.core.events import Address, AttachmentRef, Batch, ButtonEvent, Event
from hermes.core.ids import SessionId
from hermes.core.principals import PrincipalId
from hermes.core.records import (
    Claim,
    InboxRow,
    NewDelivery,
    OutboxRow,
    Outcome,
    OutgoingPart,
    StepIntent,
    ToolEffect,
    TurnCause,
)
from hermes.core.transcript import FileRef, ImageRef, ModelReply, ModelRequest, ToolSpec

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
    since: float | None = None  # when the delivery was made (unix seconds): an earlier copy is not older (R18)
    content: bytes | None = None  # the file that the part carries


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

    async def download(self, attachment: AttachmentRef, limit: int) -> bytes:
        """The file's bytes, at most ``limit``; raises PlatformFailure."""

    async def rebuild(self) -> None:
        """Fresh client, session and sockets; ``connect`` follows."""

    async def aclose(self) -> None:
        """Ends every task, thread and socket of the adapter. Idempotent."""


@runtime_checkable
class Buttons(Protocol):
    """A platform on which a message can carry buttons."""

    def with_buttons(
        self, parts: tuple[OutgoingPart, ...], options: Sequence[tuple[str, str]]
    ) -> tuple[OutgoingPart, ...]:
        """``parts`` with a button for each (label, data) under the last; a press comes as a ButtonEvent."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A chat command for a platform's own menu: its name without the slash, its line in /help."""

    name: str
    help: str


@runtime_checkable
class CommandMenu(Protocol):
    """A platform that shows people the bot's commands."""

    async def publish_commands(self, entries: Sequence[MenuEntry]) -> bool:
        """Makes the platform's menu these; False when it held them already. Raises PlatformFailure."""


@runtime_checkable
class SendsFiles(Protocol):
    """A platform that takes files; ``send`` gets the bytes as ``Outgoing.content``."""

    def file_part(self, file: FileRef) -> OutgoingPart:
        """A part that is this file."""


@runtime_checkable
class Whispers(Protocol):
    """A platform that can tell somebody something that nobody else sees."""

    async def whisper(self, event: ButtonEvent, raw: str, text: str) -> None:
        """Tells whoever pressed a button; ``raw`` is the press as T1 stored it. Raises PlatformFailure."""


@runtime_checkable
class CatchesUp(Protocol):
    """A platform that keeps nothing for us: after each gap it is read from the cursors of T1 on (R4, R5)."""

    def resume_from(self, cursors: Mapping[str, str]) -> None:
        """The account's cursors as T1 wrote them, by channel; after each ``connect``, and before it where the
        account is known by then."""


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


@runtime_checkable
class SpeechProvider(Protocol):
    """A provider with an endpoint for recordings: one call, no retries of its own."""

    @property
    def name(self) -> str:
        """The provider's name in the configuration."""

    async def transcribe(
        self, model: str, audio: bytes, name: str, mime: str, key: str | None = None
    ) -> str:
        """What is said. ``name`` is a file's name, whose ending tells the format; ``key`` takes the place of the
        adapter's own. Raises ProviderFailure."""


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

    def reply(
        self, address: Address, session: SessionId | None, text: str, *, options: Sequence[tuple[str, str]] = ()
    ) -> NewDelivery:
        """Raises Poison when the text cannot be rendered. ``options``: (label, data) of its buttons."""

    async def answer(self, address: Address, session: SessionId | None, text: str) -> NewDelivery:
        """As ``reply``, for a text of any length: what takes long is done beside the loop."""

    def with_files(self, delivery: NewDelivery, files: Sequence[FileRef]) -> NewDelivery:
        """The same delivery, and after its text these files."""


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A normalised input of a turn: who said what, for the prompt; ``received``: what its attachments came to."""

    row: InboxRow
    event: Event
    received: tuple[Received, ...] = ()


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

    def first_step(self, claim: Claim, inputs: Sequence[TurnInput]) -> StepIntent | None:
        """What a new turn's first step is, for the claim's own transaction. Pure and quick."""

    async def run(
        self,
        claim: Claim,
        inputs: Sequence[TurnInput],
        observer: TurnObserver,
        more: Callable[[], Awaitable[Sequence[TurnInput]]],
    ) -> list[OutboxRow]:
        """Returns the reply's outbox rows. ``more`` binds what a person said meanwhile to this turn.

        Raises LostFence; CancelledError leaves the end to the lane.
        """

    async def end(self, claim: Claim, end: TurnEnd) -> list[OutboxRow]:
        """Writes the end of a turn that did not end itself: stopped, released, failed, parked (R14)."""


class ToolRun(Protocol):
    """What a tool may know about its call."""

    @property
    def session_id(self) -> SessionId: ...

    @property
    def principal_id(self) -> PrincipalId: ...


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result that is more than text."""

    text: str
    images: tuple[ImageRef, ...] = ()
    files: tuple[FileRef, ...] = ()  # go out with the turn's answer


class Tool(Protocol):
    """One tool. Raises ToolError for what the model should read; anything else is a fault."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effect(self) -> ToolEffect: ...

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str | ToolOutput:
        """The result, its text bounded."""
