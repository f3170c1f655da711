"""The methods of the Bot API: each checks its parameters as Telegram does and changes the world."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hermes.simulators.telegram_text import TextError, read_text, utf16
from hermes.simulators.telegram_world import Draft, Refusal, SeenMessage, World

__all__ = ["METHODS", "Params"]

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
_NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the "
    "same as a current content and reply markup of the message"
)
FILE_LIMIT = 20 * 1024 * 1024
ACTIONS = frozenset({
    "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
    "choose_sticker", "find_location", "record_video_note", "upload_video_note",
})  # fmt: skip


class Params:
    """The parameters of a call, whatever encoding they came in."""

    def __init__(self, values: Mapping[str, Any], files: Mapping[str, tuple[str, bytes]]) -> None:
        self.values, self.files = dict(values), dict(files)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            return int(value)
        except (TypeError, ValueError):
            raise Refusal(400, f"Bad Request: invalid {name} specified") from None

    def chat(self) -> int:
        if not self.text("chat_id"):
            raise Refusal(400, "Bad Request: chat_id is empty")
        try:
            return int(self.values["chat_id"])
        except (TypeError, ValueError):
            raise Refusal(400, "Bad Request: chat not found") from None

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "1")

    def data(self, name: str, kind: type[Any]) -> Any:
        """A nested value, which forms carry as JSON. Raises Refusal if it has another type."""
        value = self.values.get(name)
        if isinstance(value, str):
            if not value:
                return None
            try:
                value = json.loads(value)
            except ValueError:
                raise Refusal(400, f"Bad Request: can't parse {name} JSON object") from None
        if value is not None and not isinstance(value, kind):
            raise Refusal(400, f"Bad Request: can't parse {name}: wrong type")
        return value


Method: TypeAlias = Callable[[World, Params, dict[str, Any]], Any]


def _read(
    params: Params, body: str, marks: str, limit: int, too_long: str
) -> tuple[str, list[dict[str, Any]]]:
    try:
        text, entities = read_text(
            params.text(body), parse_mode=params.text("parse_mode"), entities=params.data(marks, list)
        )
    except TextError as error:
        raise Refusal(400, f"Bad Request: {error}") from None
    if utf16(text) > limit:
        raise Refusal(400, f"Bad Request: {too_long}")
    return text, entities


def _place(world: World, params: Params) -> tuple[int, int | None, int | None]:
    """Chat, thread and the message answered to, all of which must exist."""
    chat = params.chat()
    world.require_chat(chat)
    thread = params.number("message_thread_id")
    if thread is not None and thread not in world.threads.get(chat, ()):
        raise Refusal(400, "Bad Request: message thread not found")
    reply = params.data("reply_parameters", dict) or {}
    reply_to = reply.get("message_id", params.number("reply_to_message_id"))
    if reply_to is not None and not world.exists(int(reply.get("chat_id", chat)), int(reply_to)):
        if not (reply.get("allow_sending_without_reply") or params.flag("allow_sending_without_reply")):
            raise Refusal(400, "Bad Request: message to be replied not found")
        reply_to = None
    return chat, thread, None if reply_to is None else int(reply_to)


def _markup(params: Params) -> dict[str, Any] | None:
    markup: dict[str, Any] | None = params.data("reply_markup", dict)
    for row in (markup or {}).get("inline_keyboard", []):
        for button in row:
            data = button.get("callback_data")
            if data is not None and not 1 <= len(data.encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return markup


def _post(world: World, params: Params, bot: dict[str, Any], kind: str) -> dict[str, Any]:
    chat, thread, reply_to = _place(world, params)
    if kind == "text":
        text, entities = _read(params, "text", "entities", TEXT_LIMIT, "message is too long")
        if not text:
            raise Refusal(400, "Bad Request: message text is empty")
    else:
        text, entities = _read(
            params, "caption", "caption_entities", CAPTION_LIMIT, "message caption is too long"
        )
    markup = _markup(params)
    attached = _attachment(world, params, kind)
    if world.flood is not None:
        world.flood.take(chat, time.monotonic())
    seen = SeenMessage(
        world.new_message_id(chat),
        text,
        reply_to=reply_to,
        thread=thread,
        sent_at=time.monotonic(),
        kind=kind,
        entities=entities,
        markup=markup,
        attachment=None if attached is None else world.files[attached][0],
    )
    world.sent.setdefault(chat, {})[seen.message_id] = seen
    return world.message_object(chat, seen, bot) | _media(world, kind, attached)


def _attachment(world: World, params: Params, kind: str) -> str | None:
    if kind == "text":
        return None
    given = params.text(kind)
    name = given.removeprefix("attach://") if given.startswith("attach://") else kind
    if name in params.files:
        file_name, data = params.files[name]
        if not data:
            raise Refusal(400, "Bad Request: file must be non-empty")
        file_id = f"{kind}-{len(world.files) + 1}"
        world.files[file_id] = (file_name, data)
        return file_id
    if not given:
        raise Refusal(400, f"Bad Request: there is no {kind} in the request")
    if given not in world.files:
        raise Refusal(400, "Bad Request: wrong file identifier/HTTP URL specified")
    return given


def _media(world: World, kind: str, file_id: str | None) -> dict[str, Any]:
    if file_id is None:
        return {}
    name, data = world.files[file_id]
    base = {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": len(data)}
    if kind == "photo":
        return {"photo": [{**base, "width": 640, "height": 480}]}
    if kind == "document":
        return {"document": {**base, "file_name": name}}
    return {kind: {**base, "duration": 1}}


def _send(kind: str) -> Method:
    return lambda world, params, bot: _post(world, params, bot, kind)


def _edit_text(world: World, params: Params, bot: dict[str, Any]) -> dict[str, Any]:
    return _edit(world, params, bot, "text", "entities", TEXT_LIMIT, "message is too long")


def _edit_caption(world: World, params: Params, bot: dict[str, Any]) -> dict[str, Any]:
    return _edit(
        world, params, bot, "caption", "caption_entities", CAPTION_LIMIT, "message caption is too long"
    )


def _edit(
    world: World, params: Params, bot: dict[str, Any], body: str, marks: str, limit: int, too_long: str
) -> dict[str, Any]:
    chat = params.chat()
    world.require_chat(chat)
    message_id = params.number("message_id")
    if message_id is None:
        raise Refusal(400, "Bad Request: message identifier is not specified")
    seen = world.own(chat, message_id)
    if seen is None:
        if message_id in world.heard.get(chat, {}):
            raise Refusal(400, "Bad Request: message can't be edited")
        raise Refusal(400, "Bad Request: message to edit not found")
    text, entities = _read(params, body, marks, limit, too_long)
    if body == "text" and seen.kind != "text":
        raise Refusal(400, "Bad Request: there is no text in the message to edit")
    if body == "text" and not text:
        raise Refusal(400, "Bad Request: message text is empty")
    markup = _markup(params)
    if (text, entities, markup) == (seen.text, seen.entities, seen.markup):
        raise Refusal(400, _NOT_MODIFIED)
    if world.flood is not None:
        world.flood.take(chat, time.monotonic())
    if text != seen.text:
        seen.edits.append(text)
    seen.text, seen.entities, seen.markup = text, entities, markup
    return world.message_object(chat, seen, bot)


def _edit_markup(world: World, params: Params, bot: dict[str, Any]) -> dict[str, Any]:
    chat = params.chat()
    world.require_chat(chat)
    seen = world.own(chat, params.number("message_id") or 0)
    if seen is None:
        raise Refusal(400, "Bad Request: message to edit not found")
    markup = _markup(params)
    if world.flood is not None:
        world.flood.heed(chat, time.monotonic())
    if markup == seen.markup:
        raise Refusal(400, _NOT_MODIFIED)
    seen.markup = markup
    return world.message_object(chat, seen, bot)


def _delete(world: World, params: Params, bot: dict[str, Any]) -> bool:
    chat = params.chat()
    world.require_chat(chat)
    message_id = params.number("message_id") or 0
    seen = world.own(chat, message_id)
    if seen is not None:
        seen.deleted = True
    elif message_id in world.heard.get(chat, {}):
        del world.heard[chat][message_id]
    else:
        raise Refusal(400, "Bad Request: message to delete not found")
    return True


def _action(world: World, params: Params, bot: dict[str, Any]) -> bool:
    chat, thread, _ = _place(world, params)
    action = params.text("action")
    if action not in ACTIONS:
        raise Refusal(400, "Bad Request: wrong parameter action in request")
    if world.flood is not None:
        world.flood.heed(chat, time.monotonic())
    world.actions.append((chat, action, thread))
    return True


def _draft(world: World, params: Params, bot: dict[str, Any]) -> bool:
    chat, thread, _ = _place(world, params)
    if world.chat_object(chat)["type"] != "private":
        raise Refusal(400, "Bad Request: chat is not a private chat")
    draft_id = params.number("draft_id")
    if not draft_id:
        raise Refusal(400, "Bad Request: invalid draft_id specified")
    text, _ = _read(params, "text", "entities", TEXT_LIMIT, "message is too long")
    world.drafts.append(Draft(chat, draft_id, text, thread, time.monotonic()))
    return True


def _reaction(world: World, params: Params, bot: dict[str, Any]) -> bool:
    chat = params.chat()
    world.require_chat(chat)
    message_id = params.number("message_id") or 0
    if not world.exists(chat, message_id):
        raise Refusal(400, "Bad Request: message to react not found")
    if world.flood is not None:
        world.flood.heed(chat, time.monotonic())
    reaction = params.data("reaction", list) or []
    if len(reaction) > 1:
        raise Refusal(400, "Bad Request: REACTIONS_TOO_MANY")
    world.reactions[chat, message_id] = reaction
    return True


def _commands(world: World, params: Params, bot: dict[str, Any]) -> bool:
    commands = params.data("commands", list)
    if commands is None:
        raise Refusal(400, "Bad Request: can't parse list of bot commands: expected an Array")
    if len(commands) > 100:
        raise Refusal(400, "Bad Request: BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        name = str(command.get("command", "")).removeprefix("/")
        if not (1 <= len(name) <= 32 and name.replace("_", "a").isalnum() and name == name.lower()):
            raise Refusal(400, "Bad Request: BOT_COMMAND_INVALID")
        if not command.get("description"):
            raise Refusal(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands = commands
    return True


def _file(world: World, params: Params, bot: dict[str, Any]) -> dict[str, Any]:
    file_id = params.text("file_id")
    if file_id not in world.files:
        raise Refusal(400, "Bad Request: invalid file_id")
    name, data = world.files[file_id]
    if len(data) > FILE_LIMIT:
        raise Refusal(400, "Bad Request: file is too big")
    return {
        "file_id": file_id,
        "file_unique_id": f"u-{file_id}",
        "file_size": len(data),
        "file_path": f"files/{file_id}/{name}",
    }


def _chat(world: World, params: Params, bot: dict[str, Any]) -> dict[str, Any]:
    chat = params.chat()
    world.require_chat(chat)
    gifts = (
        "unlimited_gifts",
        "limited_gifts",
        "unique_gifts",
        "premium_subscription",
        "gifts_from_channels",
    )
    return {
        **world.chat_object(chat),
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, False),
    }


def _callback(world: World, params: Params, bot: dict[str, Any]) -> bool:
    query = params.text("callback_query_id")
    if query not in world.open_callbacks:
        raise Refusal(
            400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
        )
    world.open_callbacks.discard(query)
    world.answered_callbacks[query] = params.values
    return True


def _set_webhook(world: World, params: Params, bot: dict[str, Any]) -> bool:
    world.webhook = params.text("url")
    return _drop_pending(world, params)


def _delete_webhook(world: World, params: Params, bot: dict[str, Any]) -> bool:
    world.webhook = ""
    return _drop_pending(world, params)


def _drop_pending(world: World, params: Params) -> bool:
    if params.flag("drop_pending_updates"):
        world.pending.clear()
    return True


METHODS: dict[str, Method] = {
    "getme": lambda world, params, bot: {
        **bot,
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
    },
    "setwebhook": _set_webhook,
    "deletewebhook": _delete_webhook,
    "getwebhookinfo": lambda world, params, bot: {
        "url": world.webhook,
        "has_custom_certificate": False,
        "pending_update_count": len(world.pending),
    },
    "sendmessage": _send("text"),
    "sendphoto": _send("photo"),
    "senddocument": _send("document"),
    "sendvoice": _send("voice"),
    "sendaudio": _send("audio"),
    "editmessagetext": _edit_text,
    "editmessagecaption": _edit_caption,
    "editmessagereplymarkup": _edit_markup,
    "deletemessage": _delete,
    "sendchataction": _action,
    "sendmessagedraft": _draft,
    "setmessagereaction": _reaction,
    "setmycommands": _commands,
    "getmycommands": lambda world, params, bot: world.commands,
    "getfile": _file,
    "getchat": _chat,
    "answercallbackquery": _callback,
}
"""By lower-case name; getUpdates and the files are the server's own."""
