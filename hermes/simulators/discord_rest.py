"""The routes of Discord's REST API: each checks its request as Discord does and changes the world."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hermes.simulators.discord_world import (
    NONCE_WINDOW,
    UNKNOWN_MESSAGE,
    Channel,
    Refusal,
    SeenMessage,
    World,
    form_error,
    iso,
    person,
    snowflake_time,
)

__all__ = ["ROUTES", "Request", "Tell"]

TEXT_LIMIT = 2000
NONCE_LIMIT = 25
INTERACTION_SECONDS = 3.0
Tell: TypeAlias = Callable[[str, Channel, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What a call says: the body, parts of the path, the query, uploaded files."""

    body: dict[str, Any]
    path: Mapping[str, str]
    query: Mapping[str, str]
    files: Mapping[str, tuple[str, str, bytes]] = field(default_factory=dict)
    base: str = ""

    def number(self, name: str) -> int:
        """A part of the path as a snowflake. Raises Refusal."""
        value = self.path[name]
        if not value.isdigit():
            raise form_error(name, "NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.')
        return int(value)


def me(world: World, request: Request, tell: Tell) -> Any:
    return world.bot


def application(world: World, request: Request, tell: Tell) -> Any:
    return {"id": world.bot["id"], "name": "Simulated", "flags": 1 << 19, "bot_public": True}


def get_channel(world: World, request: Request, tell: Tell) -> Any:
    return world.channel(request.number("channel")).as_json()


def get_member(world: World, request: Request, tell: Tell) -> Any:
    guild, user = request.number("guild"), request.number("user")
    if guild not in world.guilds:
        raise Refusal(404, 10004, "Unknown Guild")
    return {"user": person(user), "nick": None, "roles": world.roles.get(user, [])}


def open_dm(world: World, request: Request, tell: Tell) -> Any:
    user = int(request.body.get("recipient_id", 0))
    for channel in world.channels.values():
        if channel.user == user:
            return channel.as_json()
    channel = world.channels[user] = Channel(user, 1, user=user)
    return channel.as_json()


def history(world: World, request: Request, tell: Tell) -> Any:
    """Newest first, whatever was asked; with `after` the oldest ones that follow it."""
    channel = world.channel(request.number("channel"))
    limit = int(request.query.get("limit", 50))
    if not 1 <= limit <= 100:
        raise form_error("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
    after, before = request.query.get("after"), request.query.get("before")
    numbers = sorted(
        n for n in channel.messages if n > int(after or 0) and (before is None or n < int(before))
    )
    chosen = numbers[:limit] if after is not None else numbers[-limit:]
    return [_fresh(world, channel, n, request.base) for n in reversed(chosen)]


def one_message(world: World, request: Request, tell: Tell) -> Any:
    channel, number = world.channel(request.number("channel")), request.number("message")
    if number not in channel.messages:
        raise UNKNOWN_MESSAGE
    return _fresh(world, channel, number, request.base)


def _fresh(world: World, channel: Channel, number: int, base: str) -> dict[str, Any]:
    """The message with addresses of its files that are valid from now on."""
    message = channel.messages[number]
    files = message["attachments"]
    if not isinstance(files, list) or not files:
        return message
    return message | {"attachments": [f | world.addresses(channel.id, int(f["id"]), base) for f in files]}


def create(world: World, request: Request, tell: Tell) -> Any:
    channel, body = world.channel(request.number("channel")), request.body
    _check(body, bool(request.files))
    nonce = body.get("nonce")
    if nonce is not None and len(str(nonce)) > NONCE_LIMIT:
        raise form_error("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    if nonce is not None and body.get("enforce_nonce") is True:
        made = world.nonces.get(str(nonce))
        if made is not None and time.monotonic() - made[0] < NONCE_WINDOW:
            return world.channels[made[1]].messages[made[2]]
    number = world.new_id()
    message = {
        "id": str(number), "channel_id": str(channel.id), "author": world.bot, "content": body.get("content") or "",
        "timestamp": iso(snowflake_time(number)), "edited_timestamp": None, "type": 0, "tts": False, "pinned": False,
        "mention_everyone": False, "mentions": [], "mention_roles": [], "embeds": [],
        "components": body.get("components") or [], "flags": body.get("flags", 0),
        "attachments": [world.attachment(channel.id, *f, request.base) for f in request.files.values()],
    }  # fmt: skip
    reply_to = _reference(channel, body)
    if reply_to is not None:
        message |= {"type": 19, "message_reference": {"message_id": str(reply_to)}}
        message["referenced_message"] = channel.messages[reply_to]
    channel.messages[number] = message
    channel.sent[number] = SeenMessage(
        number, message["content"], reply_to=reply_to, sent_at=time.monotonic(), components=message["components"],
        attachments=[f[0] for f in request.files.values()], nonce=None if nonce is None else str(nonce),
    )  # fmt: skip
    if nonce is not None:
        world.nonces[str(nonce)] = (time.monotonic(), channel.id, number)
    answer = message | ({"nonce": nonce} if nonce is not None else {})
    tell("MESSAGE_CREATE", channel, answer)
    return answer


def _reference(channel: Channel, body: Mapping[str, Any]) -> int | None:
    named = body.get("message_reference")
    if not isinstance(named, dict):
        return None
    number = int(named.get("message_id", 0))
    if number in channel.messages:
        return number
    if named.get("fail_if_not_exists", True):
        raise form_error("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
    return None


def edit(world: World, request: Request, tell: Tell) -> Any:
    channel, number = world.channel(request.number("channel")), request.number("message")
    seen = world.own(channel.id, number)
    if seen is None:
        if number in channel.messages:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        raise UNKNOWN_MESSAGE
    _check(request.body, bool(request.files))
    message = channel.messages[number]
    message |= {k: request.body[k] for k in ("content", "components", "flags") if k in request.body}
    message["edited_timestamp"] = iso(time.time())
    seen.edits.append(seen.text)
    seen.text, seen.components = message["content"], message["components"]
    tell("MESSAGE_UPDATE", channel, message)
    return message


def delete(world: World, request: Request, tell: Tell) -> Any:
    channel, number = world.channel(request.number("channel")), request.number("message")
    seen = world.own(channel.id, number)
    if seen is None:
        raise UNKNOWN_MESSAGE
    seen.deleted = True
    del channel.messages[number]
    tell("MESSAGE_DELETE", channel, {"id": str(number), "channel_id": str(channel.id)})
    return None


def typing(world: World, request: Request, tell: Tell) -> Any:
    world.typing.append(world.channel(request.number("channel")).id)


def react(world: World, request: Request, tell: Tell) -> Any:
    channel, number = world.channel(request.number("channel")), request.number("message")
    if number not in channel.messages:
        raise UNKNOWN_MESSAGE
    world.reactions.setdefault((channel.id, number), []).append(request.path["emoji"])


def unreact(world: World, request: Request, tell: Tell) -> Any:
    found = world.reactions.get((request.number("channel"), request.number("message")), [])
    if request.path["emoji"] in found:
        found.remove(request.path["emoji"])


def callback(world: World, request: Request, tell: Tell) -> Any:
    number, token = request.path["interaction"], request.path["token"]
    opened = world.interactions.get(number)
    if opened is None or opened[1] != token or time.monotonic() - opened[0] > INTERACTION_SECONDS:
        raise Refusal(404, 10062, "Unknown interaction")
    if number in world.answered:
        raise Refusal(400, 40060, "Interaction has already been acknowledged.")
    if request.body.get("type") not in (1, 4, 5, 6, 7, 8, 9):
        raise form_error("type", "BASE_TYPE_CHOICES", "Value must be one of (1, 4, 5, 6, 7, 8, 9).")
    world.answered[number] = request.body


def read_commands(world: World, request: Request, tell: Tell) -> Any:
    return world.commands


def write_commands(world: World, request: Request, tell: Tell) -> Any:
    given = request.body.get("", [])
    if len(given) > 100:
        raise form_error("_", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
    for command in given:
        name, text = str(command.get("name", "")), str(command.get("description", ""))
        if not 1 <= len(name) <= 32 or name != name.lower() or not name.replace("-", "").replace("_", "").isalnum():
            raise form_error("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
        if not 1 <= len(text) <= 100:
            raise form_error("description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    world.command_writes += 1
    world.commands = [c | {"id": str(world.new_id()), "version": "1"} for c in given]
    return world.commands


def _check(body: Mapping[str, Any], files: bool) -> None:
    """What a message may hold."""
    content = body.get("content")
    if content is not None and (not isinstance(content, str) or len(content) > TEXT_LIMIT):
        raise form_error("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
    if not (content or "").strip() and not files and "components" not in body:
        raise Refusal(400, 50006, "Cannot send an empty message")
    rows = body.get("components") or []
    if len(rows) > 5:
        raise form_error("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    for row in rows:
        buttons = row.get("components", [])
        names = [button.get("custom_id", "") for button in buttons]
        if row.get("type") != 1 or not 1 <= len(buttons) <= 5 or len(set(names)) < len(names):
            raise form_error("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
        if any(not 1 <= len(n) <= 100 or len(b.get("label", "")) > 80 for n, b in zip(names, buttons, strict=True)):
            raise form_error("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")


Method: TypeAlias = Callable[[World, Request, Tell], Any]
_MESSAGE = "channels/{channel}/messages/{message}"
ROUTES: dict[tuple[str, str], tuple[str, Method]] = {
    ("GET", "users/@me"): ("me", me),
    ("GET", "applications/@me"): ("application", application),
    ("GET", "oauth2/applications/@me"): ("application", application),
    ("POST", "users/@me/channels"): ("open_dm", open_dm),
    ("GET", "channels/{channel}"): ("channel", get_channel),
    ("GET", "guilds/{guild}/members/{user}"): ("member", get_member),
    ("GET", "channels/{channel}/messages"): ("history", history),
    ("POST", "channels/{channel}/messages"): ("create", create),
    ("GET", _MESSAGE): ("message", one_message),
    ("PATCH", _MESSAGE): ("edit", edit),
    ("DELETE", _MESSAGE): ("delete", delete),
    ("POST", "channels/{channel}/typing"): ("typing", typing),
    ("PUT", _MESSAGE + "/reactions/{emoji}/@me"): ("react", react),
    ("DELETE", _MESSAGE + "/reactions/{emoji}/@me"): ("unreact", unreact),
    ("POST", "interactions/{interaction}/{token}/callback"): ("callback", callback),
    ("GET", "applications/{application}/commands"): ("commands", read_commands),
    ("PUT", "applications/{application}/commands"): ("set_commands", write_commands),
}
"""Method and path to the name under which calls are counted and faults ordered, and what is done."""
LIMITED = frozenset({"create", "edit"})


def read_body(text: str) -> dict[str, Any]:
    """The JSON body as an object; a list stands under an empty name. Raises ValueError."""
    found = json.loads(text or "{}")
    if isinstance(found, list):
        return {"": found}
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found
