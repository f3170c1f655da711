"""Who speaks and where (R37): platform identities, chats, and the person behind several identities."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NewType

PrincipalId = NewType("PrincipalId", str)
"""The person (or the group) that sessions, memory, approvals and budgets belong to."""


class Role(IntEnum):
    """What somebody who may talk may do; a higher role may do all that a lower one may."""

    GUEST = 1
    """Talks, with the tools of `tools.guest_tools` only, and commands that concern their own conversation."""
    USER = 2
    OWNER = 3
    """Also lets others in and handles the gateway itself."""


class ChatKind(StrEnum):
    """How public a chat is."""

    PRIVATE = "private"
    GROUP = "group"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as one platform names them. ``account`` is our bot's own id there (R42), ``user_id`` theirs."""

    platform: str
    account: str
    user_id: str
    display: str = ""
    is_bot: bool = False
    roles: frozenset[str] = frozenset()  # ids of the platform's own roles, where it has such (Discord)

    @property
    def is_ourselves(self) -> bool:
        """Whether this is the bot's own account."""
        return self.user_id == self.account


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat, with its thread (Telegram topic, Discord or Slack thread) where there is one."""

    platform: str
    account: str
    chat_id: str
    thread_id: str | None
    kind: ChatKind
