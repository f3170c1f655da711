"""What a stored update means: pure, from the raw text alone, so that any later process can do it."""

from __future__ import annotations

import json
import re

from hermes.core.errors import Poison
from hermes.core.events import Address, AttachmentRef, ButtonEvent, Event, MessageEvent, NothingToDo
from hermes.core.principals import ChatKind, ChatRef
from hermes.platforms.discord.envelope import (
    PLATFORM,
    SAID,
    SEEN,
    chat_of,
    is_addressed,
    person,
    sender_of,
)
from hermes.platforms.discord.fields import kind_of, made_at, moment, snowflake
from hermes.platforms.fields import Fields, fields, inner, objects, optional, words

VOICE_MESSAGE = 1 << 13
_MENTION = re.compile(r"<@!?(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def normalise(raw: str) -> Event:
    """An event for any text. Raises Poison when it is not an update or is built wrongly."""
    try:
        update = fields(json.loads(raw), "update")
    except (ValueError, RecursionError) as error:
        raise Poison(f"not JSON: {type(error).__name__}") from None
    seen = optional(update, SEEN) or {}
    match words(update, "t"):
        case "INTERACTION_CREATE":
            return _interaction(inner(update, "d"), seen)
        case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
            return _message(inner(update, "d"), seen)
        case name:
            return NothingToDo(f"an event that is not served: {name[:60]}")


def _message(message: Fields, seen: Fields) -> Event:
    account = words(seen, "account")
    identity, chat = sender_of(message, account), chat_of(message, seen, account)
    if kind_of(message) not in SAID:
        return NothingToDo("not said by a person")
    number, edited = snowflake(message, "id"), moment(message, "edited_timestamp")
    attachments, text = attachments_of(message), _text(message, account)
    if not text and not attachments:
        return NothingToDo("no content that is served")
    return MessageEvent(
        identity=identity,
        chat=chat,
        address=address_of(chat, number),
        text=text,
        message_ref=f"{snowflake(message, 'channel_id')}:{number}",
        sent_at=made_at(number) if edited is None else edited,
        edited=edited is not None,
        quoted=_quoted(message),
        attachments=attachments,
        addressed=is_addressed(message, account),
    )


def _interaction(event: Fields, seen: Fields) -> Event:
    account, number = words(seen, "account"), snowflake(event, "id")
    identity, chat = person(inner(event, "user"), account), chat_of(event, seen, account)
    data, channel = inner(event, "data"), snowflake(event, "channel_id")
    match event.get("type"):
        case 3:  # a component
            pressed = words(data, "custom_id")
            if not pressed:
                return NothingToDo("a component without data")
            about = snowflake(inner(event, "message"), "id")
            return ButtonEvent(
                identity, chat, address_of(chat, None), pressed, f"{channel}:{about}", made_at(number)
            )
        case 2:  # a command
            return MessageEvent(
                identity, chat, address_of(chat, None), _command(data), f"{channel}:{number}", made_at(number)
            )
        case _:
            return NothingToDo("an interaction that is not served")


def _command(data: Fields) -> str:
    """A command as a person would have written it."""
    name = words(data, "name")
    if not name:
        raise Poison("a command without a name")
    values = [str(one["value"]) for one in objects(data, "options") if isinstance(one.get("value"), str | int)]
    return " ".join([f"/{name}", *values])


def address_of(chat: ChatRef, reply_to: str | None) -> Address:
    """Where the answer goes: same channel, same thread; in a guild it replies to the message."""
    grouped = chat.kind is not ChatKind.PRIVATE
    return Address(PLATFORM, chat.account, chat.chat_id, chat.thread_id, reply_to if grouped else None)


def _text(message: Fields, account: str) -> str:
    """What was written, after a line for each thing that is described rather than attached."""
    lines = [f"[sticker {words(one, 'name')}]" for one in objects(message, "sticker_items")]
    poll = optional(message, "poll")
    if poll is not None:
        lines.append(f"[poll: {words(inner(poll, 'question'), 'text')}]")
    for one in objects(message, "message_snapshots"):
        forwarded = inner(one, "message")
        lines.append(f"[forwarded]\n{_readable(forwarded, account)}".rstrip())
    body = _readable(message, account)
    return "\n".join([*lines, body] if body else lines)


def _readable(message: Fields, account: str) -> str:
    """The content with names for the ids in it; the bot's own is left out: it says whom the words are for."""
    text = words(message, "content")
    if "<" not in text:
        return text
    names = {
        words(one, "id"): words(one, "global_name") or words(one, "username")
        for one in objects(message, "mentions")
    }

    def named(found: re.Match[str]) -> str:
        user = found.group(1)
        return "" if user == account else f"@{names[user]}" if names.get(user) else found.group()

    readable = _EMOJI.sub(r"\1", _MENTION.sub(named, text))
    return readable.strip() if account and f"{account}>" in text else readable


def _quoted(message: Fields) -> str | None:
    replied = optional(message, "referenced_message")
    return None if replied is None else words(replied, "content") or None


def attachments_of(message: Fields) -> tuple[AttachmentRef, ...]:
    """Files by channel, message and their own id: their addresses are asked for when they are fetched (R1)."""
    place = f"{snowflake(message, 'channel_id')}:{snowflake(message, 'id')}"
    flags = message.get("flags")
    voice = isinstance(flags, int) and bool(flags & VOICE_MESSAGE)
    found = [_file(one, place, voice) for one in objects(message, "attachments")]
    for one in objects(message, "message_snapshots"):
        found += [_file(file, place, voice) for file in objects(inner(one, "message"), "attachments")]
    return tuple(found)


def _file(one: Fields, place: str, voice: bool) -> AttachmentRef:
    mime = words(one, "content_type").partition(";")[0].strip()
    family, size = mime.partition("/")[0], one.get("size")
    kind = {"image": "photo", "audio": "voice" if voice else "audio", "video": "video"}.get(family, "document")
    return AttachmentRef(
        kind=kind,
        ref=f"{place}:{snowflake(one, 'id')}",
        name=words(one, "filename") or None,
        mime=mime or None,
        size=size if isinstance(size, int) and not isinstance(size, bool) else None,
    )
