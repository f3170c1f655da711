"""Listing, naming, resuming and taking back conversations; a conversation is one generation of a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hermes.core.conversations import Conversation, Undone
from hermes.core.ids import InboxId, SessionId
from hermes.core.principals import PrincipalId
from hermes.core.records import InboxRow
from hermes.core.transcript import UserItem, load_item
from hermes.core.urgency import Urgency
from hermes.store.database import Database
from hermes.store.inbox import session_for_key
from hermes.store.rows import INBOX_COLUMNS, INBOX_OPEN, TURNS_OPEN, inbox_row
from hermes.store.snapshots import fall_back

AGAIN = "again:"
"""Begins the dedup key of a message that was accepted anew."""
_OPENING_CHARS = 80


class SqliteConversations:
    """Implements ``core.conversations.Conversations``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def recent(self, principal: PrincipalId, limit: int) -> Sequence[Conversation]:
        return await self._db.read(lambda conn: _recent(conn, principal, limit))

    async def name(self, session: SessionId, title: str, now: float) -> None:
        def name(conn: sqlite3.Connection) -> None:
            conn.execute(
                "INSERT INTO conversation_titles SELECT id, generation, ?, ? FROM sessions WHERE id=? "
                "ON CONFLICT DO UPDATE SET title=excluded.title, at=excluded.at",
                (title, now, session),
            )
            conn.execute("UPDATE sessions SET title=? WHERE id=?", (title, session))

        await self._db.write(name)

    async def title(self, session: SessionId) -> str | None:
        def title(conn: sqlite3.Connection) -> str | None:
            found = conn.execute(
                "SELECT t.title FROM sessions s JOIN conversation_titles t ON t.session_id=s.id AND "
                "t.generation=s.generation WHERE s.id=?",
                (session,),
            ).fetchone()
            return str(found[0]) if found else None

        return await self._db.read(title)

    async def resume(
        self, here: SessionId, keys: Sequence[str], chosen: Conversation, after: InboxId, now: float
    ) -> Sequence[InboxId]:
        def resume(conn: sqlite3.Connection) -> list[InboxId]:
            conn.execute(
                "UPDATE sessions SET generation=?, cut_seq=0, last_active_at=?, title=(SELECT title FROM "
                "conversation_titles WHERE session_id=sessions.id AND generation=?), snapshot_id=(SELECT max(id) FROM "
                "snapshots WHERE session_id=sessions.id AND generation=?) WHERE id=? AND generation<>?",
                (chosen.generation, now, chosen.generation, chosen.generation, chosen.session_id, chosen.generation),
            )
            if chosen.session_id == here:
                return []
            for key in keys:
                conn.execute(
                    "UPDATE session_keys SET session_id=? WHERE key=? AND session_id=?",
                    (chosen.session_id, key, here),
                )
            moved = conn.execute(
                f"UPDATE inbox SET session_id=? WHERE session_id=? AND state='new' AND {INBOX_OPEN} AND id>? "
                "RETURNING id",
                (chosen.session_id, here, after),
            )
            return sorted(InboxId(row) for (row,) in moved.fetchall())

        return await self._db.write(resume)

    async def undo(self, session: SessionId, now: float) -> Undone | None:
        def undo(conn: sqlite3.Connection) -> Undone | None:
            found = _undo(conn, session, now)
            return found[1] if found else None

        return await self._db.write(undo)

    async def again(self, session: SessionId, command: InboxId, now: float) -> Sequence[InboxRow] | None:
        return await self._db.write(lambda conn: _again(conn, session, command, now))

    async def branch(self, row: InboxId, now: float) -> SessionId:
        def branch(conn: sqlite3.Connection) -> SessionId:
            principal = conn.execute("SELECT principal_id FROM inbox WHERE id=?", (row,)).fetchone()[0]
            session = session_for_key(conn, f"background:{row}", PrincipalId(principal), now)
            conn.execute(
                "UPDATE inbox SET session_id=?, urgency=? WHERE id=? AND state='new'",
                (session, Urgency.BACKGROUND.value, row),
            )
            return session

        return await self._db.write(branch)

    async def last_active(self, session: SessionId) -> float | None:
        def last(conn: sqlite3.Connection) -> float | None:
            found = conn.execute(
                "SELECT s.last_active_at FROM sessions s WHERE s.id=? AND EXISTS (SELECT 1 FROM messages m WHERE "
                "m.session_id=s.id AND m.generation=s.generation) AND NOT EXISTS (SELECT 1 FROM turns WHERE "
                f"session_id=s.id AND {TURNS_OPEN})",
                (session,),
            ).fetchone()
            return float(found[0]) if found else None

        return await self._db.read(last)


