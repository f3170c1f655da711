"""What Discord's side knows: guilds, channels, messages, files, nonces and limits."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

__all__ = ["BOT", "Buckets", "Channel", "Refusal", "SeenMessage", "World", "snowflake_time"]

EPOCH_MS = 1_420_070_400_000
BOT = 424242
NONCE_WINDOW = 300.0  # "in the past few minutes"
DM, TEXT, THREAD = 1, 0, 11


class Refusal(Exception):
    """An error answer: HTTP status, Discord's code and sentence, further fields of the body."""

    def __init__(
        self, status: int, code: int, message: str, *, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = headers or {}
        self.more = more

    def body(self) -> dict[str, Any]:
        return {"message": self.message, "code": self.code, **self.more}


def form_error(name: str, code: str, message: str) -> Refusal:
    """50035 for one field."""
    errors = {name: {"_errors": [{"code": code, "message": message}]}}
    return Refusal(400, 50035, "Invalid Form Body", errors=errors)


UNKNOWN_CHANNEL = Refusal(404, 10003, "Unknown Channel")
UNKNOWN_MESSAGE = Refusal(404, 10008, "Unknown Message")


@dataclass(slots=True)
class SeenMessage:
    """A message of the bot as the user sees it now; `edits` are the texts it had since, in order."""

    message_id: int
    text: str
    edits: list[str] = field(default_factory=list)
    reply_to: int | None = None
    sent_at: float = 0.0
    components: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    nonce: str | None = None
    deleted: bool = False


@dataclass(slots=True)
class Channel:
    """A guild's channel, a thread in one, or a private chat with `user`."""

    id: int
    kind: int
    guild: int | None = None
    parent: int | None = None
    user: int | None = None
    name: str = ""
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    sent: dict[int, SeenMessage] = field(default_factory=dict)
    closed: Refusal | None = None

    def as_json(self) -> dict[str, Any]:
        """The Channel object."""
        last = str(max(self.messages)) if self.messages else None
        found: dict[str, Any] = {"id": str(self.id), "type": self.kind, "last_message_id": last}
        if self.kind == DM:
            return found | {"recipients": [person(self.user or 0)]}
        found |= {"guild_id": str(self.guild), "name": self.name, "position": 0, "permission_overwrites": []}
        if self.parent is not None:
            found |= {"parent_id": str(self.parent), "owner_id": str(BOT), "member_count": 2}
            found |= {"thread_metadata": {"archived": False, "locked": False, "auto_archive_duration": 1440}}
        return found


@dataclass(slots=True)
class Buckets:
    """At most `limit` creates, and as many edits, in a channel within `window` seconds; then a ban of `ban` seconds.

    Whoever sends during a ban doubles it, up to `longest`. `everywhere`: the limit counts all channels
    together, and its refusal is global.
    """

    limit: int = 5
    window: float = 5.0
    ban: float = 1.0
    longest: float = 3600.0
    everywhere: bool = False
    violations: int = 0
    _sent: dict[str, deque[float]] = field(default_factory=dict)
    _banned: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, route: str, now: float) -> dict[str, str]:
        """Counts one request of a route; the headers that tell what is left. Raises Refusal 429."""
        name = "everything" if self.everywhere else route
        until, length = self._banned.get(name, (0.0, self.ban))
        recent = self._sent.setdefault(name, deque())
        while recent and recent[0] <= now - self.window:
            recent.popleft()
        if now < until:
            self._refuse(name, now, min(self.longest, length * 2))
        if len(recent) >= self.limit:
            recent.clear()
            self._refuse(name, now, self.ban)
        recent.append(now)
        return self._headers(name, self.limit - len(recent), recent[0] + self.window - now)

    def _refuse(self, name: str, now: float, length: float) -> None:
        self.violations += 1
        self._banned[name] = (now + length, length)
        wait = round(length, 3)
        headers = self._headers(name, 0, wait) | {"Retry-After": str(max(1, round(wait)))}
        headers["X-RateLimit-Scope"] = "global" if self.everywhere else "user"
        if self.everywhere:
            headers["X-RateLimit-Global"] = "true"
        more = {"retry_after": wait, "global": self.everywhere}
        raise Refusal(429, 0, "You are being rate limited.", headers=headers, **more)

    def _headers(self, name: str, left: int, after: float) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, left)),
            "X-RateLimit-Reset": f"{time.time() + after:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Bucket": f"bucket-{name}",
            "Via": "1.1 google",
        }


