"""Who may talk to the agent (R6, R39): deny unless a rule allows."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.core.principals import ChatKind, ChatRef, Identity

STRANGER = "stranger"
"""The reason that counts as a knock at the door; every other reason is noise."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """One platform's ``allowed_users``, ``allow_all_users`` and what was paired; all ids are text.

    `owners` are always allowed. `pairing`: a stranger in a private chat is offered a one-time code; without
    it the bot tells strangers nothing.
    """

    allow_all: bool = False
    allowed_users: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    pairing: bool = False


@dataclass(frozen=True, slots=True)
class Allow:
    """May talk."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Unknown, but may be offered a pairing code."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Not a word to them; ``reason`` is for counters."""

    reason: str


def authorise(policy: AccessPolicy, identity: Identity, chat: ChatRef) -> Allow | Pair | Ignore:
    """Whether this identity may talk in this chat. Bots and ourselves never may, whoever is allowed.

    In groups and channels only allowed users count: a group never admits its members, and a stranger there is
    never answered. An empty id (an anonymous sender) is a stranger to everyone.
    """
    if identity.is_ourselves:
        return Ignore("ourselves")
    if identity.is_bot:
        return Ignore("bot")
    known = identity.user_id in policy.allowed_users or identity.user_id in policy.owners
    if identity.user_id and (known or policy.allow_all):
        return Allow()
    if policy.pairing and identity.user_id and chat.kind is ChatKind.PRIVATE:
        return Pair()
    return Ignore(STRANGER)
