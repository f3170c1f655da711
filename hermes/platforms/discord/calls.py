"""From an outbox row to a call of Discord's REST API: method, path and body, nothing else."""

from __future__ import annotations

import hashlib
import json
from base64 import b32encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from hermes.core.delivery import MARK_PREFIX, Operation
from hermes.core.errors import Poison
from hermes.core.events import Address
from hermes.core.ports import Outgoing
from hermes.core.records import OutgoingPart
from hermes.platforms.discord.fields import is_snowflake
from hermes.platforms.discord.rest import segment

NONCE_LENGTH = 25  # Discord's bound
BUTTON_ID, BUTTON_LABEL, BUTTONS_A_ROW, ROWS = 100, 80, 5, 5
NO_EMBEDS = 1 << 2  # no preview of addresses in the text
_ROW, _BUTTON, _SECONDARY = 1, 2, 2


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``route`` names the limit it counts for: what is done, and in which channel."""

    method: str
    path: str
    body: Mapping[str, Any] | None
    route: tuple[str, str]


def call_of(outgoing: Outgoing, nonce: str) -> Call:
    """The request. Raises Poison for a payload that is not ours.

    A reaction's payload is ``{"emoji": "👍"}``, or ``{"was": "👍"}`` to take one back.
    """
    channel = channel_of(outgoing.address)
    path = f"/channels/{channel}/messages"
    match outgoing.operation:
        case Operation.CREATE:
            body = content_of(outgoing) | {"nonce": nonce, "enforce_nonce": True, **_replied(outgoing.address)}
            return Call("POST", path, body, ("create", channel))
        case Operation.EDIT:
            body = {"components": [], **content_of(outgoing)}
            return Call("PATCH", f"{path}/{message_of(outgoing.message_ref)}", body, ("edit", channel))
        case Operation.DELETE:
            return Call("DELETE", f"{path}/{message_of(outgoing.message_ref)}", None, ("delete", channel))
        case Operation.REACTION:
            payload = _payload(outgoing)
            emoji = str(payload.get("emoji") or payload.get("was") or "")
            method = "PUT" if payload.get("emoji") else "DELETE"
            where = f"{path}/{message_of(outgoing.message_ref)}/reactions/{segment(emoji)}/@me"
            return Call(method, where, None, ("reaction", channel))
        case _:
            assert_never(outgoing.operation)


def content_of(outgoing: Outgoing) -> dict[str, Any]:
    """What the message is to hold. Nobody is pinged by what a model wrote. Raises Poison."""
    payload = _payload(outgoing)
    text = payload.get("text")
    if not isinstance(text, str):
        raise Poison("not a payload of this platform: no text")
    if outgoing.plain:
        text = str(payload.get("plain") or text)
    if outgoing.marked:
        text = MARK_PREFIX + text
    content: dict[str, Any] = {
        "content": text,
        "flags": NO_EMBEDS,
        "allowed_mentions": {"parse": [], "replied_user": True},
    }
    if payload.get("buttons"):
        content["components"] = payload["buttons"]
    return content


def _replied(address: Address) -> dict[str, Any]:
    """What is replied to; a message that is gone by now is not replied to, only that."""
    if address.reply_to is None:
        return {}
    number = message_of(address.reply_to)
    return {"message_reference": {"message_id": number, "fail_if_not_exists": False}}


def channel_of(address: Address) -> str:
    """The channel to write into: a thread is one. Raises Poison."""
    channel = address.thread_id or address.chat_id
    if not is_snowflake(channel):
        raise Poison(f"not a channel of this platform: {channel!r}")
    return channel


def message_of(ref: str | None) -> str:
    """The message's id; references carry the channel before a colon. Raises Poison."""
    number = (ref or "").rpartition(":")[2]
    if not is_snowflake(number):
        raise Poison(f"not a message of this platform: {ref!r}")
    return number


def nonce_of(salt: str, channel: str, nonce: str) -> str:
    """One name for one delivery, whatever store its number comes from; 25 characters."""
    digest = hashlib.sha256(f"{salt}\n{channel}\n{nonce}".encode()).digest()
    return b32encode(digest).decode("ascii")[:NONCE_LENGTH].lower()


def with_buttons(
    parts: tuple[OutgoingPart, ...], options: Sequence[tuple[str, str]]
) -> tuple[OutgoingPart, ...]:
    """``parts`` with a button for each (label, data) under the last one, at most 25.

    A press arrives as a ButtonEvent with that data. Raises Poison for data of more than 100 characters.
    """
    buttons = []
    for label, data in options[: BUTTONS_A_ROW * ROWS]:
        if not 1 <= len(data) <= BUTTON_ID:
            raise Poison(f"a button's data has 1 to {BUTTON_ID} characters")
        shown = label[:BUTTON_LABEL] or data[:BUTTON_LABEL]
        buttons.append({"type": _BUTTON, "style": _SECONDARY, "label": shown, "custom_id": data})
    if not parts or not buttons:
        return parts
    rows = [
        {"type": _ROW, "components": buttons[at : at + BUTTONS_A_ROW]}
        for at in range(0, len(buttons), BUTTONS_A_ROW)
    ]
    last = json.dumps(json.loads(parts[-1].payload) | {"buttons": rows}, ensure_ascii=False)
    return (*parts[:-1], OutgoingPart(last))


def _payload(outgoing: Outgoing) -> dict[str, Any]:
    try:
        payload = json.loads(outgoing.payload)
    except (ValueError, RecursionError) as error:
        raise Poison(f"not a payload of this platform: {type(error).__name__}") from None
    if not isinstance(payload, dict):
        raise Poison(f"not a payload of this platform: {type(payload).__name__}")
    return payload
