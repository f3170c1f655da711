"""From an event, an interaction, a command or a message of the history to a ``RawUpdate``: who, where, which thing.

The raw text is JSON: ``kind`` (message, button, command), ``e`` (what of it is of use) and ``hermes`` (what only this
moment knows: our account, the kind of the channel, the time of arrival, whether it is meant for us). Addresses of
files and of answers (``url_private``, ``response_url``) hold credentials or expire and are never kept (R1).

Slack sends ``message`` and ``app_mention`` for one text, and one event again when it was not acknowledged in time:
the key is team, channel, ts and the time of the edit (R2).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hermes.core.errors import Poison
from hermes.core.events import RawUpdate
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.platforms.fields import Fields, fields, inner, optional, words
from hermes.platforms.slack.names import MENTIONED
from hermes.platforms.slack.stamps import identifier, optional_stamp, stamp

PLATFORM = "slack"
SEEN = "hermes"
SAID = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
"""Subtypes of a message that somebody says; the others tell of joins, topics, pins and the like."""

_MESSAGE = (
    "subtype", "user", "bot_id", "username", "text", "ts", "thread_ts", "parent_user_id", "channel", "channel_type",
    "edited",
)  # fmt: skip
_FILE = ("id", "name", "mimetype", "size", "mode", "subtype", "duration_ms", "title")
_SHARED = ("text", "fallback", "author_name", "author_id", "from_url", "is_share", "is_msg_unfurl", "channel_id")
_SHARED_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Ourselves:
    """The bot as ``auth.test`` names it: user, team, and its id as an author."""

    user: str = ""
    team: str = ""
    bot: str = ""


@dataclass(slots=True)
class Envelopes:
    """Makes envelopes for one account. ``kind_of`` says what kind a channel is, ``takes_part`` whether we speak in a
    thread: what is said there is meant for us without naming us."""

    us: Ourselves
    kind_of: Callable[[str], str]
    takes_part: Callable[[str, str], bool]
    name_of: Callable[[str], str] = lambda user: ""

    def event(self, event: object, received_at: float) -> RawUpdate | None:
        """An event of the Events API, or a message of a history; None for what nobody said. Total."""
        if not isinstance(event, Mapping):
            return self._total({"kind": "message", "e": event}, received_at)
        message = _said(event)
        if message is None:
            return None
        changed = event.get("subtype") == "message_changed"
        return self._total({"kind": "message", "e": useful(message)}, received_at, changed=changed)

    def button(self, payload: object, received_at: float) -> RawUpdate | None:
        """An interaction; None for what is no press of a button."""
        if isinstance(payload, Mapping) and payload.get("type") != "block_actions":
            return None
        return self._total({"kind": "button", "e": _pressed(payload)}, received_at)

    def command(self, payload: object, received_at: float) -> RawUpdate:
        """A slash command."""
        return self._total({"kind": "command", "e": _command(payload)}, received_at)

    def _total(self, body: dict[str, Any], received_at: float, *, changed: bool = False) -> RawUpdate:
        """What cannot be read has no identity, a ``problem`` and a key of its own."""
        us = self.us
        note: dict[str, Any] = {"account": us.user, "bot": us.bot, "team": us.team, "at": received_at}
        if changed:
            note["changed"] = True
        body[SEEN] = note
        try:
            self._note(body["kind"], body["e"], note)
            return self._read(body)
        except Poison as problem:
            told = json.dumps(body["e"], sort_keys=True)
            digest = hashlib.sha256(told.encode()).hexdigest()[:32]
            raw = json.dumps(body, separators=(",", ":"))
            key = f"{self.us.team}:event:{digest}"
            return RawUpdate(PLATFORM, self.us.user, key, raw, None, None, problem=str(problem))

    def _note(self, kind: str, event: object, note: dict[str, Any]) -> None:
        of = fields(event, kind)
        channel = identifier(of, "channel")
        note["kind"] = words(of, "channel_type") or self.kind_of(channel)
        chat = chat_of(of, note, self.us.user)
        named = kind != "message" or is_named(self.us.user, words(of, "text"))
        replied = words(of, "parent_user_id") == self.us.user
        known = chat.thread_id is not None and self.takes_part(channel, chat.thread_id)
        self._names(of, note)
        note["addressed"] = chat.kind is ChatKind.PRIVATE or named or replied or known

    def _names(self, of: Fields, note: dict[str, Any]) -> None:
        """Who speaks, and who is named in the text."""
        user, text = of.get("user"), of.get("text")
        name = self.name_of(user) if isinstance(user, str) else ""
        if name:
            note["name"] = name
        named = {found[1] for found in MENTIONED.finditer(text)} if isinstance(text, str) else set()
        names = {one: self.name_of(one) for one in sorted(named) if self.name_of(one)}
        if names:
            note["names"] = names

    def _read(self, body: Fields) -> RawUpdate:
        event, note = inner(body, "e"), inner(body, SEEN)
        channel, team = identifier(event, "channel"), self.us.team
        chat = chat_of(event, note, self.us.user)
        about: str | None = None
        match body["kind"]:
            case "message":
                about, edited = stamp(event, "ts"), edited_at(event)
                key, sent_at = f"{team}:{channel}:{about}:{edited or 0}", float(edited or about)
            case "button":
                about, action = optional_stamp(event, "ts"), inner(event, "action")
                pressed = stamp(action, "action_ts")
                named = f"{words(action, 'action_id')}:{identifier(inner(event, 'user'), 'id')}"
                key, sent_at = f"{team}:{channel}:button:{about}:{pressed}:{named}", float(pressed)
            case _:
                key, sent_at = f"{team}:{channel}:command:{words(event, 'key')}", note["at"]
        return RawUpdate(
            platform=PLATFORM,
            account=self.us.user,
            dedup_key=key,
            raw=json.dumps(body, separators=(",", ":")),
            identity=sender_of(event, note),
            chat=chat,
            message_ref=None if about is None else f"{channel}:{about}",
            sent_at=sent_at,
            addressed=note["addressed"],
        )


def _said(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The message that an event tells of; None for an event that tells of none."""
    if event.get("type") not in ("message", "app_mention", None):
        return None
    subtype = _subtype(event)
    if subtype == "message_changed":
        changed = event.get("message")
        if not isinstance(changed, Mapping) or changed.get("edited") is None:
            return None  # a preview was added, or a thread grew: nobody edited anything
        if _subtype(changed) not in SAID:
            return None
        place = {name: event[name] for name in ("channel", "channel_type") if name in event}
        return {**changed, **place}
    return event if subtype in SAID and not event.get("hidden") else None


