"""From an outbox row to a call of the Web API: method and body, nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from hermes.core.delivery import MARK_PREFIX, Operation
from hermes.core.errors import Poison
from hermes.core.events import Address
from hermes.core.ports import Outgoing
from hermes.core.records import OutgoingPart
from hermes.platforms.slack.blocks import with_mark
from hermes.platforms.slack.render import escaped
from hermes.platforms.slack.stamps import is_stamp

METADATA = "hermes_delivery"
"""``event_type`` of the metadata by which we find what we sent; its payload is ``{"nonce": ...}``."""
BUTTONS, BUTTON_DATA, BUTTON_LABEL, SECTION = 25, 2000, 75, 3000
ACTION = "hermes"
_NAMES = {
    "👍": "thumbsup", "👎": "thumbsdown", "👀": "eyes", "✅": "white_check_mark", "❌": "x", "❤️": "heart", "❤": "heart",
    "🔥": "fire", "🎉": "tada", "🤔": "thinking_face", "⏳": "hourglass_flowing_sand", "⚠️": "warning", "🙏": "pray",
}  # fmt: skip


def request_of(outgoing: Outgoing) -> tuple[str, dict[str, Any]]:
    """The method and its body. Raises Poison for a payload that is not ours.

    A reaction's payload is ``{"emoji": "👍"}`` or a name of Slack's, or ``{"was": ...}`` to take one back.
    """
    channel = outgoing.address.chat_id
    match outgoing.operation:
        case Operation.CREATE:
            made = {"event_type": METADATA, "event_payload": {"nonce": outgoing.nonce}}
            body = {"channel": channel, **_content(outgoing), **thread_of(outgoing.address), "metadata": made}
            return "chat.postMessage", body | {"unfurl_links": False, "unfurl_media": False}
        case Operation.EDIT:
            named = {"channel": channel, "ts": message_of(outgoing.message_ref)}
            return "chat.update", {"blocks": [], **named, **_content(outgoing)}
        case Operation.DELETE:
            return "chat.delete", {"channel": channel, "ts": message_of(outgoing.message_ref)}
        case Operation.REACTION:
            payload = _payload(outgoing)
            emoji = str(payload.get("emoji") or payload.get("was") or "")
            method = "reactions.add" if payload.get("emoji") else "reactions.remove"
            name = _NAMES.get(emoji, emoji.strip(":"))
            return method, {"channel": channel, "timestamp": message_of(outgoing.message_ref), "name": name}
        case _:
            assert_never(outgoing.operation)


def thread_of(address: Address) -> dict[str, Any]:
    """The thread that a message belongs to."""
    return {} if address.thread_id is None else {"thread_ts": address.thread_id}


def message_of(ref: str | None) -> str:
    """The message's ts; references may carry the channel before a colon. Raises Poison."""
    ts = (ref or "").rpartition(":")[2]
    if not is_stamp(ts):
        raise Poison(f"not a message of this platform: {ref!r}")
    return ts


def with_buttons(
    parts: tuple[OutgoingPart, ...], options: Sequence[tuple[str, str]]
) -> tuple[OutgoingPart, ...]:
    """``parts`` with a button for each (label, data) under the last one, at most 25.

    A press arrives as a ButtonEvent with that data. Raises Poison for data of more than 2,000 characters.
    """
    buttons: list[dict[str, Any]] = []
    for at, (label, data) in enumerate(options[:BUTTONS]):
        if not 1 <= len(data) <= BUTTON_DATA:
            raise Poison(f"a button's data has 1 to {BUTTON_DATA} characters")
        shown = {"type": "plain_text", "text": (label or data)[:BUTTON_LABEL], "emoji": False}
        buttons.append({"type": "button", "action_id": f"{ACTION}.{at}", "text": shown, "value": data})
    if not parts or not buttons:
        return parts
    last = json.dumps(json.loads(parts[-1].payload) | {"buttons": buttons}, ensure_ascii=False)
    return (*parts[:-1], OutgoingPart(last))


def nonce_of(message: Mapping[str, Any]) -> str | None:
    """The nonce that a message of ours carries."""
    metadata = message.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("event_type") != METADATA:
        return None
    payload = metadata.get("event_payload")
    nonce = payload.get("nonce") if isinstance(payload, Mapping) else None
    return nonce if isinstance(nonce, str) else None


def _payload(outgoing: Outgoing) -> dict[str, Any]:
    try:
        payload = json.loads(outgoing.payload)
    except (ValueError, RecursionError) as error:
        raise Poison(f"not a payload of this platform: {type(error).__name__}") from None
    if not isinstance(payload, dict):
        raise Poison(f"not a payload of this platform: {type(payload).__name__}")
    return payload


def _content(outgoing: Outgoing) -> dict[str, Any]:
    """Text, and under it the buttons where there are any: then both are blocks, and the text is what notifications
    show."""
    payload = _payload(outgoing)
    text, buttons, blocks = payload.get("text"), payload.get("buttons"), payload.get("blocks")
    if not isinstance(text, str):
        raise Poison("not a payload of this platform: no text")
    if outgoing.plain:
        text = escaped(str(payload.get("plain") or text))
    if outgoing.marked:
        text = MARK_PREFIX + text
    content: dict[str, Any] = {"text": text, "mrkdwn": not outgoing.plain}
    if blocks and not outgoing.plain:
        content["blocks"] = [*(with_mark(blocks) if outgoing.marked else blocks), *_below(buttons)]
    elif buttons and not outgoing.plain:
        sections = [
            {"type": "section", "text": {"type": "mrkdwn", "text": text[at : at + SECTION], "verbatim": True}}
            for at in range(0, len(text), SECTION)
        ]
        content["blocks"] = [*sections, *_below(buttons)]
    elif buttons:
        content["blocks"] = [
            {"type": "section", "text": {"type": "plain_text", "text": str(payload.get("plain") or text)[:SECTION]}},
            *_below(buttons),
        ]
    return content


def _below(buttons: Any) -> list[dict[str, Any]]:
    return [{"type": "actions", "elements": buttons}] if buttons else []
