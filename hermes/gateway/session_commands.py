"""Commands on conversations: /sessions /resume /title /undo /retry /background, and the reset by time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from hermes.core.clock import Clock
from hermes.core.conversations import Conversation, Conversations
from hermes.core.events import MessageEvent
from hermes.core.ids import InboxId, SessionId
from hermes.core.principals import Role
from hermes.core.records import InboxRow, NewDelivery, OutboxRow, Priority
from hermes.core.stores import Outbox, Turns
from hermes.gateway.commands import CommandCall, CommandSpec
from hermes.gateway.replies import PlatformReplies
from hermes.policy.reset import ResetPolicy, Why, reset_due

LISTED = 10
TITLE_CHARS = 100
BRANCHED = "I work on it beside this conversation; the answer comes by itself."
SOON_SECONDS = 5.0
AGAIN = "again:"
"""Begins the dedup key of a message that /retry accepted anew."""
_SINCE = {Why.IDLE: "You were away for a while", Why.DAILY: "A new day has begun"}


class SessionCommands:
    """``keys``: the names under which a chat's session is found. ``moved``: rows that changed their session."""

    def __init__(
        self,
        conversations: Conversations,
        turns: Turns,
        outbox: Outbox,
        replies: PlatformReplies,
        clock: Clock,
        *,
        keys: Callable[[InboxRow], Sequence[str]],
        moved: Callable[[SessionId, SessionId, Sequence[InboxId]], None],
        readmit: Callable[[InboxRow], None],
        zone: tzinfo,
        reset: ResetPolicy,
    ) -> None:
        self._conversations = conversations
        self._turns = turns
        self._outbox = outbox
        self._replies = replies
        self._clock = clock
        self._keys = keys
        self._moved = moved
        self._readmit = readmit
        self.zone = zone
        self.reset = reset

    @property
    def specs(self) -> tuple[CommandSpec, ...]:
        """For the registry."""
        return (
            CommandSpec("sessions", "your conversations", self._list, acts=False, least=Role.GUEST),
            CommandSpec("resume", "N – take up an earlier conversation of /sessions", self._resume, least=Role.GUEST),
            CommandSpec("title", "TEXT – name this conversation", self._title, least=Role.GUEST),
            CommandSpec("undo", "take back the last question and its answer", self._undo, least=Role.GUEST),
            CommandSpec("retry", "answer the last question again", self._retry, least=Role.GUEST),
            CommandSpec("background", "TEXT – work on something beside this conversation", self._background),
        )

    async def fresh(self, session: SessionId, event: MessageEvent) -> NewDelivery | None:
        """Begins a new conversation where ``session_reset`` says so; the line that tells of it."""
        if self.reset.mode.value == "none":
            return None
        now = self._clock.now()
        last = await self._conversations.last_active(session)
        why = reset_due(self.reset, last_active=last, now=now) if last is not None else None
        if why is None:
            return None
        await self._turns.new_generation(session, now)
        text = f"{_SINCE[why]}, so this begins a new conversation. /resume 1 takes up the one before."
        return self._replies.reply(event.address, session, text, Priority.NOTICE)

    async def _list(self, call: CommandCall) -> str:
        found = await self._earlier(call)
        present = await self._conversations.title(call.session)
        lines = [f"This one: {present or 'no title yet (/title TEXT)'}"]
        lines += [f"{n}. {self._line(c)}" for n, c in enumerate(found, start=1)]
        lines.append("/resume N takes one up again." if found else "There is no earlier conversation.")
        return "\n".join(lines)

    async def _resume(self, call: CommandCall) -> str:
        found = await self._earlier(call)
        chosen = _chosen(found, call.argument)
        if chosen is None:
            return "Which one? /sessions lists them; then /resume 2, or words of its title."
        moved = await self._conversations.resume(
            call.session, self._keys(call.row), chosen, call.row.id, self._clock.now()
        )
        self._moved(call.session, chosen.session_id, moved)
        return f"We go on with: {self._line(chosen)}"

    async def _title(self, call: CommandCall) -> str:
        title = " ".join(call.argument.split())[:TITLE_CHARS]
        if not title:
            present = await self._conversations.title(call.session)
            return f"This conversation is called {present!r}." if present else "It has no title: /title TEXT gives one."
        await self._conversations.name(call.session, title, self._clock.now())
        return f"This conversation is called {title!r} now."

    async def _undo(self, call: CommandCall) -> str:
        undone = await self._conversations.undo(call.session, self._clock.now())
        if undone is None:
            return "There is nothing to take back."
        return f"Taken back, with its answer: {_short(undone.text)}"

    async def _retry(self, call: CommandCall) -> str:
        rows = await self._conversations.again(call.session, call.row.id, self._clock.now())
        if rows is None:
            return "There is nothing to answer again."
        for row in rows:
            self._readmit(row)
        return "Once more."

    async def _background(self, call: CommandCall) -> str:
        """With a text it is a message of its own and does not come here."""
        return "Write what is to be done behind it, e.g. /background compare the two offers."

    async def branch(self, row: InboxRow) -> SessionId:
        """The session of a /background message."""
        return await self._conversations.branch(row.id, self._clock.now())

    async def tell_branched(self, row: InboxRow, event: MessageEvent) -> list[OutboxRow]:
        """Says that its answer comes by itself; only when the message is new, not after a restart."""
        now = self._clock.now()
        if now - row.received_at > SOON_SECONDS:
            return []
        notice = self._replies.reply(event.address, row.session_id, BRANCHED, Priority.NOTICE)
        return await self._outbox.enqueue([replace(notice, expires_at=now + 60.0)], now)

    async def _earlier(self, call: CommandCall) -> list[Conversation]:
        principal = call.row.principal_id
        if principal is None:
            return []
        found = await self._conversations.recent(principal, LISTED + 1)
        return [c for c in found if not (c.present and c.session_id == call.session)][:LISTED]

    def _line(self, conversation: Conversation) -> str:
        at = datetime.fromtimestamp(conversation.last_at, self.zone)
        return f"{conversation.title or conversation.opening} ({at:%Y-%m-%d %H:%M}, {conversation.messages} messages)"


def is_again(row: InboxRow) -> bool:
    """Whether /retry accepted the row: its age and its edits were judged when it came first."""
    return row.update.dedup_key.startswith(AGAIN)


def _chosen(found: Sequence[Conversation], argument: str) -> Conversation | None:
    words = argument.strip().lower()
    if not words:
        return None
    if words.isascii() and words.isdigit():
        number = int(words[:9])
        return found[number - 1] if 1 <= number <= len(found) else None
    matching = [c for c in found if words in (c.title or c.opening).lower()]
    return matching[0] if len(matching) == 1 else None


def _short(text: str, limit: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"
