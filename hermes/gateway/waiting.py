"""Messages that passed triage and are in no turn yet, by session and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.core.events import Event, MessageEvent
from hermes.core.ids import InboxId, SessionId

EVENT_CACHE = 5_000
"""Events kept beside their rows; beyond it a row is read again when its turn begins."""


class Waiting:
    """Only the loop changes it; the writer's thread asks ``knows`` and ``event`` alone."""

    def __init__(self) -> None:
        self._rows: dict[SessionId, dict[InboxId, bool]] = {}  # → may join a running turn
        self._session_of: dict[InboxId, SessionId] = {}
        self._events: dict[InboxId, Event] = {}

    def add(self, session: SessionId, row: InboxId, event: MessageEvent | None, *, steer: bool = False) -> None:
        """A row may enter a turn from now on; ``event``: what it means, where that is known."""
        self._rows.setdefault(session, {})[row] = steer
        self._session_of[row] = session
        if event is not None and len(self._events) < EVENT_CACHE:
            self._events[row] = event

    def knows(self, row: InboxId) -> bool:
        """Whether the row has passed triage (R12)."""
        return row in self._session_of

    def event(self, row: InboxId) -> Event | None:
        """What it means, if that is still in memory."""
        return self._events.get(row)

    def count(self, session: SessionId) -> int:
        """How many wait in a session."""
        return len(self._rows.get(session, ()))

    def steering(self, session: SessionId) -> Sequence[InboxId]:
        """Those that may join the session's running turn, in order."""
        rows = self._rows.get(session)
        return [row for row, steer in rows.items() if steer] if rows else ()

    def take(self, rows: Iterable[InboxId]) -> dict[InboxId, Event | None]:
        """These are in a turn now, or ended without one."""
        return {row: self._forget(row) for row in rows}

    def drop(self, session: SessionId, below: InboxId) -> None:
        """/stop ended what waited below its line (R14)."""
        for row in [r for r in self._rows.get(session, ()) if r < below]:
            self._forget(row)

    def _forget(self, row: InboxId) -> Event | None:
        session = self._session_of.pop(row, None)
        if session is not None:
            rows = self._rows[session]
            del rows[row]
            if not rows:
                del self._rows[session]
        return self._events.pop(row, None)
