"""The methods of the Web API that bots use, with Slack's own refusals."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from hermes.simulators.slack_text import BlockError, read_blocks
from hermes.simulators.slack_world import BOT, BOT_USER, TEAM, Channel, Refusal, SeenMessage, World, order

__all__ = ["METHODS", "Method", "plain"]

Told: TypeAlias = Callable[[str, Channel, dict[str, Any]], None]
"""Tells the app of an event: type, channel, event."""
Method: TypeAlias = Callable[[World, Mapping[str, Any], Told, str], dict[str, Any]]

TEXT_LIMIT, BLOCKS, SECTION, ELEMENTS = 40_000, 50, 3_000, 25
_BLOCKS = {"section", "actions", "divider", "header", "context", "rich_text", "image", "markdown"}
_HISTORY = {"im": "im:history", "mpim": "mpim:history", "group": "groups:history", "channel": "channels:history"}


def plain(text: str) -> str:
    """``text`` with its entities undone."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def auth_test(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    return {"url": "https://sim.slack.com/", "team": "Sim", "user": "hermes", "team_id": TEAM, "user_id": BOT_USER,
            "bot_id": BOT, "is_enterprise_install": False}  # fmt: skip


def post_message(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    world.need("chat:write")
    channel = _writable(world, given)
    text, blocks = _content(given)
    thread = given.get("thread_ts")
    if thread is not None and thread not in channel.messages:
        raise Refusal("thread_not_found")
    metadata = _metadata(given.get("metadata"))
    _count(world, channel)
    ts = world.new_ts()
    seen = SeenMessage(
        ts, plain(text), thread=thread, blocks=blocks, metadata=metadata, mrkdwn=given.get("mrkdwn") is not False,
        sent_at=time.monotonic(),
    )  # fmt: skip
    world.sent.setdefault(channel.id, {})[ts] = seen
    message: dict[str, Any] = {"type": "message", "user": BOT_USER, "bot_id": BOT, "text": text, "ts": ts, "team": TEAM}
    if blocks:
        message["blocks"] = blocks
    if thread is not None:
        message["thread_ts"] = thread
        _grow(channel.messages[thread], ts)
    channel.messages[ts] = message | ({"metadata": metadata} if metadata else {})
    tell("message", channel, message)
    return {"channel": channel.id, "ts": ts, "message": message}


def _grow(parent: dict[str, Any], ts: str) -> None:
    parent["reply_count"] = parent.get("reply_count", 0) + 1
    parent["latest_reply"] = ts
    parent["thread_ts"] = parent["ts"]


def update(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    world.need("chat:write")
    channel = _writable(world, given)
    ts = str(given.get("ts"))
    seen = world.sent.get(channel.id, {}).get(ts)
    if seen is None or seen.deleted:
        raise Refusal("cant_update_message" if ts in channel.messages else "message_not_found")
    text, blocks = _content(given)
    _count(world, channel)
    seen.text, seen.blocks = plain(text), blocks
    seen.edits.append(seen.text)
    edited = {"user": BOT_USER, "ts": world.new_ts()}
    channel.messages[ts] |= {"text": text, "edited": edited}
    changed = {k: v for k, v in channel.messages[ts].items() if k != "metadata"}
    tell("message", channel, {"subtype": "message_changed", "message": changed, "ts": world.new_ts(), "hidden": True})
    return {"channel": channel.id, "ts": ts, "text": text}


def delete(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    channel, ts = world.channel(given.get("channel")), str(given.get("ts"))
    seen = world.sent.get(channel.id, {}).get(ts)
    if seen is None or seen.deleted:
        raise Refusal("message_not_found")
    seen.deleted = True
    channel.messages.pop(ts, None)
    return {"channel": channel.id, "ts": ts}


def history(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    channel = world.channel(given.get("channel"))
    world.need(_HISTORY[channel.kind])
    if not channel.member and channel.kind != "im":
        raise Refusal("not_in_channel")
    found = [m for m in channel.messages.values() if m.get("thread_ts", m["ts"]) == m["ts"]]
    return _page(found, given, newest_first=True)


def replies(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    channel, thread = world.channel(given.get("channel")), str(given.get("ts"))
    world.need(_HISTORY[channel.kind])
    if thread not in channel.messages:
        raise Refusal("thread_not_found")
    found = [m for m in channel.messages.values() if m.get("thread_ts") == thread and m["ts"] != thread]
    answer = _page(found, given, newest_first=False)
    if not given.get("cursor"):
        answer["messages"] = [_told(channel.messages[thread], given), *answer["messages"]]
    return answer


def _page(messages: Sequence[dict[str, Any]], given: Mapping[str, Any], *, newest_first: bool) -> dict[str, Any]:
    oldest, limit = order(str(given.get("oldest") or "0.0")), min(int(given.get("limit") or 100), 999)
    inside = [m for m in messages if order(m["ts"]) > oldest]
    inside.sort(key=lambda m: order(m["ts"]), reverse=newest_first)
    start = int(str(given.get("cursor") or "at:0").removeprefix("at:"))
    page, left = inside[start : start + limit], len(inside) > start + limit
    answer: dict[str, Any] = {"messages": [_told(m, given) for m in page], "has_more": left}
    if left:
        answer["response_metadata"] = {"next_cursor": f"at:{start + limit}"}
    return answer


def _told(message: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    wanted = str(given.get("include_all_metadata", "")).lower() in ("true", "1")
    return dict(message) if wanted else {k: v for k, v in message.items() if k != "metadata"}


def conversations(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    kinds = {"public_channel": "channel", "private_channel": "group", "mpim": "mpim", "im": "im"}
    wanted = {kinds.get(name) for name in str(given.get("types") or "public_channel").split(",")}
    found = [c.as_json() for c in world.channels.values() if c.kind in wanted and c.member and not c.archived]
    start, limit = int(str(given.get("cursor") or "at:0").removeprefix("at:")), int(given.get("limit") or 100)
    following = f"at:{start + limit}" if len(found) > start + limit else ""
    return {"channels": found[start : start + limit], "response_metadata": {"next_cursor": following}}


def info(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    return {"channel": world.channel(given.get("channel")).as_json()}


def open_im(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    user = str(given.get("users") or "")
    known = next((c for c in world.channels.values() if c.kind == "im" and c.user == user), None)
    if known is None:
        raise Refusal("user_not_found")
    return {"channel": {"id": known.id}}


def file_info(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    world.need("files:read")
    found = world.files.get(str(given.get("file")))
    if found is None:
        raise Refusal("file_not_found")
    address = f"{url}/files-pri/{found[0]['id']}/{found[0]['name']}"
    return {"file": {**found[0], "url_private": address, "url_private_download": address}}


def upload_url(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    world.need("files:write")
    name = f"FUP{len(world.uploads) + 1}"
    world.uploads[name] = None
    return {"upload_url": f"{url}/upload/v1/{name}", "file_id": name}


def complete_upload(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    files = given.get("files")
    files = json.loads(files) if isinstance(files, str) else files or []
    if not files or any(world.uploads.get(one.get("id")) is None for one in files):
        raise Refusal("file_not_found")
    channel = _writable(world, {"channel": given.get("channel_id")})
    ts = world.new_ts()
    text = "\n".join([str(given.get("initial_comment") or ""), *(f"[{one.get('title')}]" for one in files)]).strip()
    thread = given.get("thread_ts")
    world.sent.setdefault(channel.id, {})[ts] = SeenMessage(ts, text, thread=thread, sent_at=time.monotonic())
    channel.messages[ts] = {
        "type": "message", "user": BOT_USER, "bot_id": BOT, "text": text, "ts": ts,
        "files": [{"id": one["id"], "name": one.get("title")} for one in files],
        **({"thread_ts": thread} if thread else {}),
    }  # fmt: skip
    return {"files": [{"id": one["id"], "title": one.get("title")} for one in files]}


def user_info(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    world.need("users:read")
    user = str(given.get("user"))
    if not user.startswith("U"):
        raise Refusal("user_not_found")
    shown = user[:1] + user[1:].lstrip("0")
    profile = {"display_name": shown, "real_name": f"{shown} Real"}
    return {"user": {"id": user, "name": user.lower(), "profile": profile}}


def post_ephemeral(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    world.need("chat:write")
    channel = _writable(world, given)
    text, _ = _content(given)
    world.whispers.append((channel.id, str(given.get("user")), plain(text)))
    return {"message_ts": world.new_ts()}


def react(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    channel, ts, name = world.channel(given.get("channel")), str(given.get("timestamp")), str(given.get("name"))
    if ts not in channel.messages:
        raise Refusal("message_not_found")
    on = channel.messages[ts].setdefault("hermes_reactions", [])
    if name in on:
        raise Refusal("already_reacted")
    on.append(name)
    return {}


def unreact(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    channel, ts, name = world.channel(given.get("channel")), str(given.get("timestamp")), str(given.get("name"))
    on = channel.messages.get(ts, {}).get("hermes_reactions", [])
    if name not in on:
        raise Refusal("no_reaction")
    on.remove(name)
    return {}


def set_status(world: World, given: Mapping[str, Any], tell: Told, url: str) -> dict[str, Any]:
    channel = world.channel(given.get("channel_id"))
    world.statuses.append((channel.id, str(given.get("thread_ts")), str(given.get("status"))))
    return {}


def _writable(world: World, given: Mapping[str, Any]) -> Channel:
    channel = world.channel(given.get("channel"))
    if channel.archived:
        raise Refusal("is_archived")
    if not channel.member and channel.kind != "im":
        raise Refusal("not_in_channel")
    return channel


def _count(world: World, channel: Channel) -> None:
    if world.flood is not None:
        world.flood.take(channel.id, time.monotonic())


def _content(given: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    text, blocks = given.get("text"), given.get("blocks") or []
    if isinstance(blocks, str):
        try:
            blocks = json.loads(blocks)
        except ValueError:
            raise Refusal("invalid_blocks_format") from None
    if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
        raise Refusal("invalid_blocks_format")
    for one in blocks:
        _check(one)
    try:
        read_blocks(blocks)
    except BlockError as wrong:
        raise Refusal(wrong.error, response_metadata={"messages": [f"[ERROR] {wrong}"]}) from None
    if len(blocks) > BLOCKS:
        told = [f"[ERROR] no more than {BLOCKS} items allowed"]
        raise Refusal("invalid_blocks", response_metadata={"messages": told})
    if not blocks and (not isinstance(text, str) or not text.strip()):
        raise Refusal("no_text")
    if isinstance(text, str) and len(text) > TEXT_LIMIT:
        raise Refusal("msg_too_long")
    return str(text or ""), blocks


def _check(block: dict[str, Any]) -> None:
    kind, text = block.get("type"), block.get("text")
    if kind not in _BLOCKS:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] unsupported type: {kind}"]})
    if kind == "section" and not block.get("fields"):
        shown = text.get("text") if isinstance(text, dict) else None
        if not isinstance(shown, str) or not 1 <= len(shown) <= SECTION:
            raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] text of a section: 1 to 3000"]})
    if kind == "actions":
        elements = block.get("elements")
        if not isinstance(elements, list) or not 1 <= len(elements) <= ELEMENTS:
            raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] elements: 1 to 25"]})
        names = [one.get("action_id") for one in elements]
        if len(set(names)) < len(names):
            raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] action_id already exists"]})


def _metadata(given: object) -> dict[str, Any] | None:
    if given is None:
        return None
    found = json.loads(given) if isinstance(given, str) else given
    if not isinstance(found, dict) or not isinstance(found.get("event_type"), str):
        raise Refusal("invalid_metadata_format")
    if not isinstance(found.get("event_payload"), dict):
        raise Refusal("invalid_metadata_format")
    return found


METHODS: Mapping[str, Method] = {
    "auth.test": auth_test,
    "chat.postMessage": post_message,
    "chat.postEphemeral": post_ephemeral,
    "chat.update": update,
    "chat.delete": delete,
    "conversations.history": history,
    "conversations.replies": replies,
    "conversations.list": conversations,
    "users.conversations": conversations,
    "conversations.info": info,
    "conversations.open": open_im,
    "files.info": file_info,
    "files.getUploadURLExternal": upload_url,
    "files.completeUploadExternal": complete_upload,
    "users.info": user_info,
    "reactions.add": react,
    "reactions.remove": unreact,
    "assistant.threads.setStatus": set_status,
}
