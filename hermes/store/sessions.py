"""What readers see: history, search, lists, figures. Always filtered by principal where a person asks (R37)."""

from __future__ import annotations

import sqlite3

from hermes.core.ids import MessageSeq, SessionId, TurnId
from hermes.core.principals import ChatKind, ChatRef, PrincipalId
from hermes.core.records import InboxRow, OutboxRow, SessionInfo, StoredMessage, StoreFigures, StrangerCount
from hermes.core.transcript import load_item, without_lone_surrogates
from hermes.store.database import Database
from hermes.store.rows import (
    INBOX_COLUMNS,
    INBOX_OPEN,
    OUTBOX_COLUMNS,
    OUTBOX_DEAD,
    OUTBOX_OPEN,
    TURNS_OPEN,
    inbox_row,
    outbox_row,
)

_MESSAGE = "m.seq, m.session_id, m.item, m.created_at, m.turn_id"
_INDEX_BATCH = 500
_TRIGRAM = 3
MAX_QUERY_WORDS = 32
"""FTS5 refuses expressions beyond a depth of 256; nobody means that many words."""


class SqliteSessions:
    """Implements ``ports.Sessions``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def history(self, session: SessionId, after_seq: int, limit: int) -> list[StoredMessage]:
        return await self._db.read(
            lambda conn: [
                _message(r)
                for r in conn.execute(
                    f"SELECT {_MESSAGE} FROM messages m JOIN sessions s ON s.id=m.session_id AND "
                    "s.generation=m.generation WHERE m.session_id=? AND m.seq>? ORDER BY m.seq LIMIT ?",
                    (session, after_seq, limit),
                )
            ]
        )

    async def search(self, principal: PrincipalId, query: str, limit: int) -> list[StoredMessage]:
        """Words of three letters and more use the index; shorter ones (Chinese, Japanese) are scanned for."""
        await self.index_new_text()
        words = without_lone_surrogates(query).replace("\0", " ").split()[:MAX_QUERY_WORDS]

        def find(conn: sqlite3.Connection) -> list[StoredMessage]:
            long = [w for w in words if len(w) >= _TRIGRAM]
            short = [w for w in words if len(w) < _TRIGRAM]
            source, order = "messages m", "m.seq"
            clauses = ["m.principal_id=?", "m.text<>''"]
            values: list[object] = [principal]
            if long:  # in the index's own order: a common word is read only until enough is found
                source, order = "messages_fts f CROSS JOIN messages m ON m.seq=f.rowid", "f.rowid"
                clauses.append("messages_fts MATCH ?")
                values.append(" ".join('"' + w.replace('"', '""') + '"' for w in long))
            for word in short:
                clauses.append("instr(lower(m.text), lower(?))>0")
                values.append(word)
            found = conn.execute(
                f"SELECT {_MESSAGE} FROM {source} WHERE {' AND '.join(clauses)} ORDER BY {order} DESC LIMIT ?",
                (*values, limit),
            )
            return [_message(r) for r in found]

        return await self._db.read(find) if words else []

    async def index_new_text(self) -> int:
        """Brings the full-text index up to date in small batches; returns how many texts were added.

        The index is filled behind the messages, not with each: a message then costs no index write.
        """
        total = 0
        while added := await self._db.write(_index_batch):
            total += added
            if added < _INDEX_BATCH:
                break
        return total

    async def overview(self, principal: PrincipalId | None, limit: int) -> list[SessionInfo]:
        def find(conn: sqlite3.Connection) -> list[SessionInfo]:
            where, values = ("WHERE s.principal_id=?", [principal]) if principal else ("", [])
            found = conn.execute(
                "SELECT s.*, (SELECT count(*) FROM messages m WHERE m.session_id=s.id) FROM "
                "(SELECT s.id, s.principal_id, s.title, s.created_at, s.last_active_at FROM sessions s "
                f"{where} ORDER BY s.last_active_at DESC LIMIT ?) s",
                (*values, limit),
            )
            return [SessionInfo(SessionId(r[0]), PrincipalId(r[1]), *r[2:]) for r in found]

        return await self._db.read(find)

    async def session_for(self, key: str) -> SessionId | None:
        def find(conn: sqlite3.Connection) -> SessionId | None:
            found = conn.execute("SELECT session_id FROM session_keys WHERE key=?", (key,)).fetchone()
            return SessionId(found[0]) if found else None

        return await self._db.read(find)

    async def deliveries(self, platform: str, chat_id: str, after_seq: int, limit: int) -> list[OutboxRow]:
        return await self._db.read(
            lambda conn: [
                outbox_row(r)
                for r in conn.execute(
                    f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE platform=? AND chat_id=? AND seq>? AND "
                    "state='delivered' ORDER BY seq LIMIT ?",
                    (platform, chat_id, after_seq, limit),
                )
            ]
        )

    async def said(self, platform: str, chat_id: str, after_id: int, limit: int) -> list[InboxRow]:
        return await self._db.read(
            lambda conn: [
                inbox_row(r)
                for r in conn.execute(
                    f"SELECT {INBOX_COLUMNS} FROM inbox WHERE platform=? AND chat_id=? AND id>? ORDER BY id LIMIT ?",
                    (platform, chat_id, after_id, limit),
                )
            ]
        )

    async def recent_positions(self, platform: str, chat_id: str, limit: int) -> tuple[int, int]:
        """(outbox seq, inbox id) after which at most ``limit`` lines of a chat follow."""

        def find(conn: sqlite3.Connection) -> tuple[int, int]:
            times = [
                r[0]
                for r in conn.execute(
                    "SELECT at FROM (SELECT created_at AS at FROM outbox WHERE platform=? AND chat_id=? AND "
                    "state='delivered' UNION ALL SELECT received_at FROM inbox WHERE platform=? AND chat_id=?) "
                    "ORDER BY at DESC LIMIT 1 OFFSET ?",
                    (platform, chat_id, platform, chat_id, limit),
                )
            ]
            if not times:
                return 0, 0
            out = conn.execute(
                "SELECT coalesce(max(seq), 0) FROM outbox WHERE platform=? AND chat_id=? AND created_at<=?",
                (platform, chat_id, times[0]),
            ).fetchone()[0]
            inbox = conn.execute(
                "SELECT coalesce(max(id), 0) FROM inbox WHERE platform=? AND chat_id=? AND received_at<=?",
                (platform, chat_id, times[0]),
            ).fetchone()[0]
            return int(out), int(inbox)

        return await self._db.read(find)

    async def chats(self, platform: str) -> list[tuple[str, str, str | None]]:
        """(account, chat id, thread id) of chats the platform has spoken from, most recent first."""
        return await self._db.read(
            lambda conn: [
                (r[0], r[1], r[2])
                for r in conn.execute(
                    "SELECT account, chat_id, thread_id, max(id) FROM inbox WHERE platform=? AND chat_id IS NOT NULL "
                    "GROUP BY account, chat_id, thread_id ORDER BY 4 DESC LIMIT 1000",
                    (platform,),
                )
            ]
        )

    async def figures(self) -> StoreFigures:
        return await self._db.read(_figures)

    async def strangers(self, limit: int) -> list[StrangerCount]:
        def find(conn: sqlite3.Connection) -> list[StrangerCount]:
            found = conn.execute(
                "SELECT platform, account, user_id, count, last_at, chat_id FROM stranger_counts "
                "ORDER BY last_at DESC LIMIT ?",
                (limit,),
            )
            return [
                StrangerCount(r[0], r[1], r[2], r[3], r[4], _chat(r[0], r[1], r[5])) for r in found
            ]

        return await self._db.read(find)


def _chat(platform: str, account: str, chat_id: str | None) -> ChatRef | None:
    return ChatRef(platform, account, chat_id, None, ChatKind.PRIVATE) if chat_id else None


def _index_batch(conn: sqlite3.Connection) -> int:
    done = conn.execute("SELECT value FROM settings WHERE key='fts_seq'").fetchone()
    after = int(done[0]) if done else 0
    rows = conn.execute(
        "SELECT seq, text FROM messages WHERE seq>? ORDER BY seq LIMIT ?", (after, _INDEX_BATCH)
    ).fetchall()
    if not rows:
        return 0
    conn.executemany("INSERT INTO messages_fts(rowid, text) VALUES (?,?)", [r for r in rows if r[1]])
    conn.execute("INSERT OR REPLACE INTO settings VALUES ('fts_seq', ?)", (str(rows[-1][0]),))
    return len(rows)


def _message(r: tuple[int, str, str, float, int | None]) -> StoredMessage:
    return StoredMessage(
        MessageSeq(r[0]), SessionId(r[1]), load_item(r[2]), r[3], TurnId(r[4]) if r[4] is not None else None
    )


def _figures(conn: sqlite3.Connection) -> StoreFigures:
    def one(sql: str) -> tuple[int, float | None]:
        found = conn.execute(sql).fetchone()
        return int(found[0]), found[1]

    new, oldest_in = one(
        f"SELECT count(*), min(received_at) FROM inbox i WHERE state='new' AND {INBOX_OPEN} AND not_before<1e12 AND "
        "NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id=i.session_id AND t.state='suspended' AND t.state<>'done')"
    )
    claimed, _ = one("SELECT count(*), NULL FROM inbox WHERE state='claimed'")
    pending, oldest_out = one(
        f"SELECT count(*), min(created_at) FROM outbox WHERE state IN ('pending', 'sending') AND {OUTBOX_OPEN}"
    )
    held, _ = one(f"SELECT count(*), NULL FROM outbox WHERE state='held' AND {OUTBOX_DEAD}")
    failed, _ = one(f"SELECT count(*), NULL FROM outbox WHERE state='failed' AND {OUTBOX_DEAD}")
    suspended, _ = one(f"SELECT count(*), NULL FROM turns WHERE state='suspended' AND {TURNS_OPEN}")
    sessions, _ = one("SELECT count(*), NULL FROM sessions")
    dead, _ = one("SELECT count(*), NULL FROM inbox WHERE outcome='dead_letter'")
    return StoreFigures(new, claimed, oldest_in, pending, oldest_out, held, failed, suspended, sessions, dead)
