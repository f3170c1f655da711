"""From an outbox row to a call of the Bot API: method and parameters, nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, assert_never

from telegram import InputFile

from hermes.core.delivery import MARK_PREFIX, Operation
from hermes.core.errors import Poison
from hermes.core.events import Address
from hermes.core.ports import Outgoing
from hermes.core.records import OutgoingPart
from hermes.platforms.outfiles import OutFile, file_of
from hermes.platforms.telegram.render import units

PHOTO_BYTES = 10 * 2**20  # the Bot API's bound for a photo
_PHOTOS = frozenset({"image/jpeg", "image/png", "image/webp"})
BUTTON_DATA_BYTES = 64  # the Bot API's bound
BUTTON_LABEL = 64


def request_of(outgoing: Outgoing) -> tuple[str, dict[str, Any]]:
    """The API method and its parameters. Raises Poison for a payload that is not ours.

    A reaction's payload is ``{"emoji": "👍"}``; without one the reaction is taken back.
    """
    chat: dict[str, Any] = {"chat_id": outgoing.address.chat_id}
    file = file_of(outgoing)
    if file is not None:
        return _upload(file, outgoing, chat | _place(outgoing.address))
    match outgoing.operation:
        case Operation.CREATE:
            return "sendMessage", chat | _content(outgoing) | _place(outgoing.address)
        case Operation.EDIT:
            return "editMessageText", chat | _named(outgoing) | _content(outgoing)
        case Operation.DELETE:
            return "deleteMessage", chat | _named(outgoing)
        case Operation.REACTION:
            emoji = _payload(outgoing).get("emoji")
            reaction = [{"type": "emoji", "emoji": emoji}] if isinstance(emoji, str) and emoji else []
            return "setMessageReaction", chat | _named(outgoing) | {"reaction": reaction}
        case _:
            assert_never(outgoing.operation)


def _upload(file: OutFile, outgoing: Outgoing, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A picture, a voice message, a piece of music or a document; what is refused as such goes as a document."""
    kind = "document"
    if not outgoing.plain and file.mime in _PHOTOS and len(file.content) <= PHOTO_BYTES:
        kind = "photo"
    elif not outgoing.plain and file.mime in ("audio/ogg", "audio/opus"):
        kind = "voice"
    elif not outgoing.plain and file.mime in ("audio/mpeg", "audio/mp4"):
        kind = "audio"
    data[kind] = InputFile(file.content, file.name)
    if outgoing.marked:
        data["caption"] = MARK_PREFIX.strip()
    return f"send{kind.capitalize()}", data


def _named(outgoing: Outgoing) -> dict[str, Any]:
    return {"message_id": _message_id(outgoing.message_ref)}


def _place(address: Address) -> dict[str, Any]:
    """The topic, and what is replied to; a message that is gone by now is not replied to, only that."""
    place = thread_of(address)
    if address.reply_to is not None:
        message_id = _message_id(address.reply_to)
        place["reply_parameters"] = {"message_id": message_id, "allow_sending_without_reply": True}
    return place


def _payload(outgoing: Outgoing) -> dict[str, Any]:
    try:
        payload = json.loads(outgoing.payload)
    except (ValueError, RecursionError) as error:
        raise Poison(f"not a payload of this platform: {type(error).__name__}") from None
    if not isinstance(payload, dict):
        raise Poison(f"not a payload of this platform: {type(payload).__name__}")
    return payload


def _content(outgoing: Outgoing) -> dict[str, Any]:
    payload = _payload(outgoing)
    text, entities, buttons = payload.get("text"), payload.get("entities"), payload.get("buttons")
    if not isinstance(text, str):
        raise Poison("not a payload of this platform: no text")
    if outgoing.plain:
        text, entities = str(payload.get("plain") or text), None
    if outgoing.marked:
        shift = units(MARK_PREFIX)
        text = MARK_PREFIX + text
        entities = [{**e, "offset": e["offset"] + shift} for e in entities or ()]
    content: dict[str, Any] = {"text": text, "link_preview_options": {"is_disabled": True}}
    if entities:
        content["entities"] = entities
    if buttons:
        content["reply_markup"] = {"inline_keyboard": buttons}
    return content


def thread_of(address: Address) -> dict[str, Any]:
    """The topic that a message, or the sign of typing, belongs to."""
    return {} if address.thread_id is None else {"message_thread_id": address.thread_id}


def with_buttons(
    parts: tuple[OutgoingPart, ...], options: Sequence[tuple[str, str]]
) -> tuple[OutgoingPart, ...]:
    """``parts`` with a button for each (label, data) under the last one, each on a line of its own.

    A press arrives as a ButtonEvent with that data. Raises Poison for data of more than 64 bytes.
    """
    rows: list[list[dict[str, str]]] = []
    for label, data in options:
        if not 1 <= len(data.encode("utf-8", "replace")) <= BUTTON_DATA_BYTES:
            raise Poison(f"a button's data has 1 to {BUTTON_DATA_BYTES} bytes")
        rows.append([{"text": label[:BUTTON_LABEL] or data, "callback_data": data}])
    if not parts or not rows:
        return parts
    last = json.dumps(json.loads(parts[-1].payload) | {"buttons": rows}, ensure_ascii=False)
    return (*parts[:-1], OutgoingPart(last))


def _message_id(ref: str | None) -> int:
    """The message's number within its chat; references carry the chat before a colon."""
    try:
        return int((ref or "").rpartition(":")[2])
    except ValueError:
        raise Poison(f"not a message of this platform: {ref!r}") from None
