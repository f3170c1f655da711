"""Conversations as people handle them: listed, named, taken up again, taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes.core.ids import InboxId, SessionId
from hermes.core.principals import PrincipalId
from hermes.core.records import InboxRow


@dataclass(frozen=True, slots=True)
class Conversation:
    """One generation of a session. ``opening``: the first words said in it. ``last_at`` in unix seconds."""

    session_id: SessionId
    generation: int
    title: str | None
    opening: str
    messages: int
    last_at: float
    present: bool  # its session is at this generation now


@dataclass(frozen=True, slots=True)
class Undone:
    """What /undo took back: the person's words, and how many transcript items went with them."""

    text: str
    items: int


class Conversations(Protocol):
    """All of it filtered by principal where more than one session is looked at (R37)."""

    async def recent(self, principal: PrincipalId, limit: int) -> Sequence[Conversation]:
        """The principal's conversations, the one spoken in last first."""

    async def name(self, session: SessionId, title: str, now: float) -> None:
        """Gives the session's present conversation a title."""

    async def title(self, session: SessionId) -> str | None:
        """The title of the session's present conversation."""

    async def resume(
        self, here: SessionId, keys: Sequence[str], chosen: Conversation, after: InboxId, now: float
    ) -> Sequence[InboxId]:
        """``keys`` lead to the chosen conversation from now on; what waits ``here`` behind ``after`` goes with them.

        Returns the rows that changed their session.
        """

    async def undo(self, session: SessionId, now: float) -> Undone | None:
        """The last turn is no longer part of the conversation; None if there is none, or one is still open."""

    async def again(self, session: SessionId, command: InboxId, now: float) -> Sequence[InboxRow] | None:
        """Undoes the last turn and accepts its inputs anew, once for each ``command``; None: nothing to repeat.

        The second call for one command finds it done and returns what still waits of it.
        """

    async def branch(self, row: InboxId, now: float) -> SessionId:
        """The row moves to a session of its own (of the same principal); the same one at each call."""

    async def last_active(self, session: SessionId) -> float | None:
        """When the present conversation was last spoken in; None: it is new, or a turn of it is open."""
