"""What Telegram's side knows: updates not yet confirmed, chats, messages, files and limits."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ApiCall", "Draft", "Flood", "Refusal", "SeenMessage", "World"]

QUIET_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Kinds of update that Telegram sends only if they were asked for by name."""


class Refusal(Exception):
    """An answer with ok=false."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters


@dataclass(slots=True)
class SeenMessage:
    """A message of the bot as the user sees it now; `edits` are the texts it had since, in order.

    `text` is without markup. `sent_at` is monotonic seconds. `attachment` is the name of an uploaded file.
    """

    message_id: int
    text: str
    edits: list[str] = field(default_factory=list)
    reply_to: int | None = None
    thread: int | None = None
    sent_at: float = 0.0
    kind: str = "text"
    entities: list[dict[str, Any]] = field(default_factory=list)
    markup: dict[str, Any] | None = None
    attachment: str | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call of the bot. `fault` names what was done to it, `at` is monotonic seconds."""

    method: str
    params: dict[str, Any]
    at: float
    files: dict[str, bytes] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """One sendMessageDraft."""

    chat: int
    draft_id: int
    text: str
    thread: int | None
    at: float


_ALL = 0


@dataclass(slots=True)
class Flood:
    """At most `limit` messages and edits in a chat within `window` seconds; then a ban of `ban` seconds.

    Whoever calls during a ban doubles it, up to `longest`: `ignored` counts those calls, `violations` every
    refusal. `everywhere`: at most so many to all chats together; its ban closes them all. A call within `grace`
    seconds of a ban's begin was on its way and is refused only.
    """

    limit: int = 20
    window: float = 60.0
    ban: float = 3.0
    longest: float = 3600.0
    sent: dict[int, deque[float]] = field(default_factory=dict)
    banned: dict[int, tuple[float, float]] = field(default_factory=dict)
    violations: int = 0
    ignored: int = 0
    everywhere: int | None = None
    grace: float = 0.0
    begun: dict[int, float] = field(default_factory=dict)

    def take(self, chat: int, now: float) -> None:
        """Counts one message. Raises Refusal 429 during a ban."""
        self.heed(chat, now)
        counted = [(chat, self.limit)]
        if self.everywhere is not None:
            counted.append((_ALL, self.everywhere))
        for name, limit in counted:
            recent = self.sent.setdefault(name, deque())
            while recent and recent[0] <= now - self.window:
                recent.popleft()
            if len(recent) >= limit:
                recent.clear()
                self._refuse(name, now, self.ban)
            recent.append(now)

    def heed(self, chat: int, now: float) -> None:
        """A call that counts for no limit, as a sign of typing. Raises Refusal 429 during a ban."""
        for name in (chat, _ALL):
            until, length = self.banned.get(name, (0.0, self.ban))
            if now < until and now <= self.begun[name] + self.grace and self.grace:
                raise Refusal(429, "Too Many Requests", retry_after=max(1, round(until - now)))
            if now < until:
                self.ignored += 1
                self._refuse(name, now, min(self.longest, length * 2))

    def _refuse(self, chat: int, now: float, length: float) -> None:
        self.violations += 1
        self.banned[chat] = (now + length, length)
        self.begun[chat] = now
        wait = max(1, round(length))
        raise Refusal(429, f"Too Many Requests: retry after {wait}", retry_after=wait)


