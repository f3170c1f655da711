"""What a stored update means: pure, from the raw text alone, so that any later process can do it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from hermes.core.errors import Poison
from hermes.core.events import Address, AttachmentRef, ButtonEvent, Event, MessageEvent, NothingToDo
from hermes.core.principals import ChatKind, ChatRef
from hermes.platforms.fields import Fields, fields, inner, objects, optional, words
from hermes.platforms.slack.envelope import PLATFORM, SEEN, chat_of, edited_at, sender_of
from hermes.platforms.slack.stamps import identifier, optional_stamp, stamp
from hermes.policy.routing import lane_of, parse_command

_TOKEN = re.compile(r"<((?:[@#!]|[A-Za-z][A-Za-z0-9+.-]{0,20}:)[^<>\n]{1,3000})>")
_NAMES = {"here": "@here", "channel": "@channel", "everyone": "@everyone"}


def normalise(raw: str) -> Event:
    """An event for any text. Raises Poison when it is not an update or is built wrongly."""
    try:
        body = fields(json.loads(raw), "update")
    except (ValueError, RecursionError) as error:
        raise Poison(f"not JSON: {type(error).__name__}") from None
    event, note = inner(body, "e"), inner(body, SEEN)
    chat = chat_of(event, note, words(note, "account"))
    match body.get("kind"):
        case "message":
            return _message(event, note, chat)
        case "button":
            return _button(event, note, chat)
        case "command":
            return _command(event, note, chat)
        case _:
            raise Poison("not a kind of update that is served")


def _message(event: Fields, note: Fields, chat: ChatRef) -> Event:
    identity, ts, edited = sender_of(event, note), stamp(event, "ts"), edited_at(event)
    if identity.is_bot or identity.is_ourselves:
        return NothingToDo("said by a bot")
    attachments = attachments_of(event)
    text = _text(event, note, named=chat.kind is not ChatKind.PRIVATE)
    if not text and not attachments:
        return NothingToDo("no content that is served")
    return MessageEvent(
        identity=identity,
        chat=chat,
        address=address_of(chat),
        text=text,
        message_ref=f"{chat.chat_id}:{ts}",
        sent_at=float(edited or ts),
        edited=note.get("changed") is True,
        attachments=attachments,
        addressed=note.get("addressed") is not False,
    )


def _button(event: Fields, note: Fields, chat: ChatRef) -> Event:
    action, ts = inner(event, "action"), optional_stamp(event, "ts")
    data = words(action, "value")
    if not data or ts is None:
        return NothingToDo("a button without data")
    return ButtonEvent(
        identity=sender_of(event, note),
        chat=chat,
        address=address_of(chat),
        data=data,
        message_ref=f"{chat.chat_id}:{ts}",
        sent_at=float(stamp(action, "action_ts")),
    )


def _command(event: Fields, note: Fields, chat: ChatRef) -> Event:
    """``/hermes status`` is our command ``/status``; ``/hermes anything else`` is said to us."""
    at, text = note.get("at"), plain_text(words(event, "text")).strip()
    if isinstance(at, bool) or not isinstance(at, int | float):
        raise Poison("the time of arrival is missing")
    named = parse_command(text if text.startswith("/") else f"/{text}")
    if not text:
        text = "/help"
    elif named is not None and lane_of(named) is not None and not text.startswith("/"):
        text = f"/{text}"
    return MessageEvent(
        identity=sender_of(event, note),
        chat=chat,
        address=address_of(chat),
        text=text,
        message_ref=f"{chat.chat_id}:command:{words(event, 'key')}",
        sent_at=float(at),
    )


def address_of(chat: ChatRef) -> Address:
    """Where the answer goes: same channel, same thread."""
    return Address(PLATFORM, chat.account, chat.chat_id, chat.thread_id)


def _text(event: Fields, note: Fields, *, named: bool) -> str:
    text, names = words(event, "text"), optional(note, "names") or {}
    if named:
        text = without_mention(text, words(note, "account"))
    lines = [plain_text(text, names).strip()] if text.strip() else []
    for shared in objects(event, "attachments"):
        said = plain_text(words(shared, "text") or words(shared, "fallback")).strip()
        if said:
            who = words(shared, "author_name") or "somebody"
            lines.append(f"[shared message of {who}]\n{said}")
    return "\n".join(lines)


def without_mention(text: str, us: str) -> str:
    """``text`` without ``<@us>``: it says whom the words are for, and is no part of them."""
    if not us or f"<@{us}" not in text:
        return text
    return re.sub(rf"<@{re.escape(us)}(?:\|[^<>]*)?>[ \t]?", "", text).strip()


def plain_text(text: str, names: Mapping[str, object] = MappingProxyType({})) -> str:
    """Slack's text as a person reads it: addresses and names in angle brackets written out, entities undone.

    Source: Slack's documentation, "Formatting text for app surfaces" ("Retrieving messages").
    """
    shown = _TOKEN.sub(lambda found: _written(found[1], names), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _written(token: str, names: Mapping[str, object]) -> str:
    told, _, label = token.partition("|")
    match told[:1]:
        case "@":
            return f"@{names.get(told[1:]) or label or told[1:]}".replace("@@", "@")
        case "#":
            return f"#{label or told[1:]}"
        case "!":
            return label or _NAMES.get(told[1:], f"@{told[1:]}")
        case _:
            address = told.removeprefix("mailto:").removeprefix("tel:")
            return address if not label or label in (address, told) else f"{label} ({address})"


def attachments_of(event: Fields) -> tuple[AttachmentRef, ...]:
    """References by file id: they stay valid for this bot and hold no address (R1)."""
    found = []
    for one in objects(event, "files"):
        if words(one, "mode") in ("tombstone", "hidden_by_limit"):
            continue
        size = one.get("size")
        found.append(
            AttachmentRef(
                kind=_kind(one),
                ref=identifier(one, "id"),
                name=words(one, "name") or words(one, "title") or None,
                mime=words(one, "mimetype") or None,
                size=size if isinstance(size, int) and not isinstance(size, bool) else None,
            )
        )
    return tuple(found)


def _kind(file: Fields) -> str:
    """In the words of Telegram's kinds, which the rest knows."""
    subtype, mime = words(file, "subtype"), words(file, "mimetype")
    if subtype == "slack_audio":
        return "voice"
    if mime.startswith("image/") and mime != "image/svg+xml":
        return "photo"
    return {"audio": "audio", "video": "video"}.get(mime.partition("/")[0], "document")
