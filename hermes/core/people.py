"""Who was let in, who asks to be, and which identities are one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes.core.principals import ChatRef, Identity, PrincipalId, Role


@dataclass(frozen=True, slots=True)
class PairingPolicy:
    """Seconds a code is good for, seconds between two offers to one user, and most offers open at once."""

    valid_for: float = 3600.0
    every: float = 3600.0
    pending: int = 50


@dataclass(frozen=True, slots=True)
class Offer:
    """A stranger who was shown a code. Times in unix seconds."""

    platform: str
    account: str
    user_id: str
    display: str
    chat_id: str
    offered_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class Paired:
    """Somebody an owner let in."""

    platform: str
    account: str
    user_id: str
    display: str
    role: Role
    paired_by: str
    paired_at: float


class PeopleStore(Protocol):
    """Keeps hashes of codes, never codes."""

    async def offer(
        self, identity: Identity, chat: ChatRef, code_hash: str, policy: PairingPolicy, now: float
    ) -> bool:
        """Keeps an offer; False where the bounds say that none is made now."""

    async def offers(self, now: float) -> Sequence[Offer]:
        """Those that can still be approved, oldest first."""

    async def approve(self, code_hash: str, role: Role, by: str, now: float) -> Offer | None:
        """Lets the stranger in who was shown this code; None where it is unknown or too old."""

    async def paired(self) -> Sequence[Paired]:
        """Everybody who was let in so."""

    async def revoke(self, platform: str, user_id: str) -> Sequence[Paired]:
        """They are strangers again; returns whom it concerned."""

    async def keep_link_code(self, principal: PrincipalId, code_hash: str, expires_at: float, now: float) -> None:
        """A one-time code by which another identity joins this principal; it replaces the principal's last one."""

    async def link(self, identity: Identity, code_hash: str, now: float) -> PrincipalId | None:
        """The identity belongs to the code's principal from now on, with what it said before; the code is used up."""
