"""Who may talk to the agent, and as what (R6, R39): deny unless a rule allows."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.core.principals import ChatKind, ChatRef, Identity, Role

STRANGER = "stranger"
"""The reason that counts as a knock at the door; every other reason is noise."""
NOT_ADDRESSED = "not addressed"


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """One platform's lists; all ids are text.

    `owners` are always allowed. Without any, a sole allowed user is the owner. `guests` may talk and little else.
    `allowed_roles`: whoever carries one of these roles of the platform. `allowed_chats`: every member of these groups,
    there and only there. `pairing`: a stranger in a private chat is offered a one-time code; without it the bot tells
    strangers nothing. `require_mention`: in groups only what is meant for the bot is heard, but for `free_chats`.
    """

    allow_all: bool = False
    allowed_users: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    pairing: bool = False
    guests: frozenset[str] = frozenset()
    allowed_roles: frozenset[str] = frozenset()
    allowed_chats: frozenset[str] = frozenset()
    require_mention: bool = True
    free_chats: frozenset[str] = frozenset()

    def is_owner(self, user_id: str) -> bool:
        """Whether this user owns the gateway on this platform."""
        if self.owners:
            return user_id in self.owners
        return len(self.allowed_users) == 1 and user_id in self.allowed_users


@dataclass(frozen=True, slots=True)
class Allow:
    """May talk."""

    role: Role = Role.USER


@dataclass(frozen=True, slots=True)
class Pair:
    """Unknown, but may be offered a pairing code."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Not a word to them; ``reason`` is for counters."""

    reason: str


def authorise(
    policy: AccessPolicy, identity: Identity, chat: ChatRef, *, paired: Role | None = None
) -> Allow | Pair | Ignore:
    """Whether this identity may talk in this chat, and as what. Bots and ourselves never may, whoever is allowed.

    ``paired``: what an owner let them in as. In groups and channels only those count who may talk anywhere, or whose
    group is allowed as a whole; a stranger there is never answered. An empty id (an anonymous sender) is a stranger to
    everyone.
    """
    if identity.is_ourselves:
        return Ignore("ourselves")
    if identity.is_bot:
        return Ignore("bot")
    if identity.user_id:
        role = _role(policy, identity, chat, paired)
        if role is not None:
            return Allow(role)
        if policy.pairing and chat.kind is ChatKind.PRIVATE:
            return Pair()
    return Ignore(STRANGER)


def _role(policy: AccessPolicy, identity: Identity, chat: ChatRef, paired: Role | None) -> Role | None:
    user = identity.user_id
    if policy.is_owner(user):
        return Role.OWNER
    if user in policy.allowed_users or policy.allow_all or identity.roles & policy.allowed_roles:
        return Role.USER
    if chat.kind is not ChatKind.PRIVATE and chat.chat_id in policy.allowed_chats:
        return Role.USER
    if user in policy.guests:
        return Role.GUEST
    return paired


def heeds(policy: AccessPolicy, chat: ChatRef, *, addressed: bool) -> bool:
    """Whether a message in this chat is listened to at all."""
    return chat.kind is ChatKind.PRIVATE or addressed or not policy.require_mention or chat.chat_id in policy.free_chats