def snowflake_time(number: int) -> float:
    """Unix seconds at which an id was made."""
    return ((number >> 22) + EPOCH_MS) / 1000


def iso(seconds: float) -> str:
    """A timestamp as the API writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def person(user: int, name: str | None = None, *, bot: bool = False) -> dict[str, Any]:
    """A User object."""
    shown = name or f"User{user}"
    found: dict[str, Any] = {"id": str(user), "username": shown.lower(), "global_name": shown}
    found |= {"discriminator": "0", "avatar": None}
    return found | ({"bot": True} if bot else {})


class World:
    """State of one bot's Discord; survives a restart of the simulator."""

    def __init__(self, bot: int) -> None:
        self.bot = person(bot, "Simulated", bot=True)
        self.channels: dict[int, Channel] = {}
        self.guilds: dict[int, str] = {}
        self.nonces: dict[str, tuple[float, int, int]] = {}
        self.files: dict[int, tuple[str, str, bytes]] = {}
        self.roles: dict[int, list[str]] = {}
        """The roles that people carry, by user."""
        self.commands: list[dict[str, Any]] = []
        self.command_writes = 0
        self.interactions: dict[str, tuple[float, str]] = {}
        self.answered: dict[str, dict[str, Any]] = {}
        self.typing: list[int] = []
        self.reactions: dict[tuple[int, int], list[str]] = {}
        self.buckets: Buckets | None = None
        self._last_id = 0

    def new_id(self, at: float | None = None) -> int:
        """A snowflake, higher than every one before it unless `at` (unix seconds) says when it was made."""
        stamp = (int((time.time() if at is None else at) * 1000) - EPOCH_MS) << 22
        if at is not None:
            return stamp + len(self.files) + sum(len(c.messages) for c in self.channels.values())
        self._last_id = max(self._last_id + 1, stamp)
        return self._last_id

    def channel(self, number: int) -> Channel:
        """Raises Refusal when there is none, or the bot may not use it."""
        found = self.channels.get(number)
        if found is None:
            raise UNKNOWN_CHANNEL
        if found.closed is not None:
            raise found.closed
        return found

    def own(self, channel: int, message: int) -> SeenMessage | None:
        found = self.channels.get(channel)
        seen = None if found is None else found.sent.get(message)
        return None if seen is None or seen.deleted else seen

    def visible(self, channel: int) -> list[SeenMessage]:
        """Copies of the bot's messages that stand in the channel, in order of their arrival."""
        found = self.channels.get(channel)
        return [] if found is None else [
            dataclasses.replace(seen, edits=list(seen.edits)) for seen in found.sent.values() if not seen.deleted
        ]

    def attachment(self, channel: int, name: str, mime: str, data: bytes, base: str) -> dict[str, Any]:
        """Keeps a file and describes it, with an address that expires."""
        number = self.new_id()
        self.files[number] = (name, mime, data)
        return {
            "id": str(number), "filename": name, "size": len(data), "content_type": mime,
            **self.addresses(channel, number, base),
        }  # fmt: skip

    def addresses(self, channel: int, number: int, base: str) -> dict[str, str]:
        """The file's addresses as they are signed now."""
        name, expires = self.files[number][0], int(time.time() + 86400)
        path = f"/attachments/{channel}/{number}/{name}?ex={expires:x}&is={int(time.time()):x}&hm={number:x}"
        return {"url": base + path, "proxy_url": base + path}
