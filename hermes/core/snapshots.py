"""What stands for the covered past of a conversation (R36), and who keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hermes.core.ids import MessageSeq, SessionId, TurnId


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Up to ``covers_to_seq`` the transcript is told by ``text``; "" while nothing is covered (then it is 0).

    Tool results up to ``results_to_seq`` are shown with ``results_chars`` characters at most.
    """

    generation: int
    covers_to_seq: int = 0
    text: str = ""
    results_to_seq: int = 0
    results_chars: int = 0
    id: int | None = None


@dataclass(frozen=True, slots=True)
class LiveHistory:
    """A conversation as a model is to see it, with where each item stands in the transcript.

    ``items`` are JSON texts (``core.transcript.load_item``), ``seqs`` their places; None for the summary's note,
    which no row holds. ``snapshot`` is the present one; without one it has no ``id``. ``last_turn``: whose account
    pays for what is done beside a turn.
    """

    snapshot: Snapshot
    items: tuple[str, ...]
    seqs: tuple[MessageSeq | None, ...]
    last_turn: TurnId | None = None


class Snapshots(Protocol):
    """Keeps snapshots; the transcript itself is never touched."""

    async def live(self, session: SessionId) -> LiveHistory:
        """The conversation as it is on disk now."""

    async def install(self, session: SessionId, previous: int | None, snapshot: Snapshot, now: float) -> bool:
        """Puts ``snapshot`` in place of ``previous``; False, and nothing changed, where another one stands there
        now, the generation is over, or what it covers is no longer in the conversation."""

    async def fall_back(self, session: SessionId, before_seq: int) -> None:
        """What stands at ``before_seq`` and after it is taken back: the newest snapshot that covers none of it
        is the present one again."""
