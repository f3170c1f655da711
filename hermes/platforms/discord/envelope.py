"""From a gateway event or a message of the history to a ``RawUpdate``: who, where, which thing.

The raw text is JSON: ``t`` (the event's name), ``d`` (what of it is of use), ``hermes`` (what only this moment
knows: our account, the time of arrival, the channel a thread belongs to). Addresses of files expire, so they are
never kept: a file is named by its message and its own id (R1). Nor are an interaction's credentials.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hermes.core.errors import Poison
from hermes.core.events import RawUpdate
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.platforms.discord.fields import (
    is_snowflake,
    made_at,
    mappings,
    moment,
    optional_snowflake,
    snowflake,
)
from hermes.platforms.fields import Fields, fields, inner, objects, optional, words

PLATFORM = "discord"
SEEN = "hermes"
SAID = frozenset({0, 19})
"""Types of message that a person says: an ordinary one and a reply. The others tell of joins, pins, calls."""

_MESSAGE = (
    "id", "channel_id", "guild_id", "webhook_id", "content", "timestamp", "edited_timestamp", "type", "flags",
    "mention_roles", "mention_everyone", "message_reference",
)  # fmt: skip
_FILE = ("id", "filename", "size", "content_type", "duration_secs", "description")
_REPLIED_TEXT = 1000


@dataclass(slots=True)
class Envelopes:
    """Makes envelopes for one account."""

    account: str

    def message(self, name: str, data: object, *, parent: str | None, received_at: float) -> RawUpdate:
        """``name`` is the event's; ``parent`` the channel of the thread. Total: see ``_total``."""
        note = {"account": self.account, "at": received_at, "parent": parent}
        body = {"t": name, "d": useful(data), SEEN: note}
        return self._total(body, self._message)

    def interaction(self, data: object, *, parent: str | None, received_at: float) -> RawUpdate:
        """A pressed button or a command."""
        note = {"account": self.account, "at": received_at, "parent": parent}
        body = {"t": "INTERACTION_CREATE", "d": _interaction(data), SEEN: note}
        return self._total(body, self._interaction)

    def _total(self, body: dict[str, Any], read: Any) -> RawUpdate:
        """What cannot be read has no identity, a ``problem`` and a key of its own."""
        raw = json.dumps(body, separators=(",", ":"))
        try:
            found: RawUpdate = read(body, raw)
        except Poison as problem:
            digest = hashlib.sha256(json.dumps(body["d"], sort_keys=True).encode()).hexdigest()[:32]
            return RawUpdate(
                PLATFORM, self.account, f"{self.account}:event:{digest}", raw, None, None, problem=str(problem)
            )
        return found

    def _message(self, body: Fields, raw: str) -> RawUpdate:
        message, seen = inner(body, "d"), inner(body, SEEN)
        channel, number = snowflake(message, "channel_id"), snowflake(message, "id")
        edited = moment(message, "edited_timestamp")
        return RawUpdate(
            PLATFORM,
            self.account,
            f"{self.account}:{channel}:{number}:{words(message, 'edited_timestamp') or 0}",
            raw,
            sender_of(message, self.account),
            chat_of(message, seen, self.account),
            message_ref=f"{channel}:{number}",
            sent_at=made_at(number) if edited is None else edited,
            addressed=is_addressed(message, self.account),
        )

    def _interaction(self, body: Fields, raw: str) -> RawUpdate:
        event, seen = inner(body, "d"), inner(body, SEEN)
        number, channel = snowflake(event, "id"), snowflake(event, "channel_id")
        pressed = optional(event, "message")
        about = number if pressed is None else snowflake(pressed, "id")
        return RawUpdate(
            PLATFORM,
            self.account,
            f"{self.account}:interaction:{number}",
            raw,
            person(inner(event, "user"), self.account),
            chat_of(event, seen, self.account),
            message_ref=f"{channel}:{about}",
            sent_at=made_at(number),
        )


