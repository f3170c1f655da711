"""The people on the other side: what they write, edit and press, and how chats end."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.simulators.telegram_text import utf16
from hermes.simulators.telegram_world import Refusal, World

__all__ = ["TelegramUser"]


class TelegramUser:
    """Puts updates where getUpdates finds them. Part of TelegramSimulator."""

    world: World
    bot: dict[str, Any]
    _numbers = itertools.count(1)

    def changed(self) -> None:
        """Wakes a waiting poll."""
        raise NotImplementedError

    def say(
        self,
        chat: int,
        text: str | None = None,
        *,
        user: int | None = None,
        name: str | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        message_id: int | None = None,
        update_id: int | None = None,
        photo: bytes | None = None,
        document: tuple[str, bytes] | None = None,
        voice: bytes | None = None,
        album: str | None = None,
        date: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> int:
        """A user writes; returns the message's id.

        A negative chat is a group, and `thread` makes it a forum. With `photo`, `document` or `voice` the text is the
        caption; `album` is the media_group_id. `update_id` and `message_id` repeat an earlier update on
        purpose; `extra` are further fields of the Message, or replacements.
        """
        number = message_id if message_id is not None else self.world.new_message_id(chat)
        message = self._message(chat, number, user, name, date)
        if thread is not None:
            self.world.threads.setdefault(chat, set()).add(thread)
            message |= {"message_thread_id": thread, "is_topic_message": True}
            message["chat"] = self.world.chat_object(chat)
        media = photo is not None or document is not None or voice is not None
        if text is not None:
            message["caption" if media else "text"] = text
            if entities := _entities(text):
                message["caption_entities" if media else "entities"] = entities
        if photo is not None:
            small = self._file("photo.jpg", photo)
            message["photo"] = [{**small, "width": 320, "height": 240}]
        if document is not None:
            message["document"] = {**self._file(*document), "file_name": document[0]}
        if voice is not None:
            message["voice"] = {**self._file("voice.oga", voice), "duration": 3, "mime_type": "audio/ogg"}
        if album is not None:
            message["media_group_id"] = album
        if reply_to is not None:
            message["reply_to_message"] = self._answered(chat, reply_to)
        self.world.heard.setdefault(chat, {})[number] = text
        self.inject({"message": {**message, **(extra or {})}}, update_id=update_id)
        return number

    def album(self, chat: int, photos: Sequence[bytes], caption: str | None = None, **more: Any) -> list[int]:
        """Several photos of one media group, each an update of its own as at Telegram; their message ids."""
        group = f"album-{next(self._numbers)}"
        return [
            self.say(chat, caption if at == 0 else None, photo=photo, album=group, **more)
            for at, photo in enumerate(photos)
        ]

    def edit(self, chat: int, message_id: int, text: str, *, user: int | None = None) -> int:
        """A user changes an earlier message; returns the update's id."""
        message = self._message(chat, message_id, user, None, None)
        message |= {"text": text, "edit_date": int(time.time())}
        if entities := _entities(text):
            message["entities"] = entities
        self.world.heard.setdefault(chat, {})[message_id] = text
        return self.inject({"edited_message": message})

    def press(self, chat: int, message_id: int, data: str, *, user: int | None = None) -> str:
        """A user presses a button under a message of the bot; returns the callback query's id."""
        query = f"query-{next(self._numbers)}"
        self.world.open_callbacks.add(query)
        seen = self.world.own(chat, message_id)
        message: dict[str, Any] = {"message_id": message_id, "date": 0, "chat": self.world.chat_object(chat)}
        if seen is not None:
            message = self.world.message_object(chat, seen, self.bot)
        pressed = {
            "id": query,
            "from": self._person(chat, user, None),
            "message": message,
            "chat_instance": str(chat),
            "data": data,
        }
        self.inject({"callback_query": pressed})
        return query

    def inject(self, update: Mapping[str, Any], *, update_id: int | None = None) -> int:
        """Queues any update as it is, a malformed one too; returns its id."""
        number = self.world.queue(dict(update), update_id=update_id)
        self.changed()
        return number

    def add_file(self, name: str, data: bytes) -> str:
        """A file on Telegram's side; returns its file_id."""
        return str(self._file(name, data)["file_id"])

    def block(self, chat: int) -> None:
        """The user blocks the bot: 403 from now on."""
        self.world.closed[chat] = Refusal(403, "Forbidden: bot was blocked by the user")

    def kick(self, chat: int) -> None:
        """The bot is removed from the group: 403 from now on."""
        self.world.closed[chat] = Refusal(403, "Forbidden: bot was kicked from the supergroup chat")

    def migrate(self, old: int, new: int) -> None:
        """The group becomes a supergroup with another id: the old one is refused with the new one."""
        self.world.types[new] = "supergroup"
        self.world.closed[old] = Refusal(
            400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=new
        )

    def reopen(self, chat: int) -> None:
        """Takes back block, kick and migrate."""
        self.world.closed.pop(chat, None)

    def _message(
        self, chat: int, number: int, user: int | None, name: str | None, date: int | None
    ) -> dict[str, Any]:
        return {
            "message_id": number,
            "from": self._person(chat, user, name),
            "chat": self.world.chat_object(chat),
            "date": int(time.time()) if date is None else date,
        }

    def _person(self, chat: int, user: int | None, name: str | None) -> dict[str, Any]:
        number = user if user is not None else abs(chat)
        return {
            "id": number,
            "is_bot": False,
            "first_name": name or f"User{number}",
            "username": f"user{number}",
            "language_code": "en",
        }

    def _answered(self, chat: int, message_id: int) -> dict[str, Any]:
        seen = self.world.own(chat, message_id)
        if seen is not None:
            return self.world.message_object(chat, seen, self.bot)
        message = self._message(chat, message_id, None, None, None)
        if text := self.world.heard.get(chat, {}).get(message_id):
            message["text"] = text
        return message

    def _file(self, name: str, data: bytes) -> dict[str, Any]:
        file_id = f"given-{len(self.world.files) + 1}"
        self.world.files[file_id] = (name, data)
        return {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": len(data)}


def _entities(text: str) -> list[dict[str, Any]]:
    """The entities that Telegram finds by itself and bots rely on: commands, mentions, addresses."""
    kinds = (
        ("bot_command", r"(?<!\S)/\w{1,32}(?:@\w+)?"),
        ("mention", r"(?<![\w/])@\w{4,32}"),
        ("url", r"https?://[^\s<>\"]+"),
    )
    found = [
        {"type": kind, "offset": utf16(text[: match.start()]), "length": utf16(match[0])}
        for kind, pattern in kinds
        for match in re.finditer(pattern, text)
    ]
    return sorted(found, key=lambda entity: int(str(entity["offset"])))
