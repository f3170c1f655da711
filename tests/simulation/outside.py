"""The world outside in simulation: a chat platform's server and a model, both of which survive a restart of ours."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hermes.core.delivery import MARK_PREFIX, DeliveryFacts, Operation, Sent
from hermes.core.errors import PlatformFailure, Poison, ProviderFailure
from hermes.core.events import Address, AttachmentRef, Batch, ButtonEvent, Event, MessageEvent, RawUpdate
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.ports import Outgoing, Receipt
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.core.records import OutgoingPart
from hermes.core.transcript import FileRef, FinishReason, ModelReply, ModelRequest, ToolCall, Usage, UserItem
from hermes.core.urgency import Urgency
from hermes.simulators.telegram_world import Flood, Refusal

PLATFORM, ACCOUNT = "telegram", "1"


@dataclass
class Message:
    """What the person sees in the chat, edits applied."""

    ref: str
    text: str
    at: float
    buttons: list[list[str]] = field(default_factory=list)  # label, data


def kind_of(chat: str) -> ChatKind:
    """As on Telegram: groups have negative numbers."""
    return ChatKind.GROUP if chat.startswith("-") else ChatKind.PRIVATE


@dataclass
class ChatServer:
    """The platform's side: keeps updates until they are confirmed, and what was sent, whatever we do."""

    now: Callable[[], float] = lambda: 0.0
    updates: deque[tuple[int, RawUpdate]] = field(default_factory=deque)
    chats: dict[str, list[Message]] = field(default_factory=dict)
    failures: deque[DeliveryFacts | str] = field(default_factory=deque)
    poll_failures: deque[DeliveryFacts] = field(default_factory=deque)
    down_until: float = 0.0
    broken: DeliveryFacts | None = None  # every call fails like this
    poll_broken: DeliveryFacts | None = None  # every receive cycle fails like this
    polls: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    next_id: int = 1
    files: dict[str, bytes] = field(default_factory=dict)
    downloads: list[str] = field(default_factory=list)
    download_failures: deque[DeliveryFacts] = field(default_factory=deque)
    download_seconds: float = 0.5
    sends: list[tuple[float, str, str]] = field(default_factory=list)
    flood: Flood | None = None  # Telegram's own limit, which doubles for whoever does not wait
    whispers: list[tuple[str, str]] = field(default_factory=list)
    typings: list[tuple[float, str]] = field(default_factory=list)

    def admit(self, chat: str, *, counts: bool = True) -> None:
        """Raises PlatformFailure where the flood limit refuses a call."""
        if self.flood is None:
            return
        try:
            (self.flood.take if counts else self.flood.heed)(int(chat), self.now())
        except Refusal as refusal:
            raise PlatformFailure(flood(float(refusal.parameters["retry_after"]))) from None

    def say(
        self,
        chat: str,
        text: str,
        *,
        user: str | None = None,
        edits: str | None = None,
        files: Sequence[AttachmentRef] = (),
        album: str | None = None,
        urgency: Urgency = Urgency.INTERACTIVE,
    ) -> str:
        """A person writes (or edits message ``edits``); returns the message's id. ``urgency``: nobody waits for it.

        ``files`` are named by what ``self.files`` holds; messages of one ``album`` belong together.
        """
        number = self.next_id
        self.next_id += 1
        ref = edits or str(number)
        body = {"chat": chat, "user": user or chat, "text": text, "ref": ref, "at": self.now(), "edit": bool(edits)}
        if files:
            body["files"] = [[f.kind, f.ref, f.name, f.mime, f.size] for f in files]
        identity = Identity(PLATFORM, ACCOUNT, user or chat, f"U{user or chat}")
        ref_chat = ChatRef(PLATFORM, ACCOUNT, chat, None, kind_of(chat))
        key = f"{chat}/{ref}/{number if edits else 0}"
        raw = json.dumps(body)
        update = RawUpdate(
            PLATFORM, ACCOUNT, key, raw, identity, ref_chat, ref, self.now(), album, urgency=urgency,
            addressed="@bot" in text or text.startswith("/"),
        )  # fmt: skip
        self.updates.append((number, update))
        self.arrived.set()
        return ref

    def press(self, chat: str, label: str, *, user: str | None = None, data: str | None = None) -> None:
        """Somebody presses the button with this label under our last message that has one; ``data``: a forged one."""
        shown = [b for m in self.chats.get(chat, []) for b in m.buttons if b[0] == label]
        pressed = data if data is not None else shown[-1][1]
        number = self.next_id
        self.next_id += 1
        who = user or chat
        body = {"chat": chat, "user": who, "pressed": pressed, "text": "", "ref": str(number), "at": self.now()}
        identity = Identity(PLATFORM, ACCOUNT, who, f"U{who}")
        place = ChatRef(PLATFORM, ACCOUNT, chat, None, kind_of(chat))
        key = f"{chat}/press/{number}"
        update = RawUpdate(PLATFORM, ACCOUNT, key, json.dumps(body), identity, place, None, self.now())
        self.updates.append((number, update))
        self.arrived.set()

    def texts(self, chat: str) -> list[str]:
        """What stands in the chat from us."""
        return [m.text for m in self.chats.get(chat, [])]

    def unmarked(self, chat: str) -> list[str]:
        """The same without what is marked as a possible repeat."""
        return [t for t in self.texts(chat) if not t.startswith(MARK_PREFIX)]