class World:
    """State of one bot's Telegram; survives a restart of the simulator."""

    def __init__(self) -> None:
        self.pending: deque[dict[str, Any]] = deque()
        self.next_update = 100_000_000
        self.confirmed: list[int] = []
        self.allowed: frozenset[str] | None = None
        self.next_message: dict[int, int] = {}
        self.sent: dict[int, dict[int, SeenMessage]] = {}
        self.heard: dict[int, dict[int, str | None]] = {}
        self.threads: dict[int, set[int]] = {}
        self.types: dict[int, str] = {}
        self.closed: dict[int, Refusal] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.drafts: list[Draft] = []
        self.reactions: dict[tuple[int, int], list[Any]] = {}
        self.actions: list[tuple[int, str, int | None]] = []
        self.commands: list[dict[str, str]] = []
        self.answered_callbacks: dict[str, dict[str, Any]] = {}
        self.open_callbacks: set[str] = set()
        self.flood: Flood | None = None
        self.strict_chats = False
        self.webhook = ""

    def new_message_id(self, chat: int) -> int:
        self.next_message[chat] = self.next_message.get(chat, 0) + 1
        return self.next_message[chat]

    def queue(self, update: dict[str, Any], *, update_id: int | None = None) -> int:
        """Puts an update where getUpdates finds it; one of a kind that is not allowed is dropped."""
        if update_id is None:
            update_id = int(update.get("update_id", self.next_update))
        self.next_update = max(self.next_update, update_id + 1)
        kinds = set(update) - {"update_id"}
        wanted = kinds & self.allowed if self.allowed else kinds - QUIET_BY_DEFAULT
        if wanted or not kinds:
            self.pending.append({**update, "update_id": update_id})
        return update_id

    def confirm(self, offset: int) -> None:
        """Forgets what an offset confirms; a negative one keeps that many from the end."""
        while self.pending and (
            len(self.pending) > -offset if offset < 0 else self.pending[0]["update_id"] < offset
        ):
            self.confirmed.append(self.pending.popleft()["update_id"])

    def chat_object(self, chat: int) -> dict[str, Any]:
        """The Chat of the Bot API; negative numbers are groups unless said otherwise."""
        kind = self.types.get(chat, "private" if chat > 0 else "supergroup")
        if kind == "private":
            return {"id": chat, "type": kind, "first_name": f"User{chat}", "username": f"user{chat}"}
        found: dict[str, Any] = {"id": chat, "type": kind, "title": f"Group {chat}"}
        if chat in self.threads:
            found["is_forum"] = True
        return found

    def require_chat(self, chat: int) -> None:
        """Raises Refusal for a chat that may not be written to."""
        if chat in self.closed:
            raise self.closed[chat]
        if self.strict_chats and chat not in self.heard and chat not in self.types:
            raise Refusal(400, "Bad Request: chat not found")

    def own(self, chat: int, message_id: int) -> SeenMessage | None:
        found = self.sent.get(chat, {}).get(message_id)
        return None if found is None or found.deleted else found

    def exists(self, chat: int, message_id: int) -> bool:
        return self.own(chat, message_id) is not None or message_id in self.heard.get(chat, {})

    def message_object(self, chat: int, seen: SeenMessage, bot: dict[str, Any]) -> dict[str, Any]:
        """The Message of the Bot API for a message of the bot."""
        found: dict[str, Any] = {
            "message_id": seen.message_id,
            "from": bot,
            "date": int(time.time()),
            "chat": self.chat_object(chat),
        }
        body, marks = ("text", "entities") if seen.kind == "text" else ("caption", "caption_entities")
        if seen.text:
            found[body] = seen.text
        if seen.entities:
            found[marks] = [dict(entity) for entity in seen.entities]
        if seen.thread is not None:
            found |= {"message_thread_id": seen.thread, "is_topic_message": True}
        if seen.reply_to is not None:
            found["reply_to_message"] = {
                "message_id": seen.reply_to,
                "date": int(time.time()),
                "chat": self.chat_object(chat),
            }
        if seen.markup and "inline_keyboard" in seen.markup:
            found["reply_markup"] = seen.markup
        if seen.edits:
            found["edit_date"] = int(time.time())
        return found

    def visible(self, chat: int) -> list[SeenMessage]:
        """Copies of the bot's messages that stand in the chat, in order of their arrival."""
        return [
            dataclasses.replace(seen, edits=list(seen.edits))
            for seen in self.sent.get(chat, {}).values()
            if not seen.deleted
        ]