def _subtype(message: Mapping[str, Any]) -> str:
    found = message.get("subtype")
    return found if isinstance(found, str) else "" if found is None else "unknown"


def useful(message: Mapping[str, Any]) -> Any:
    """A message without what expires, holds a credential or is of no use."""
    kept: dict[str, Any] = {name: message[name] for name in _MESSAGE if message.get(name) is not None}
    files, shared = message.get("files"), message.get("attachments")
    if files:
        kept["files"] = [_part(one, _FILE) for one in files] if isinstance(files, list) else files
    if isinstance(shared, list):
        told = [_part(one, _SHARED) for one in shared if isinstance(one, Mapping)]
        kept["attachments"] = [one for one in told if one.get("is_share") or one.get("is_msg_unfurl")]
    return kept


def _part(one: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(one, Mapping):
        return one
    kept = {name: one[name] for name in names if one.get(name) is not None}
    return {k: v[:_SHARED_TEXT] if isinstance(v, str) else v for k, v in kept.items()}


def _pressed(payload: object) -> Any:
    if not isinstance(payload, Mapping):
        return payload
    message, container = payload.get("message"), payload.get("container")
    place = {**(container if isinstance(container, Mapping) else {})}
    place |= message if isinstance(message, Mapping) else {}
    channel, user, actions = payload.get("channel"), payload.get("user"), payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    return {
        "channel": channel.get("id") if isinstance(channel, Mapping) else place.get("channel_id"),
        "user": _part(user, ("id", "username", "name")),
        "ts": place.get("ts") or place.get("message_ts"),
        "thread_ts": place.get("thread_ts"),
        "action": _part(action, ("action_id", "block_id", "value", "action_ts", "type")),
    }


def _command(payload: object) -> Any:
    if not isinstance(payload, Mapping):
        return payload
    told = f"{payload.get('trigger_id')}:{payload.get('command')}:{payload.get('text')}"
    return {
        "channel": payload.get("channel_id"),
        "user": {"id": payload.get("user_id"), "username": payload.get("user_name")},
        "command": payload.get("command"),
        "text": payload.get("text"),
        "key": hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:32],
    }


def is_named(user: str, text: str) -> bool:
    """Whether a text mentions a user."""
    return any(found[1] == user for found in MENTIONED.finditer(text))


def edited_at(message: Fields) -> str | None:
    """When it was edited, None when it was not. Raises Poison."""
    edited = optional(message, "edited")
    return None if edited is None else stamp(edited, "ts")


def chat_of(event: Fields, note: Fields, account: str) -> ChatRef:
    """Where something was said. In a channel every message begins a thread, or belongs to one: the answer to it
    goes there, and what is said there goes on with it. Raises Poison."""
    channel, kind, thread = identifier(event, "channel"), note.get("kind"), optional_stamp(event, "thread_ts")
    if kind == "im":
        return ChatRef(PLATFORM, account, channel, thread, ChatKind.PRIVATE)
    if thread is None and kind != "mpim":
        thread = optional_stamp(event, "ts")
    return ChatRef(PLATFORM, account, channel, thread, ChatKind.GROUP)


def sender_of(event: Fields, note: Fields) -> Identity:
    """Who said, pressed or commanded something: a person, another bot, or ourselves. Raises Poison."""
    account, user = words(note, "account"), event.get("user")
    if isinstance(user, dict):
        display = words(user, "username") or words(user, "name")
        return Identity(PLATFORM, account, identifier(user, "id"), display)
    bot = words(event, "bot_id")
    if bot and bot == words(note, "bot"):
        return Identity(PLATFORM, account, account, is_bot=True)
    if user is None and bot:
        return Identity(PLATFORM, account, identifier(event, "bot_id"), words(event, "username"), True)
    name = words(note, "name") or words(event, "username")
    return Identity(PLATFORM, account, identifier(event, "user"), name, bool(bot))
