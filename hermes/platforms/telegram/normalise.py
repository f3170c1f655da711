"""What a stored update means: pure, from the raw text alone, so that any later process can do it."""

from __future__ import annotations

import json
import re

from hermes.core.errors import Poison
from hermes.core.events import Address, AttachmentRef, ButtonEvent, Event, MessageEvent, NothingToDo
from hermes.core.principals import ChatKind, ChatRef
from hermes.platforms.telegram.envelope import PLATFORM, SEEN, SERVED, chat_of, person, sender_of
from hermes.platforms.telegram.fields import Fields, fields, inner, number, optional, optional_number, words

QUOTE_LIMIT = 1000  # characters of the message replied to; the whole of it is in the history anyway
_FILES = ("document", "voice", "audio", "video", "video_note", "animation")
_KNOWN = frozenset(
    {"message_id", "message_thread_id", "from", "sender_chat", "date", "chat", "is_topic_message", "via_bot"}
)


def normalise(raw: str) -> Event:
    """An event for any text. Raises Poison when it is not an update or is built wrongly."""
    try:
        update = fields(json.loads(raw), "update")
    except (ValueError, RecursionError) as error:
        raise Poison(f"not JSON: {type(error).__name__}") from None
    seen = optional(update, SEEN) or {}
    account, bot = words(seen, "account"), words(seen, "bot")
    query = optional(update, "callback_query")
    if query is not None:
        return _button(query, account, _arrival(seen))
    kind = next((name for name in SERVED if name in update), None)
    if kind is None:
        return NothingToDo("a kind of update that is not served")
    return _message(inner(update, kind), account, bot, edited=kind == "edited_message")


def _arrival(seen: Fields) -> float:
    at = seen.get("at")
    return float(at) if isinstance(at, (int, float)) and abs(at) < 1e15 else 0.0


def _button(query: Fields, account: str, at: float) -> Event:
    message, data = inner(query, "message"), words(query, "data")
    chat = chat_of(message, account)
    if not data:
        return NothingToDo("a button without data")
    return ButtonEvent(
        identity=person(inner(query, "from"), account),
        chat=chat,
        address=address_of(chat, None),
        data=data,
        message_ref=f"{chat.chat_id}:{number(message, 'message_id')}",
        sent_at=at,
    )


def _message(message: Fields, account: str, bot: str, *, edited: bool) -> Event:
    chat, identity = chat_of(message, account), sender_of(message, account)
    reason = _not_for_us(message, chat)
    if reason is not None:
        return NothingToDo(reason)
    message_id, date = number(message, "message_id"), number(message, "date")
    text, attachments = _text(message), attachments_of(message)
    if not text and not attachments:
        return NothingToDo(f"no content that is served: {_kinds(message)}")
    if chat.kind is not ChatKind.PRIVATE:
        text = without_mention(text, bot)
    return MessageEvent(
        identity=identity,
        chat=chat,
        address=address_of(chat, message_id),
        text=text,
        message_ref=f"{chat.chat_id}:{message_id}",
        sent_at=float(optional_number(message, "edit_date") or date),
        edited=edited,
        quoted=_quoted(message),
        attachments=attachments,
    )


def address_of(chat: ChatRef, reply_to: int | None) -> Address:
    """Where the answer goes: same chat, same topic; in a group it replies to the message."""
    grouped = chat.kind is ChatKind.GROUP and reply_to is not None
    return Address(PLATFORM, chat.account, chat.chat_id, chat.thread_id, str(reply_to) if grouped else None)


def _not_for_us(message: Fields, chat: ChatRef) -> str | None:
    sender = optional(message, "from")
    if chat.kind is ChatKind.CHANNEL:
        return "a post in a channel"
    if message.get("is_automatic_forward") is True:
        return "a channel's post, forwarded by Telegram"
    if sender is None:
        return "not said by a person"
    return "said by a bot" if sender.get("is_bot") is True else None


def _kinds(message: Fields) -> str:
    return ", ".join(sorted(str(name) for name in message if name not in _KNOWN))[:120] or "nothing"