def _recent(conn: sqlite3.Connection, principal: str, limit: int) -> list[Conversation]:
    found = conn.execute(
        "SELECT m.session_id, m.generation, count(*), max(m.created_at), min(m.seq), s.generation, t.title "
        "FROM (SELECT id, generation FROM sessions WHERE principal_id=? ORDER BY last_active_at DESC LIMIT ?) s "
        "JOIN messages m ON m.session_id=s.id "
        "LEFT JOIN conversation_titles t ON t.session_id=m.session_id AND t.generation=m.generation "
        "WHERE m.live=1 GROUP BY m.session_id, m.generation ORDER BY max(m.seq) DESC LIMIT ?",
        (principal, limit, limit),
    ).fetchall()
    listed = []
    for session, generation, count, last, first, present, title in found:
        item = load_item(conn.execute("SELECT item FROM messages WHERE seq=?", (first,)).fetchone()[0])
        opening = " ".join(item.text.split())[:_OPENING_CHARS]
        listed.append(
            Conversation(SessionId(session), generation, title, opening, count, last, generation == present)
        )
    return listed


def _undo(conn: sqlite3.Connection, session: str, now: float) -> tuple[int, Undone] | None:
    """The turn that was taken back; None where one is still open or nothing is left."""
    if conn.execute(f"SELECT 1 FROM turns WHERE session_id=? AND {TURNS_OPEN}", (session,)).fetchone():
        return None
    found = conn.execute(
        "SELECT m.turn_id FROM messages m JOIN sessions s ON s.id=m.session_id AND s.generation=m.generation "
        "WHERE m.session_id=? AND m.live=1 ORDER BY m.seq DESC LIMIT 1",
        (session,),
    ).fetchone()
    if found is None or found[0] is None:
        return None
    turn = int(found[0])
    items = conn.execute(
        "SELECT seq, item FROM messages WHERE turn_id=? AND live=1 ORDER BY seq", (turn,)
    ).fetchall()
    conn.execute("UPDATE messages SET live=0 WHERE turn_id=?", (turn,))
    fall_back(conn, SessionId(session), items[0][0])
    conn.execute("UPDATE sessions SET last_active_at=? WHERE id=?", (now, session))
    said = [i.text for i in (load_item(text) for _, text in items) if isinstance(i, UserItem) and not i.note]
    return turn, Undone("\n\n".join(said), len(items))


def _again(conn: sqlite3.Connection, session: str, command: int, now: float) -> list[InboxRow] | None:
    prefix = f"{AGAIN}{command}:"
    repeated = conn.execute(
        f"SELECT {INBOX_COLUMNS}, state FROM inbox WHERE session_id=? AND id>? AND "
        "substr(dedup_key, 1, ?)=? ORDER BY id",
        (session, command, len(prefix), prefix),
    ).fetchall()
    if repeated:  # the command ran before, and was cut off before its row was ended
        return [inbox_row(r) for r in repeated if r[-1] == "new"]
    undone = _undo(conn, session, now)
    if undone is None:
        return None
    originals = conn.execute(
        "SELECT i.id FROM turn_inputs t JOIN inbox i ON i.id=t.inbox_id WHERE t.turn_id=? ORDER BY i.id", (undone[0],)
    ).fetchall()
    for (original,) in originals:
        conn.execute(
            "INSERT INTO inbox(platform, account, dedup_key, message_ref, session_id, principal_id, user_id, display, "
            "chat_id, chat_kind, thread_id, raw, state, received_at, sent_at, user_roles) SELECT platform, account, ?, "
            "message_ref, session_id, principal_id, user_id, display, chat_id, chat_kind, thread_id, raw, 'new', ?, "
            "sent_at, user_roles FROM inbox WHERE id=?",
            (f"{prefix}{original}", now, original),
        )
    found = conn.execute(
        f"SELECT {INBOX_COLUMNS} FROM inbox WHERE session_id=? AND id>? AND substr(dedup_key, 1, ?)=? ORDER BY id",
        (session, command, len(prefix), prefix),
    )
    return [inbox_row(r) for r in found.fetchall()] or None
