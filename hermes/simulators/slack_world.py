"""What Slack's side knows: the workspace, its channels, messages, files and limits."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["APP", "BOT", "BOT_USER", "TEAM", "Channel", "Flood", "Refusal", "SeenMessage", "World", "order"]

TEAM, APP, BOT_USER, BOT = "T0HERMES", "A0HERMES", "U0BOT", "B0BOT"


class Refusal(Exception):
    """An answer with ok=false, with a 200 unless said otherwise."""

    def __init__(self, error: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(error)
        self.error, self.status, self.headers, self.more = error, status, dict(headers or {}), more

    def body(self) -> dict[str, Any]:
        return {"ok": False, "error": self.error, **self.more}


@dataclass(slots=True)
class SeenMessage:
    """A message of the bot as people see it now; ``edits`` are the texts it had since, in order. ``text`` is the
    mrkdwn with its entities undone."""

    ts: str
    text: str
    edits: list[str] = field(default_factory=list)
    thread: str | None = None
    blocks: list[dict[str, Any]] = field(default_factory=list)
    reactions: list[str] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    mrkdwn: bool = True
    sent_at: float = 0.0
    deleted: bool = False


@dataclass(slots=True)
class Channel:
    """A conversation; ``kind`` is im, mpim, group or channel. ``closed`` is what every call about it gets."""

    id: str
    kind: str = "im"
    user: str | None = None
    member: bool = True
    archived: bool = False
    closed: Refusal | None = None
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The conversation object."""
        found: dict[str, Any] = {
            "id": self.id, "is_im": self.kind == "im", "is_mpim": self.kind == "mpim", "is_archived": self.archived,
            "is_private": self.kind in ("group", "mpim"), "is_channel": self.kind == "channel",
            "is_group": self.kind == "group", "is_member": self.member, "created": 1_700_000_000,
        }  # fmt: skip
        if self.kind == "im":
            return found | {"user": self.user}
        return found | {"name": self.id.lower()}


@dataclass(slots=True)
class Flood:
    """At most ``limit`` messages and edits in a channel within ``window`` seconds; then a ban of ``ban`` seconds,
    which whoever sends meanwhile doubles."""

    limit: int = 5
    window: float = 5.0
    ban: float = 2.0
    longest: float = 3600.0
    sent: dict[str, deque[float]] = field(default_factory=dict)
    banned: dict[str, tuple[float, float]] = field(default_factory=dict)
    violations: int = 0

    def take(self, channel: str, now: float) -> None:
        """Counts one message. Raises Refusal 429 during a ban."""
        until, length = self.banned.get(channel, (0.0, self.ban))
        if now < until:
            self.violations += 1
            self._refuse(channel, now, min(self.longest, length * 2))
        recent = self.sent.setdefault(channel, deque())
        while recent and recent[0] <= now - self.window:
            recent.popleft()
        if len(recent) >= self.limit:
            recent.clear()
            self._refuse(channel, now, self.ban)
        recent.append(now)

    def _refuse(self, channel: str, now: float, length: float) -> None:
        self.banned[channel] = (now + length, length)
        raise Refusal("ratelimited", status=429, headers={"Retry-After": str(max(1, round(length)))})


class World:
    """State of one workspace; survives a restart of the simulator."""

    def __init__(self) -> None:
        self.channels: dict[str, Channel] = {}
        self.sent: dict[str, dict[str, SeenMessage]] = {}
        self.files: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.uploads: dict[str, bytes | None] = {}
        self.whispers: list[tuple[str, str, str]] = []  # channel, user, text
        self.statuses: list[tuple[str, str, str]] = []
        self.scopes: set[str] | None = None  # None: all that are ever asked for
        self.flood: Flood | None = None
        self._last = (0, 0)

    def new_ts(self, at: float | None = None) -> str:
        """A time stamp that no message has; of now unless said otherwise."""
        seconds = time.time() if at is None else at
        ts = (int(seconds), int(seconds * 1_000_000) % 1_000_000)
        if at is None:
            ts = max(ts, (self._last[0], self._last[1] + 1))
            self._last = ts
        return f"{ts[0]}.{ts[1]:06d}"

    def channel(self, name: object) -> Channel:
        """Raises Refusal for one that does not exist, that is closed, or that the bot is not in."""
        found = self.channels.get(str(name))
        if found is None:
            raise Refusal("channel_not_found")
        if found.closed is not None:
            raise found.closed
        return found

    def need(self, *scopes: str) -> None:
        """Raises Refusal when the app has none of these scopes."""
        if self.scopes is not None and not self.scopes & set(scopes):
            raise Refusal("missing_scope", needed=",".join(scopes), provided=",".join(sorted(self.scopes)))

    def granted(self) -> str:
        """The value of ``x-oauth-scopes``."""
        known = {"chat:write", "im:history", "channels:history", "app_mentions:read", "files:read", "reactions:write"}
        return ",".join(sorted(known if self.scopes is None else self.scopes))

    def visible(self, channel: str) -> list[SeenMessage]:
        """Copies of the bot's messages that stand in the channel, in order."""
        return [
            dataclasses.replace(seen, edits=list(seen.edits), reactions=list(seen.reactions))
            for seen in self.sent.get(channel, {}).values()
            if not seen.deleted
        ]


def order(ts: str) -> tuple[int, int]:
    """What time stamps are compared by."""
    whole, _, part = ts.partition(".")
    return int(whole), int(part.ljust(6, "0"))