def useful(data: object, *, forwarded: bool = False) -> Any:
    """A Message object without what expires or is of no use; ``forwarded``: it stands in another one."""
    if not isinstance(data, Mapping):
        return data
    kept: dict[str, Any] = {name: data[name] for name in _MESSAGE if data.get(name) is not None}
    if "author" in data:
        kept["author"] = _person(data["author"], data.get("member"))
    for name, trim in (("attachments", _file), ("mentions", _person), ("sticker_items", _named)):
        if data.get(name):
            kept[name] = [trim(one) for one in data[name]] if isinstance(data[name], list) else data[name]
    replied = data.get("referenced_message")
    if isinstance(replied, Mapping):
        text = replied.get("content")
        kept["referenced_message"] = {
            "id": replied.get("id"), "author": _person(replied.get("author")),
            "content": text[:_REPLIED_TEXT] if isinstance(text, str) else text,
            "attachments": len(mappings(replied.get("attachments"))),
        }  # fmt: skip
    inside = () if forwarded else mappings(data.get("message_snapshots"))
    if inside:
        kept["message_snapshots"] = [
            {"message": useful(one.get("message"), forwarded=True)} for one in inside
        ]
    poll = data.get("poll")
    if isinstance(poll, Mapping) and isinstance(poll.get("question"), Mapping):
        kept["poll"] = {"question": {"text": poll["question"].get("text")}}
    return kept


def _file(one: Any) -> Any:
    return {name: one[name] for name in _FILE if one.get(name) is not None} if isinstance(one, Mapping) else one


def _named(one: Any) -> Any:
    return {"name": one.get("name")} if isinstance(one, Mapping) else one


def _person(user: Any, member: Any = None) -> Any:
    if not isinstance(user, Mapping):
        return user
    names = ("id", "username", "global_name", "bot")
    kept = {name: user[name] for name in names if user.get(name) is not None}
    if isinstance(member, Mapping):
        if isinstance(member.get("nick"), str):
            kept["nick"] = member["nick"]
        if isinstance(member.get("roles"), list):
            kept["roles"] = member["roles"]
    return kept


def _interaction(data: object) -> Any:
    if not isinstance(data, Mapping):
        return data
    kept: dict[str, Any] = {
        name: data[name] for name in ("id", "type", "data", "channel_id", "guild_id") if data.get(name) is not None
    }
    member = data.get("member")
    user = member.get("user") if isinstance(member, Mapping) else data.get("user")
    kept["user"] = _person(user, member)
    if isinstance(data.get("message"), Mapping):
        kept["message"] = {"id": data["message"].get("id")}
    return kept


def chat_of(of: Fields, seen: Fields, account: str) -> ChatRef:
    """Where something was said; a thread belongs to the channel it hangs in. Raises Poison."""
    channel, parent = snowflake(of, "channel_id"), optional_snowflake(seen, "parent")
    kind = ChatKind.PRIVATE if optional_snowflake(of, "guild_id") is None else ChatKind.GROUP
    if parent is None:
        return ChatRef(PLATFORM, account, channel, None, kind)
    return ChatRef(PLATFORM, account, parent, channel, kind)


def sender_of(message: Fields, account: str) -> Identity:
    """Who said a message; a webhook is nobody's account and counts as a bot. Raises Poison."""
    sender = person(inner(message, "author"), account)
    if message.get("webhook_id") is None:
        return sender
    return replace(sender, is_bot=True)


def person(user: Fields, account: str) -> Identity:
    """A user as an identity, under the name that the place knows them by. Raises Poison."""
    name = words(user, "nick") or words(user, "global_name") or words(user, "username")
    carried = user.get("roles")
    roles = frozenset(r for r in carried if is_snowflake(r)) if isinstance(carried, list) else frozenset()
    return Identity(PLATFORM, account, snowflake(user, "id"), name, user.get("bot") is True, roles)


def is_addressed(message: Fields, account: str) -> bool:
    """Whether a message is meant for the bot: private, a command, naming it, or a reply to it. Raises Poison."""
    if message.get("guild_id") is None or words(message, "content").startswith("/"):
        return True
    if any(one.get("id") == account for one in objects(message, "mentions")):
        return True
    replied = optional(message, "referenced_message")
    return replied is not None and fields(replied.get("author") or {}, "author").get("id") == account
