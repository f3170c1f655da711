"""From an update of ``getUpdates`` to a ``RawUpdate``: who, where, which thing, and nothing else.

The raw text is the update itself plus one key, ``hermes``: what only this moment knows and what
normalising needs later, perhaps in another process (our account and name, the time of arrival).
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from hermes.core.errors import Poison
from hermes.core.events import RawUpdate
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.platforms.telegram.fields import Fields, fields, inner, number, optional, optional_number, words

PLATFORM = "telegram"
SERVED = ("message", "edited_message", "callback_query")
"""The kinds of update we ask for, in the words of ``allowed_updates``."""

SEEN = "hermes"
_SPLIT_LENGTH = 4000  # a client that splits a paste cuts at 4096; it may step back to a blank
_SPLIT_SECONDS = 2  # parts of one paste carry the same second, or the next
_SPLITS_KEPT = 256


@dataclass(slots=True)
class Envelopes:
    """Makes envelopes for one account; remembers long messages so that a split paste stays one (R7)."""

    account: str
    username: str = ""
    _splits: OrderedDict[tuple[str, str], tuple[int, str]] = field(default_factory=OrderedDict)

    def of(self, update: object, received_at: float) -> RawUpdate:
        """Total: an update that cannot be read has no identity, a ``problem`` and a key of its own."""
        body: dict[str, Any] = dict(update) if isinstance(update, dict) else {"not_an_update": update}
        body[SEEN] = {"account": self.account, "bot": self.username, "at": received_at}
        raw = json.dumps(body, separators=(",", ":"))
        try:
            return self._read(body, raw)
        except Poison as problem:
            return RawUpdate(
                platform=PLATFORM,
                account=self.account,
                dedup_key=self._stable_key(body),
                raw=raw,
                identity=None,
                chat=None,
                problem=str(problem),
            )

    def _read(self, body: Fields, raw: str) -> RawUpdate:
        query = optional(body, "callback_query")
        if query is not None:
            return self._button(query, raw)
        kind = next((name for name in SERVED if name in body), None)
        if kind is None:
            return self._unserved(body, raw)
        message = inner(body, kind)
        chat, identity = chat_of(message, self.account), sender_of(message, self.account)
        message_id, edited_at = number(message, "message_id"), optional_number(message, "edit_date")
        return RawUpdate(
            platform=PLATFORM,
            account=self.account,
            dedup_key=f"{self.account}:{chat.chat_id}:{message_id}:{edited_at or 0}",
            raw=raw,
            identity=identity,
            chat=chat,
            message_ref=f"{chat.chat_id}:{message_id}",
            sent_at=float(edited_at or number(message, "date")),
            merge_key=self._merge_key(message, identity, chat) if kind == "message" else None,
            addressed=chat.kind is not ChatKind.GROUP or self._is_addressed(message),
        )

    def _is_addressed(self, message: Fields) -> bool:
        """What cannot be read here is stored, and judged when it is read whole (R1)."""
        try:
            return is_addressed(message, self.account, self.username)
        except Poison:
            return True

    def _unserved(self, body: Fields, raw: str) -> RawUpdate:
        """A kind we did not ask for: stored like any other when it says who and where."""
        kinds = sorted(name for name, value in body.items() if isinstance(value, dict) and name != SEEN)
        if not kinds:
            raise Poison("holds nothing that an update may hold")
        payload = inner(body, kinds[0])
        sender = optional(payload, "from") or optional(payload, "user")
        if sender is None or "chat" not in payload:
            raise Poison(f"not a kind of update we asked for: {kinds[0][:100]}")
        return RawUpdate(
            platform=PLATFORM,
            account=self.account,
            dedup_key=self._stable_key(body),
            raw=raw,
            identity=person(sender, self.account),
            chat=chat_of(payload, self.account),
        )

    def _button(self, query: Fields, raw: str) -> RawUpdate:
        message = inner(query, "message")
        chat = chat_of(message, self.account)
        return RawUpdate(
            platform=PLATFORM,
            account=self.account,
            dedup_key=f"{self.account}:button:{words(query, 'id')}",
            raw=raw,
            identity=person(inner(query, "from"), self.account),
            chat=chat,
            message_ref=f"{chat.chat_id}:{number(message, 'message_id')}",
        )

    def _merge_key(self, message: Fields, identity: Identity, chat: ChatRef) -> str | None:
        album = words(message, "media_group_id")
        if album:
            return f"{self.account}:{chat.chat_id}:album:{album}"
        text, place = words(message, "text"), (chat.chat_id, identity.user_id)
        date, known = number(message, "date"), self._splits.pop(place, None)
        key = None
        if known is not None and 0 <= date - known[0] <= _SPLIT_SECONDS and not text.startswith("/"):
            key = known[1]
        if len(text) >= _SPLIT_LENGTH:
            key = key or f"{self.account}:{chat.chat_id}:paste:{number(message, 'message_id')}"
            self._splits[place] = (date, key)
            if len(self._splits) > _SPLITS_KEPT:
                self._splits.popitem(last=False)
        return key

    def _stable_key(self, body: Fields) -> str:
        """The same for the same update: its content, and its number, which alone may come again (R3)."""
        text = json.dumps({name: value for name, value in body.items() if name != SEEN}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return f"{self.account}:update:{str(body.get('update_id'))[:20]}:{digest}"


def is_addressed(message: Fields, account: str, username: str) -> bool:
    """Whether a message in a group is meant for the bot: it names it, replies to it, or is a command for it.

    A command without a name is for every bot of the group; part two of an album or a reply in a topic is not.
    """
    replied = optional(message, "reply_to_message")
    if replied is not None and str((optional(replied, "from") or {}).get("id")) == account:
        return True
    text = words(message, "text") or words(message, "caption")
    ours = f"@{username}".lower() if username else None
    if text.startswith("/"):
        _, _, name = text.split(maxsplit=1)[0].partition("@")
        return not name or f"@{name}".lower() == ours
    named = message.get("entities") or message.get("caption_entities") or ()
    links = [e for e in named if isinstance(e, dict)] if isinstance(named, list) else []
    people = [optional(e, "user") or {} for e in links if e.get("type") == "text_mention"]
    if any(str(person.get("id")) == account for person in people):
        return True
    return ours is not None and any(word.strip(".,:;!?()") == ours for word in text.lower().split())


def chat_of(message: Fields, account: str) -> ChatRef:
    """Where a message was said. Raises Poison."""
    chat = inner(message, "chat")
    kinds = {"private": ChatKind.PRIVATE, "channel": ChatKind.CHANNEL}
    kind = kinds.get(words(chat, "type"), ChatKind.GROUP)
    return ChatRef(PLATFORM, account, str(number(chat, "id")), thread_of(message), kind)


def thread_of(message: Fields) -> str | None:
    """The forum topic. A reply chain in an ordinary group has a thread id too, and is no topic."""
    if message.get("is_topic_message") is not True:
        return None
    return str(number(message, "message_thread_id"))


def sender_of(message: Fields, account: str) -> Identity:
    """Who said a message: a person, or the chat on whose behalf it was said. Raises Poison."""
    sender = optional(message, "from")
    if sender is not None:
        return person(sender, account)
    return person(fields(message.get("sender_chat"), "from"), account)


def person(sender: Fields, account: str) -> Identity:
    """A user as an identity; the name is what the person calls themselves. Raises Poison."""
    names = (words(sender, "first_name"), words(sender, "last_name"))
    name = " ".join(part for part in names if part) or words(sender, "title") or words(sender, "username")
    return Identity(PLATFORM, account, str(number(sender, "id")), name, sender.get("is_bot") is True)