def _text(message: Fields) -> str:
    """Text or caption, after a line for each thing that is described rather than attached."""
    lines = [line for line in (_forwarded(message), *_described(message)) if line]
    body = words(message, "text") or words(message, "caption")
    return "\n".join([*lines, body] if body else lines)


def _described(message: Fields) -> list[str]:
    lines: list[str] = []
    sticker, poll, dice = optional(message, "sticker"), optional(message, "poll"), optional(message, "dice")
    if sticker is not None:
        lines.append(" ".join(part for part in ("[sticker", words(sticker, "emoji")) if part) + "]")
    if poll is not None:
        lines.append(f"[poll: {words(poll, 'question')}]")
    if dice is not None:
        lines.append(f"[dice {words(dice, 'emoji')}: {number(dice, 'value')}]")
    contact, place = optional(message, "contact"), optional(message, "location")
    if contact is not None:
        name = " ".join(part for part in (words(contact, "first_name"), words(contact, "last_name")) if part)
        lines.append(f"[contact: {name}, {words(contact, 'phone_number')}]")
    venue = optional(message, "venue")
    if venue is not None:
        place = inner(venue, "location")
        lines.append(f"[venue: {words(venue, 'title')}, {words(venue, 'address')}]")
    if place is not None:
        lines.append(f"[location: {_degrees(place, 'latitude')}, {_degrees(place, 'longitude')}]")
    return lines


def _degrees(place: Fields, name: str) -> str:
    value = place.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 360:
        raise Poison(f"{name} is not a number of degrees")
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _forwarded(message: Fields) -> str:
    origin = optional(message, "forward_origin")
    if origin is None:
        return ""
    user = optional(origin, "sender_user")
    chat = optional(origin, "sender_chat") or optional(origin, "chat")
    name = words(origin, "sender_user_name")
    if user is not None:
        name = words(user, "first_name") or words(user, "username")
    elif chat is not None:
        name = words(chat, "title") or words(chat, "username")
    return f"[forwarded from {name or 'somebody'}]"


def _quoted(message: Fields) -> str | None:
    """What the person replies to; the topic's own opening, which every message in it "replies" to, is not."""
    quote = optional(message, "quote")
    if quote is not None and words(quote, "text"):
        return words(quote, "text")[:QUOTE_LIMIT]
    replied = optional(message, "reply_to_message")
    if replied is None or "forum_topic_created" in replied:
        return None
    text = words(replied, "text") or words(replied, "caption")
    return text[:QUOTE_LIMIT] or None


def attachments_of(message: Fields) -> tuple[AttachmentRef, ...]:
    """References by file id: they stay valid for this bot and hold no address (R1)."""
    found: list[AttachmentRef] = []
    sizes = message.get("photo")
    if sizes is not None:
        if not isinstance(sizes, list) or not sizes:
            raise Poison("photo is not a list of sizes")
        found.append(_file("photo", max((fields(s, "photo") for s in sizes), key=_area)))
    for kind in _FILES:
        described = optional(message, kind)
        if described is not None and not (kind == "document" and "animation" in message):
            found.append(_file(kind, described))
    return tuple(found)


def _area(size: Fields) -> int:
    return (optional_number(size, "width") or 0) * (optional_number(size, "height") or 0)


def _file(kind: str, described: Fields) -> AttachmentRef:
    ref = words(described, "file_id")
    if not ref:
        raise Poison(f"{kind} has no file_id")
    return AttachmentRef(
        kind=kind,
        ref=ref,
        name=words(described, "file_name") or None,
        mime=words(described, "mime_type") or ("image/jpeg" if kind == "photo" else None),
        size=optional_number(described, "file_size"),
    )


def without_mention(text: str, bot: str) -> str:
    """``text`` without ``@bot``: it says whom the words are for, and is no part of them."""
    if not bot or "@" not in text:
        return text
    name = re.escape(bot)
    text = re.sub(rf"^(/\w+)@{name}\b", r"\1", text, flags=re.IGNORECASE)
    found = re.compile(rf"(?<![\w@])@{name}\b[ \t]?", re.IGNORECASE)
    return found.sub("", text).strip()