def network_down(sent: Sent = Sent.NOT_SENT) -> DeliveryFacts:
    """A refused connection."""
    return DeliveryFacts(PLATFORM, "NetworkError", message="connection refused", sent=sent)


def timed_out() -> DeliveryFacts:
    """No answer in time: it may have arrived."""
    return DeliveryFacts(PLATFORM, "TimedOut", message="Timed out", sent=Sent.MAYBE_SENT)


def flood(seconds: float) -> DeliveryFacts:
    """A flood ban."""
    return DeliveryFacts(
        PLATFORM, "RetryAfter", 429, message=f"Flood control exceeded. Retry in {seconds:.0f} seconds",
        retry_after=seconds,
    )  # fmt: skip


DELIVERED_THEN_TIMED_OUT = "delivered, then timed out"


class SimPlatform:
    """Our adapter to ChatServer."""

    name = PLATFORM
    account = ACCOUNT
    delivers_at_commit = False
    creates_are_safe = False

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self._offset = 0
        self.poison_render: set[str] = set()

    async def connect(self) -> None:
        self._reach()

    async def receive(self) -> Batch:
        self.server.polls += 1
        while True:
            self._reach()
            if self.server.poll_broken is not None:
                raise PlatformFailure(self.server.poll_broken)
            if self.server.poll_failures:
                raise PlatformFailure(self.server.poll_failures.popleft())
            while self.server.updates and self.server.updates[0][0] <= self._offset:
                self.server.updates.popleft()
            if self.server.updates:
                batch = tuple(self.server.updates)
                return Batch(tuple(u for _, u in batch), batch[-1][0])
            self.server.arrived.clear()
            try:
                async with asyncio.timeout(25.0):
                    await self.server.arrived.wait()
            except TimeoutError:
                self._reach()
                return Batch(())

    def confirm(self, batch: Batch) -> None:
        if isinstance(batch.token, int):
            self._offset = batch.token

    def normalise(self, raw: str) -> Event:
        b = json.loads(raw)
        if b["text"] == "poison":
            raise Poison("this update means nothing")
        if b["text"] == "explode":
            raise ZeroDivisionError("a bug in the adapter")
        identity = Identity(PLATFORM, ACCOUNT, b["user"], f"U{b['chat']}")
        chat = ChatRef(PLATFORM, ACCOUNT, b["chat"], None, kind_of(b["chat"]))
        address = Address(PLATFORM, ACCOUNT, b["chat"])
        if "pressed" in b:
            return ButtonEvent(identity, chat, address, b["pressed"], b["ref"], b["at"])
        files = tuple(AttachmentRef(*row) for row in b.get("files", ()))
        return MessageEvent(identity, chat, address, b["text"], b["ref"], b["at"], b["edit"], None, files)

    def render(self, text: str) -> tuple[OutgoingPart, ...]:
        if any(word in text for word in self.poison_render):
            raise Poison("cannot be rendered")
        return tuple(OutgoingPart(json.dumps({"text": text[i : i + 1000]})) for i in range(0, len(text), 1000))

    def with_buttons(
        self, parts: tuple[OutgoingPart, ...], options: Sequence[tuple[str, str]]
    ) -> tuple[OutgoingPart, ...]:
        last = json.loads(parts[-1].payload) | {"buttons": [list(o) for o in options]}
        return (*parts[:-1], OutgoingPart(json.dumps(last)))

    def file_part(self, file: FileRef) -> OutgoingPart:
        return OutgoingPart(json.dumps({"text": f"[{file.name}]"}), file.sha256)

    async def whisper(self, event: ButtonEvent, raw: str, text: str) -> None:
        self.server.whispers.append((event.identity.user_id, text))

    async def send(self, outgoing: Outgoing) -> Receipt:
        await asyncio.sleep(0.01)
        self._reach()
        failure = self.server.failures.popleft() if self.server.failures else None
        if isinstance(failure, DeliveryFacts):
            raise PlatformFailure(failure)
        self.server.admit(outgoing.address.chat_id)
        body = json.loads(outgoing.payload)
        text, buttons = body["text"], body.get("buttons", [])
        if outgoing.content is not None:
            text = f"{text} {outgoing.content.decode()}"
        chat = outgoing.address.chat_id
        if outgoing.operation is Operation.EDIT:
            [message] = [m for m in self.server.chats[chat] if m.ref == outgoing.message_ref]
            message.text, message.buttons = text, buttons
            return Receipt(message.ref)
        shown = f"{MARK_PREFIX}{text}" if outgoing.marked else text
        ref = str(self.server.next_id)
        self.server.next_id += 1
        self.server.chats.setdefault(chat, []).append(Message(ref, shown, self.server.now(), buttons))
        self.server.sends.append((self.server.now(), chat, shown))
        if failure == DELIVERED_THEN_TIMED_OUT:
            raise PlatformFailure(timed_out())
        return Receipt(ref)

    async def typing(self, address: Address) -> None:
        await asyncio.sleep(0.01)
        self._reach()
        self.server.admit(address.chat_id, counts=False)
        self.server.typings.append((self.server.now(), address.chat_id))

    async def download(self, attachment: AttachmentRef, limit: int) -> bytes:
        self.server.downloads.append(attachment.ref)
        await asyncio.sleep(self.server.download_seconds)
        self._reach()
        if self.server.download_failures:
            raise PlatformFailure(self.server.download_failures.popleft())
        content = self.server.files[attachment.ref]
        if len(content) > limit:
            told = f"the file is over {limit} bytes"
            raise PlatformFailure(DeliveryFacts(PLATFORM, "TooBig", message=told, sent=Sent.REFUSED))
        return content

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Nothing to close."""

    def _reach(self) -> None:
        if self.server.now() < self.server.down_until:
            raise PlatformFailure(network_down())
        if self.server.broken is not None:
            raise PlatformFailure(self.server.broken)


# ---- the model ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """The model answers with text, after ``after`` seconds, in ``pieces`` pieces."""

    text: str
    after: float = 1.0
    pieces: int = 1


@dataclass(frozen=True)
class Calls:
    """The model asks for tools: (name, arguments)."""

    calls: tuple[tuple[str, dict[str, object]], ...]
    after: float = 1.0


@dataclass(frozen=True)
class Fails:
    """The call fails, after ``pieces`` pieces of text were shown."""

    facts: FailureFacts
    pieces: int = 0
    after: float = 0.5


def answer(text: str, **how: float | int) -> Answer:
    """An answer."""
    return Answer(text, **how)  # type: ignore[arg-type]


def tool_call(name: str, **arguments: object) -> Calls:
    """One tool call."""
    return Calls(((name, arguments),))


def status(code: int, message: str = "", **headers: str) -> Fails:
    """An HTTP error."""
    named = {k.replace("_", "-"): v for k, v in headers.items()}
    return Fails(FailureFacts(FaultKind.HTTP_STATUS, Phase.RESPONSE, "sim", "m", code, message=message, headers=named))


def cut_after(pieces: int) -> Fails:
    """The stream breaks after some text."""
    return Fails(FailureFacts(FaultKind.CUT, Phase.STREAM, "sim", "m", tokens_seen=True), pieces)


def refused() -> Fails:
    """Nobody listens."""
    return Fails(FailureFacts(FaultKind.REFUSED, Phase.CONNECT, "sim", "m", exception="ConnectError"))


class ScriptedModel:
    """Plays its script in order; when it is empty, answers ``You said: …``."""

    def __init__(self, script: Sequence[Answer | Calls | Fails] = (), name: str = "sim", after: float = 1.0) -> None:
        self.script = deque(script)
        self.name = name
        self.after = after
        self.requests: list[ModelRequest] = []
        self.rebuilds = 0

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.requests.append(request)
        play = self.script.popleft() if self.script else self._default(request)
        await asyncio.sleep(play.after)
        match play:
            case Fails(facts, pieces):
                for n in range(pieces):
                    on_text(f"half {n} ")
                raise ProviderFailure(facts)
            case Calls(calls):
                made = tuple(
                    ToolCall(f"c{len(self.requests)}.{n}", name, json.dumps(a)) for n, (name, a) in enumerate(calls)
                )
                return ModelReply("", made, FinishReason.TOOL_CALLS, Usage(10, 5), request.model)
            case Answer(text, _, pieces):
                step = max(1, len(text) // pieces)
                for start in range(0, len(text), step):
                    on_text(text[start : start + step])
                    if pieces > 1:
                        await asyncio.sleep(0.5)
                return ModelReply(text, (), FinishReason.STOP, Usage(10, len(text) // 4), request.model)

    def _default(self, request: ModelRequest) -> Answer:
        said = [i.text for i in request.items if isinstance(i, UserItem)]
        return Answer(f"You said: {said[-1]}", self.after)

    async def rebuild(self) -> None:
        self.rebuilds += 1

    async def aclose(self) -> None:
        """Nothing to close."""
