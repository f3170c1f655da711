"""Which session a message belongs to, and whether it is a command (R9, R12)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hermes.core.principals import ChatKind, ChatRef, Identity

STALE_AFTER = 300.0
"""Seconds after which a control command is told of, not executed (R9)."""


def session_key(chat: ChatRef, identity: Identity, *, group_sessions_per_user: bool) -> str:
    """The name of the session of this chat, thread and, where so configured, user.

    Injective: two different tuples never share a key, whatever characters the ids hold. In a private chat the
    user is not part of it. Channels are always shared.
    """
    parts = [chat.platform, chat.account, chat.chat_id]
    if chat.thread_id is not None:
        parts.append(f"t={chat.thread_id}")
    if chat.kind is ChatKind.GROUP and group_sessions_per_user:
        parts.append(f"u={identity.user_id}")
    return ":".join(_escape(part) for part in parts)


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


@dataclass(frozen=True, slots=True)
class Command:
    """``/name argument``; the name in lower case without slash, the argument stripped."""

    name: str
    argument: str = ""


class Lane(StrEnum):
    """Where a command runs."""

    OUT = "out"
    """At once, beside a running turn (R12)."""
    IN = "in"
    """In its place among the session's messages."""


OUT_OF_LANE = frozenset(
    {
        "approve",
        "background",
        "commands",
        "deny",
        "goal",
        "help",
        "pair",
        "platform",
        "queue",
        "reload",
        "restart",
        "schedule",
        "sessions",
        "sethome",
        "start",
        "status",
        "steer",
        "stop",
        "title",
        "usage",
    }
)
"""Control commands: they answer or act on what is running, so they must not wait for it."""

IN_LANE = frozenset({"compress", "model", "new", "rehearse", "reset", "resume", "retry", "undo"})
"""Commands that change the session itself, so they take their place in it."""

MESSAGE_WHEN_STALE = frozenset({"queue", "steer", "background", "goal"})
"""Their argument is what the user wants said: when stale they are ordinary messages (R9)."""

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([A-Za-z0-9_]{1,64}))?(?=\s|\Z)(.*)", re.DOTALL)


def parse_command(text: str, bot_username: str | None = None) -> Command | None:
    """The command that a message is, or None.

    Only at the very beginning of a message (leading white space aside). ``/stop@other_bot`` is somebody
    else's and no command of ours; a path like ``/etc/hosts`` or ``/ stop`` is text. The name may be unknown.
    """
    found = _COMMAND.match(text.lstrip())
    if found is None:
        return None
    name, addressee, rest = found.groups()
    ours = (bot_username or "").removeprefix("@").lower()
    if addressee is not None and addressee.lower() != ours:
        return None
    return Command(name.lower().replace("-", "_"), rest.strip())


def lane_of(command: Command) -> Lane | None:
    """Where a known command runs; None for an unknown one."""
    if command.name in OUT_OF_LANE:
        return Lane.OUT
    return Lane.IN if command.name in IN_LANE else None


def command_is_stale(
    sent_at: float, ready_at: float, now: float, *, stale_after: float = STALE_AFTER
) -> bool:
    """Whether a control command is only told of: sent before this process was ready, or too long ago (R9).

    All in unix seconds, the platform's clock for `sent_at`. Platforms stamp whole seconds, so one sent in
    the very second of becoming ready is not stale.
    """
    return sent_at < float(int(ready_at)) or now - sent_at > stale_after


def speaks(command: Command) -> bool:
    """Whether a command is a message that only says how it enters: /queue, /steer or /background TEXT."""
    return command.name in ("queue", "steer", "background") and bool(command.argument)


def text_when_stale(command: Command) -> str | None:
    """The ordinary message that a stale command is, or None when it is only told of."""
    return command.argument if command.name in MESSAGE_WHEN_STALE and command.argument else None
