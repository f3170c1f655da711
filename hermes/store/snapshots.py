"""Snapshots of conversations, and the live history that follows from them (R36).

    messages   1 2 3 4 5 6 7 8 9        rows, never changed
    snapshot   └── covers ──┘ 7 8 9     live: the note, the last person's message, and what comes after the cut

The last person's message is live even where the cut lies behind it: a long turn is compacted while it runs.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from hermes.core.ids import MessageSeq, SessionId, TurnId
from hermes.core.snapshots import LiveHistory, Snapshot
from hermes.core.transcript import ToolResultItem, dump_item, load_item
from hermes.policy.compaction import summary_note
from hermes.policy.trim import is_person, shortened
from hermes.store.database import Database
from hermes.store.rows import TURNS_OPEN

_COLUMNS = "generation, covers_to_seq, text, results_to_seq, results_chars, id"
_USER = '{"t":"u"'
_RESULT = '{"t":"r"'


class SqliteSnapshots:
    """Implements ``core.snapshots.Snapshots``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def live(self, session: SessionId) -> LiveHistory:
        def look(conn: sqlite3.Connection) -> LiveHistory:
            found = live(conn, session)
            if found.last_turn is not None:
                return found
            last = conn.execute(
                "SELECT t.id FROM messages m JOIN turns t ON t.id=m.turn_id WHERE m.session_id=? AND "
                "m.generation=? ORDER BY m.seq DESC LIMIT 1",
                (session, found.snapshot.generation),
            ).fetchone()
            return replace(found, last_turn=TurnId(last[0]) if last else None)

        return await self._db.read(look)

    async def install(self, session: SessionId, previous: int | None, snapshot: Snapshot, now: float) -> bool:
        return await self._db.write(lambda conn: _install(conn, session, previous, snapshot, now))

    async def fall_back(self, session: SessionId, before_seq: int) -> None:
        await self._db.write(lambda conn: fall_back(conn, session, before_seq))


def live(conn: sqlite3.Connection, session: SessionId) -> LiveHistory:
    """The items a model is to see, oldest first.

    An open turn goes on in the generation it began in, whatever /new did meanwhile: its own words are there.
    """
    found = conn.execute("SELECT generation, cut_seq, snapshot_id FROM sessions WHERE id=?", (session,)).fetchone()
    if found is None:
        return LiveHistory(Snapshot(0), (), ())
    current, cut, chosen = found
    turn = conn.execute(
        f"SELECT generation, id FROM turns WHERE session_id=? AND {TURNS_OPEN} LIMIT 1", (session,)
    ).fetchone()
    generation = turn[0] if turn else current
    snapshot = _snapshot(conn, session, generation, chosen if generation == current else None, current)
    least = max(snapshot.covers_to_seq + 1, cut if generation == current else 0)
    rows: list[tuple[MessageSeq | None, str]] = conn.execute(
        "SELECT seq, item FROM messages WHERE session_id=? AND generation=? AND live=1 AND seq>=? ORDER BY seq",
        (session, generation, least),
    ).fetchall()
    if snapshot.results_to_seq:
        rows = [(seq, _short(seq, item, snapshot)) for seq, item in rows]
    if snapshot.covers_to_seq:
        if not any(_is_person(item) for _, item in rows):
            rows[:0] = _last_person(conn, session, generation, snapshot.covers_to_seq)
        rows.insert(0, (None, dump_item(summary_note(snapshot.text))))
    return LiveHistory(
        snapshot, tuple(item for _, item in rows), tuple(seq for seq, _ in rows), TurnId(turn[1]) if turn else None
    )


def live_history(conn: sqlite3.Connection, session: SessionId) -> tuple[str, ...]:
    """``live``'s items alone."""
    return live(conn, session).items


def fall_back(conn: sqlite3.Connection, session: SessionId, before_seq: int) -> None:
    """See ``Snapshots.fall_back``. Snapshots that cover what was taken back would bring it back: they go."""
    conn.execute("DELETE FROM snapshots WHERE session_id=? AND covers_to_seq>=?", (session, before_seq))
    conn.execute(
        "UPDATE sessions SET snapshot_id=(SELECT max(n.id) FROM snapshots n WHERE n.session_id=sessions.id AND "
        "n.generation=sessions.generation) WHERE id=?",
        (session,),
    )


def _snapshot(
    conn: sqlite3.Connection, session: str, generation: int, chosen: int | None, current: int
) -> Snapshot:
    """The session's own; in an older generation its newest one."""
    if generation != current:
        found = conn.execute(
            f"SELECT {_COLUMNS} FROM snapshots WHERE session_id=? AND generation=? ORDER BY id DESC LIMIT 1",
            (session, generation),
        ).fetchone()
    elif chosen is not None:
        found = conn.execute(f"SELECT {_COLUMNS} FROM snapshots WHERE id=?", (chosen,)).fetchone()
    else:
        found = None
    return Snapshot(*found) if found else Snapshot(generation)


def _install(
    conn: sqlite3.Connection, session: str, previous: int | None, snapshot: Snapshot, now: float
) -> bool:
    generation, standing = conn.execute(
        "SELECT generation, snapshot_id FROM sessions WHERE id=?", (session,)
    ).fetchone()
    if (generation, standing) != (snapshot.generation, previous):
        return False
    seq = max(snapshot.covers_to_seq, snapshot.results_to_seq)
    there = conn.execute(
        "SELECT 1 FROM messages WHERE seq=? AND session_id=? AND generation=? AND live=1", (seq, session, generation)
    ).fetchone()
    if there is None:
        return False
    row = conn.execute(
        "INSERT INTO snapshots(session_id, generation, covers_to_seq, previous_id, text, results_to_seq, "
        "results_chars, created_at) VALUES (?,?,?,?,?,?,?,?)",
        (session, generation, snapshot.covers_to_seq, previous, snapshot.text, snapshot.results_to_seq,
         snapshot.results_chars, now),
    ).lastrowid  # fmt: skip
    conn.execute("UPDATE sessions SET snapshot_id=? WHERE id=?", (row, session))
    return True


def _is_person(item: str) -> bool:
    return item.startswith(_USER) and is_person(load_item(item))


def _last_person(
    conn: sqlite3.Connection, session: str, generation: int, up_to: int
) -> list[tuple[MessageSeq | None, str]]:
    """The newest row of a person at or before the cut, if there is one."""
    found = conn.execute(
        "SELECT seq, item FROM messages WHERE session_id=? AND generation=? AND live=1 AND seq<=? ORDER BY seq DESC",
        (session, generation, up_to),
    )
    return next(([(seq, item)] for seq, item in found if _is_person(item)), [])


def _short(seq: MessageSeq | None, item: str, snapshot: Snapshot) -> str:
    """A row with its result cut, if it is an old one; cut the same each time, so that requests stay the same."""
    if seq is None or seq > snapshot.results_to_seq or len(item) <= snapshot.results_chars:
        return item
    if not item.startswith(_RESULT):
        return item
    result = load_item(item)
    assert isinstance(result, ToolResultItem)
    return dump_item(replace(result, text=shortened(result.text, snapshot.results_chars)))
