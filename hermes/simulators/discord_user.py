"""The people on the other side: what they write, edit, press and command, and how channels end."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.simulators.discord_gateway import DIRECT_MESSAGES, GUILD_MESSAGES, GUILDS
from hermes.simulators.discord_world import (
    DM,
    TEXT,
    THREAD,
    Channel,
    Refusal,
    World,
    iso,
    person,
    snowflake_time,
)

__all__ = ["DiscordUser"]


class DiscordUser:
    """Puts messages into channels and events on the gateway. Part of DiscordSimulator."""

    world: World
    _numbers = itertools.count(1)

    def emit(self, event: str, data: dict[str, Any], intent: int) -> None:
        """Dispatches an event soon."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The address files are served under."""
        raise NotImplementedError

    def add_guild(self, guild: int, channels: Sequence[int] = (), name: str = "guild") -> None:
        """A guild that the bot is in, with text channels."""
        self.world.guilds[guild] = name
        for number in channels:
            self.world.channels[number] = Channel(number, TEXT, guild, name=f"channel-{number}")
        self.emit("GUILD_CREATE", self.guild_json(guild), GUILDS)

    def add_thread(self, parent: int, thread: int, name: str = "thread") -> None:
        """A thread in a text channel."""
        channel = Channel(thread, THREAD, self.world.channels[parent].guild, parent, name=name)
        self.world.channels[thread] = channel
        self.emit("THREAD_CREATE", channel.as_json() | {"newly_created": True}, GUILDS)

    def guild_json(self, guild: int) -> dict[str, Any]:
        """The payload of GUILD_CREATE."""
        inside = [c for c in self.world.channels.values() if c.guild == guild]
        return {
            "id": str(guild), "name": self.world.guilds[guild], "unavailable": False, "roles": [], "members": [],
            "channels": [c.as_json() for c in inside if c.kind == TEXT],
            "threads": [c.as_json() for c in inside if c.kind == THREAD],
        }  # fmt: skip

    def place(self, chat: int, user: int | None = None) -> Channel:
        """The channel of that id; one that is not known becomes the private chat of the user of that id."""
        found = self.world.channels.get(chat)
        if found is None:
            found = self.world.channels[chat] = Channel(chat, DM, user=user if user is not None else chat)
        return found

    def say(
        self,
        chat: int,
        text: str = "",
        *,
        user: int | None = None,
        name: str | None = None,
        bot: bool = False,
        reply_to: int | None = None,
        files: Sequence[tuple[str, bytes]] = (),
        at: float | None = None,
        extra: Mapping[str, Any] | None = None,
        heard: bool = True,
    ) -> int:
        """A user writes; returns the message's id. `<@ID>` in the text mentions.

        `at`: unix seconds, for an old message. `heard=False`: it stands in the channel and the gateway does not
        tell of it. `extra` are further fields of the Message, or replacements.
        """
        channel = self.place(chat, user)
        author = user if user is not None else channel.user if channel.user is not None else 7
        number = self.world.new_id(at)
        message = self._message(channel, number, person(author, name, bot=bot), text)
        message["attachments"] = [
            self.world.attachment(chat, file, _mime(file), data, self.url) for file, data in files
        ]
        if reply_to is not None:
            message |= {"type": 19, "message_reference": {"message_id": str(reply_to), "channel_id": str(chat)}}
            message["referenced_message"] = channel.messages.get(reply_to)
        message |= extra or {}
        channel.messages[number] = message
        if heard:
            self._tell("MESSAGE_CREATE", channel, message)
        return number

    def edit(self, chat: int, message_id: int, text: str) -> int:
        """A user changes an earlier message."""
        channel = self.world.channels[chat]
        channel.messages[message_id] |= {"content": text, "edited_timestamp": iso(time.time())}
        self._tell("MESSAGE_UPDATE", channel, channel.messages[message_id])
        return message_id

    def unfurl(self, chat: int, message_id: int) -> None:
        """Discord adds an embed for an address in a message: an update that nobody made."""
        channel = self.world.channels[chat]
        channel.messages[message_id]["embeds"] = [{"type": "link", "url": "https://example.org"}]
        self._tell("MESSAGE_UPDATE", channel, channel.messages[message_id])

    def press(self, chat: int, message_id: int, custom_id: str, *, user: int | None = None) -> str:
        """A user presses a button under a message of the bot; returns the interaction's id."""
        channel = self.world.channels[chat]
        data = {"custom_id": custom_id, "component_type": 2}
        return self._interact(3, channel, data, user, message=channel.messages.get(message_id))

    def command(self, chat: int, name: str, text: str = "", *, user: int | None = None) -> str:
        """A user gives an application command; returns the interaction's id."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        data = {"id": str(self.world.new_id()), "name": name, "type": 1, "options": options}
        return self._interact(2, self.place(chat, user), data, user)

    def inject(self, event: str, data: dict[str, Any]) -> None:
        """Any event as it is, a malformed one too."""
        self.emit(event, data, 0)

    def block(self, chat: int) -> None:
        """The user takes no private messages from the bot any more."""
        self.place(chat).closed = Refusal(403, 50007, "Cannot send messages to this user")

    def kick(self, chat: int) -> None:
        """The bot may not see the channel any more."""
        self.world.channels[chat].closed = Refusal(403, 50001, "Missing Access")

    def reopen(self, chat: int) -> None:
        """Takes back block and kick."""
        self.world.channels[chat].closed = None

    def _interact(
        self, kind: int, channel: Channel, data: dict[str, Any], user: int | None, **more: Any
    ) -> str:
        number, token = str(self.world.new_id()), f"interaction-token-{next(self._numbers)}"
        self.world.interactions[number] = (time.monotonic(), token)
        who = person(user if user is not None else channel.user if channel.user is not None else 7)
        event: dict[str, Any] = {
            "id": number, "token": token, "type": kind, "version": 1, "data": data,
            "application_id": self.world.bot["id"], "channel_id": str(channel.id), "channel": channel.as_json(),
        }  # fmt: skip
        if channel.guild is None:
            event["user"] = who
        else:
            roles = self.world.roles.get(int(who["id"]), [])
            event |= {"guild_id": str(channel.guild), "member": {"user": who, "roles": roles}}
        self.emit("INTERACTION_CREATE", {**event, **more}, 0)
        return number

    def _message(self, channel: Channel, number: int, author: dict[str, Any], text: str) -> dict[str, Any]:
        named = [person(int(user)) for user in re.findall(r"<@!?(\d+)>", text)]
        return {
            "id": str(number), "channel_id": str(channel.id), "author": author, "content": text, "type": 0,
            "timestamp": iso(snowflake_time(number)), "edited_timestamp": None, "tts": False, "pinned": False,
            "mention_everyone": False, "mentions": named, "mention_roles": [], "attachments": [], "embeds": [],
            "components": [], "flags": 0,
        }  # fmt: skip

    def _tell(self, event: str, channel: Channel, message: dict[str, Any]) -> None:
        told = dict(message)
        if channel.guild is not None:
            roles = self.world.roles.get(int(message["author"]["id"]), [])
            told |= {"guild_id": str(channel.guild), "member": {"roles": roles, "nick": None}}
        self.emit(event, told, DIRECT_MESSAGES if channel.guild is None else GUILD_MESSAGES)


def _mime(name: str) -> str:
    kinds = {"png": "image/png", "jpg": "image/jpeg", "txt": "text/plain; charset=utf-8", "ogg": "audio/ogg"}
    return kinds.get(name.rpartition(".")[2], "application/octet-stream")
