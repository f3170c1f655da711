"""The people on the other side: what they write, edit, press and command, and how channels end."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.simulators.slack_socket import Outbound
from hermes.simulators.slack_world import APP, BOT, BOT_USER, TEAM, Channel, Refusal, World

__all__ = ["SlackUser", "channel_id", "user_id"]


def channel_id(chat: object) -> str:
    """A number is the direct messages of the user of that number; anything else is a channel's id."""
    return f"D{int(str(chat)):04d}" if isinstance(chat, int) or str(chat).isdigit() else str(chat)


def user_id(user: object) -> str:
    """The id of a user by number."""
    return f"U{int(str(user)):04d}" if isinstance(user, int) or str(user).isdigit() else str(user)


class SlackUser:
    """Puts messages into channels and events on their way. Part of SlackSimulator."""

    world: World
    out: Outbound
    _numbers = itertools.count(1)

    def add_channel(self, name: str, kind: str = "channel", *, member: bool = True) -> str:
        """A channel, private channel (group) or group of direct messages (mpim)."""
        self.world.channels.setdefault(name, Channel(name, kind, member=member))
        return name

    def place(self, chat: object, user: object = None) -> Channel:
        """The channel; direct messages are opened when they are first written to."""
        name = channel_id(chat)
        if name not in self.world.channels:
            kind = "im" if name.startswith("D") else "channel"
            person = user_id(user if user is not None else name.removeprefix("D"))
            self.world.channels[name] = Channel(name, kind, user=person if kind == "im" else None)
        return self.world.channels[name]

    def say(
        self,
        chat: object,
        text: str = "",
        *,
        user: object = None,
        thread: str | None = None,
        files: Sequence[tuple[str, bytes]] = (),
        at: float | None = None,
        heard: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """A user writes; returns the ts. ``<@U0BOT>`` in the text names the bot.

        ``at``: unix seconds, for an old message. ``heard=False``: it stands in the channel and no event tells of it.
        ``extra`` are further fields of the message, or replacements.
        """
        channel = self.place(chat, user)
        author = user_id(user) if user is not None else channel.user or "U0001"
        ts = self.world.new_ts(at)
        written = text.replace("&", "&amp;") if "<@" in text else _written(text)
        message: dict[str, Any] = {"type": "message", "user": author, "text": written, "ts": ts, "team": TEAM,
                                   "client_msg_id": f"client-{next(self._numbers)}"}  # fmt: skip
        if thread is not None:
            message |= {"thread_ts": thread, "parent_user_id": channel.messages[thread].get("user")}
            parent = channel.messages[thread]
            parent |= {"reply_count": parent.get("reply_count", 0) + 1, "latest_reply": ts, "thread_ts": thread}
        if files:
            message |= {"subtype": "file_share", "files": [self.add_file(name, data) for name, data in files]}
        message |= extra or {}
        channel.messages[ts] = message
        if heard:
            self.tell("message", channel, message)
            if f"<@{BOT_USER}" in text and channel.kind != "im":
                self.tell("app_mention", channel, message)
        return ts

    def edit(self, chat: object, ts: str, text: str) -> str:
        """A user changes an earlier message."""
        channel = self.place(chat)
        before = dict(channel.messages[ts])
        edited = {"user": before["user"], "ts": self.world.new_ts()}
        channel.messages[ts] |= {"text": _written(text), "edited": edited}
        changed = {
            "subtype": "message_changed", "hidden": True, "message": dict(channel.messages[ts]),
            "previous_message": before, "ts": self.world.new_ts(),
        }  # fmt: skip
        self.tell("message", channel, changed)
        return ts

    def unfurl(self, chat: object, ts: str) -> None:
        """Slack adds a preview for an address: a change that nobody made."""
        channel = self.place(chat)
        channel.messages[ts]["attachments"] = [{"from_url": "https://example.org", "text": "a page"}]
        changed = {"subtype": "message_changed", "hidden": True, "message": dict(channel.messages[ts])}
        self.tell("message", channel, {**changed, "ts": self.world.new_ts()})

    def press(self, chat: object, ts: str, value: str, *, user: object = None) -> str:
        """A user presses the button with that value under a message of the bot."""
        channel = self.place(chat)
        message, stamp = channel.messages.get(ts, {}), self.world.new_ts()
        elements = [e for block in message.get("blocks", ()) for e in block.get("elements", ())]
        action = next((e for e in elements if e.get("value") == value), {"action_id": "gone", "value": value})
        payload = {
            "type": "block_actions", "api_app_id": APP, "token": "old", "trigger_id": f"trigger.{stamp}",
            "team": {"id": TEAM, "domain": "sim"}, "response_url": "https://hooks.slack.com/actions/secret",
            "user": {"id": user_id(user) if user is not None else channel.user, "username": "user", "team_id": TEAM},
            "container": {"type": "message", "message_ts": ts, "channel_id": channel.id, "is_ephemeral": False},
            "channel": {"id": channel.id, "name": "directmessage"}, "message": message,
            "actions": [{
                "type": "button", "action_id": action["action_id"], "block_id": "b", "value": value, "action_ts": stamp,
            }],
        }  # fmt: skip
        return self.out.put("interactive", payload)

    def command(self, chat: object, text: str = "", *, user: object = None, command: str = "/hermes") -> str:
        """A user gives a slash command."""
        channel = self.place(chat, user)
        author = user_id(user) if user is not None else channel.user or "U0001"
        payload = {
            "command": command, "text": text, "user_id": author, "user_name": author.lower(), "team_id": TEAM,
            "team_domain": "sim", "channel_id": channel.id, "api_app_id": APP, "token": "old",
            "channel_name": "directmessage" if channel.kind == "im" else channel.id.lower(),
            "trigger_id": f"{next(self._numbers)}.{self.world.new_ts()}",
            "response_url": "https://hooks.slack.com/commands/secret",
        }  # fmt: skip
        return self.out.put("slash_commands", payload)

    def bot_says(self, chat: object, text: str, *, bot: str = "B0OTHER") -> str:
        """Another app writes."""
        return self.say(chat, text, extra={"subtype": "bot_message", "bot_id": bot, "username": "other", "user": None})

    def inject(self, event: Any) -> str:
        """Any event as it is, a malformed one too."""
        return self.out.put("events_api", self._callback(event))

    def again(self, chat: object, ts: str) -> None:
        """The same event once more, as a new envelope."""
        channel = self.place(chat)
        self.tell("message", channel, channel.messages[ts])

    def add_file(self, name: str, data: bytes) -> dict[str, Any]:
        """A file at Slack."""
        number = f"F{next(self._numbers):06d}"
        mime = _mime(name)
        about: dict[str, Any] = {
            "id": number, "name": name, "title": name, "mimetype": mime, "size": len(data), "mode": "hosted",
            "filetype": name.rpartition(".")[2], "user": "U0001",
        }  # fmt: skip
        if name.startswith("voice"):
            about |= {"subtype": "slack_audio", "duration_ms": 1000}
        self.world.files[number] = (about, data)
        return {**about, "url_private": f"https://files.slack.com/files-pri/T0-{number}/{name}"}

    def close_channel(self, chat: object, error: str) -> None:
        """Every call about the channel gets this error from now on."""
        self.place(chat).closed = Refusal(error)

    def archive(self, chat: object) -> None:
        """The channel is archived."""
        self.place(chat).archived = True

    def kick(self, chat: object) -> None:
        """The bot is removed from the channel."""
        self.place(chat).member = False

    def reopen(self, chat: object) -> None:
        """Takes back ``close_channel``, ``archive`` and ``kick``."""
        channel = self.place(chat)
        channel.closed, channel.archived, channel.member = None, False, True

    def tell(self, kind: str, channel: Channel, event: Mapping[str, Any]) -> None:
        """An event of a channel; mentions do not say what kind of channel theirs is."""
        told = {k: v for k, v in event.items() if k not in ("metadata", "hermes_reactions")}
        told |= {"type": kind, "channel": channel.id, "event_ts": str(event.get("ts"))}
        if kind == "message":
            told["channel_type"] = channel.kind
        self.out.put("events_api", self._callback(told))

    def _callback(self, event: Any) -> dict[str, Any]:
        number = next(self._numbers)
        return {
            "token": "old", "team_id": TEAM, "api_app_id": APP, "event": event, "type": "event_callback",
            "event_id": f"Ev{number:06d}", "event_time": int(float(self.world.new_ts())),
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}], "bot": BOT,
        }  # fmt: skip


def _written(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mime(name: str) -> str:
    kinds = {"png": "image/png", "jpg": "image/jpeg", "txt": "text/plain", "ogg": "audio/ogg", "pdf": "application/pdf"}
    return kinds.get(name.rpartition(".")[2], "application/octet-stream")
