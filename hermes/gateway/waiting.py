"""Rows that passed triage and are in no turn yet, by session and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from hermes.core.events import Event, MessageEvent
from hermes.core.ids import InboxId, SessionId
from hermes.core.records import InboxRow

EVENT_CACHE = 5_000
"""Events kept beside their rows; beyond it a row is read again when its turn begins."""


class Entrance(Enum):
    """What a waiting row is for."""

    MESSAGE = auto()
    STEER = auto()
    """It may join a turn that runs already."""
    COMMAND = auto()
    """It runs in its place: after what came before it, before what came after it."""


@dataclass(frozen=True, slots=True)
class DueCommand:
    """A command whose turn it is."""

    row: InboxRow
    event: MessageEvent


class Waiting:
    """Only the loop changes it; the writer's thread asks ``may_begin`` and ``event`` alone."""

    def __init__(self) -> None:
        self._rows: dict[SessionId, dict[InboxId, Entrance]] = {}
        self._session_of: dict[InboxId, SessionId] = {}
        self._events: dict[InboxId, Event] = {}
        self._commands: dict[SessionId, list[DueCommand]] = {}

    def add(
        self, session: SessionId, row: InboxId, event: MessageEvent | None, role: Entrance = Entrance.MESSAGE
    ) -> None:
        """A row may enter a turn from now on; ``event``: what it means, where that is known."""
        self._rows.setdefault(session, {})[row] = role
        self._session_of[row] = session
        if event is not None and len(self._events) < EVENT_CACHE:
            self._events[row] = event

    def add_joining(self, session: SessionId, row: InboxId, event: MessageEvent) -> None:
        """A row that may join the session's running turn."""
        self.add(session, row, event, Entrance.STEER)

    def add_command(self, session: SessionId, row: InboxRow, event: MessageEvent) -> None:
        """A command that takes its place among the session's messages."""
        self.add(session, row.id, None, Entrance.COMMAND)
        self._commands.setdefault(session, []).append(DueCommand(row, event))

    def knows(self, row: InboxId) -> bool:
        """Whether the row has passed triage (R12) and waits still."""
        return row in self._session_of

    def may_begin(self, session: SessionId, row: InboxId) -> bool:
        """Whether a turn may take the row now: it waits, and no command stands before it."""
        if row not in self._session_of:
            return False
        commands = self._commands.get(session)
        return not commands or row < commands[0].row.id

    def event(self, row: InboxId) -> Event | None:
        """What it means, if that is still in memory."""
        return self._events.get(row)

    def count(self, session: SessionId) -> int:
        """How many wait in a session."""
        return len(self._rows.get(session, ()))

    def steering(self, session: SessionId) -> Sequence[InboxId]:
        """Those that may join the session's running turn, in order."""
        rows = self._rows.get(session)
        if not rows:
            return ()
        return [row for row, role in rows.items() if role is Entrance.STEER and self.may_begin(session, row)]

    def next_command(self, session: SessionId) -> DueCommand | None:
        """The session's first waiting command, whatever stands before it."""
        commands = self._commands.get(session)
        return commands[0] if commands else None

    def due_command(self, session: SessionId) -> DueCommand | None:
        """The command whose place has come: nothing of the session waits before it."""
        command = self.next_command(session)
        if command is None or any(row < command.row.id for row in self._rows[session]):
            return None
        return command

    def take(self, rows: Iterable[InboxId]) -> dict[InboxId, Event | None]:
        """These are in a turn now, or ended without one."""
        return {row: self._forget(row) for row in rows}

    def move(self, here: SessionId, there: SessionId, rows: Iterable[InboxId]) -> None:
        """They wait in another session from now on, in the order of their ids."""
        old = self._rows.get(here, {})
        for row in [r for r in rows if r in old]:
            role = old.pop(row)
            self._rows.setdefault(there, {})[row] = role
            self._session_of[row] = there
            commands = self._commands.get(here, [])
            for command in [c for c in commands if c.row.id == row]:
                commands.remove(command)
                self._commands.setdefault(there, []).append(command)
        if here in self._rows and not self._rows[here]:
            del self._rows[here]
        if here in self._commands and not self._commands[here]:
            del self._commands[here]

    def drop(self, session: SessionId, below: InboxId) -> None:
        """/stop ended what waited below its line (R14)."""
        for row in [r for r in self._rows.get(session, ()) if r < below]:
            self._forget(row)

    def _forget(self, row: InboxId) -> Event | None:
        session = self._session_of.pop(row, None)
        if session is not None:
            rows = self._rows[session]
            if rows.pop(row) is Entrance.COMMAND:
                left = [c for c in self._commands[session] if c.row.id != row]
                if left:
                    self._commands[session] = left
                else:
                    del self._commands[session]
            if not rows:
                del self._rows[session]
        return self._events.pop(row, None)
