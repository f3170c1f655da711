"""What has been kept long enough goes, a few rows at a time (R35).

Only what is over is touched: finished rows and turns, delivered, withdrawn or failed parts, old messages with
their entries in the text index. A dead letter stays until the owner dropped it or its age is over too.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from hermes.store.database import Database

BATCH = 200
"""Rows of a class that one transaction deletes: no other write waits for long."""


@dataclass(frozen=True, slots=True)
class Ages:
    """Seconds that each class is kept; see ``retention`` in the configuration."""

    messages: float
    inbox: float
    outbox: float
    seen_keys: float


async def sweep(db: Database, ages: Ages, now: float) -> int:
    """One batch of each class, in one transaction. Returns how many rows went; 0 when nothing is due."""
    return await db.write(lambda conn: _sweep(conn, ages, now))


def _sweep(conn: sqlite3.Connection, ages: Ages, now: float) -> int:
    gone = conn.execute(
        "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE state='done' AND done_at<? LIMIT ?)",
        (now - ages.inbox, BATCH),
    ).rowcount
    gone += conn.execute(
        "DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE done_at IS NOT NULL AND done_at<? AND "
        "state IN ('delivered', 'withdrawn', 'failed', 'held') LIMIT ?)",
        (now - ages.outbox, BATCH),
    ).rowcount
    gone += conn.execute(
        "DELETE FROM seen_keys WHERE (platform, account, dedup_key) IN "
        "(SELECT platform, account, dedup_key FROM seen_keys WHERE seen_at<? LIMIT ?)",
        (now - ages.seen_keys, BATCH),
    ).rowcount
    gone += _ledger(conn, now - ages.messages) + _snapshots(conn, now - ages.messages)
    gone += conn.execute(
        "DELETE FROM conversation_titles AS t WHERE at<? AND NOT EXISTS (SELECT 1 FROM messages m WHERE "
        "m.session_id=t.session_id AND m.generation=t.generation)",
        (now - ages.messages,),
    ).rowcount
    return gone + _turns(conn, now - max(ages.inbox, ages.outbox)) + _messages(conn, now - ages.messages)


def _ledger(conn: sqlite3.Connection, before: float) -> int:
    """As old as messages: what they cost, and the totals of days and conversations that are over."""
    gone = conn.execute(
        "DELETE FROM ledger WHERE id IN (SELECT id FROM (SELECT id, at FROM ledger ORDER BY id LIMIT ?) WHERE at<?)",
        (BATCH, before),
    ).rowcount
    return gone + conn.execute(
        "DELETE FROM spend WHERE key IN (SELECT key FROM spend WHERE at<? LIMIT ?)", (before, BATCH)
    ).rowcount


def _snapshots(conn: sqlite3.Connection, before: float) -> int:
    """As old as messages: all that such a summary tells of is gone with it."""
    due = conn.execute("SELECT id FROM snapshots WHERE created_at<? LIMIT ?", (before, BATCH)).fetchall()
    conn.executemany("UPDATE sessions SET snapshot_id=NULL WHERE snapshot_id=?", due)
    conn.executemany("DELETE FROM snapshots WHERE id=?", due)
    return len(due)


def _turns(conn: sqlite3.Connection, before: float) -> int:
    due = conn.execute("SELECT id FROM turns WHERE state='done' AND ended_at<? LIMIT ?", (before, BATCH)).fetchall()
    conn.executemany("DELETE FROM turn_inputs WHERE turn_id=?", due)
    conn.executemany("DELETE FROM journal WHERE turn_id=?", due)
    conn.executemany("DELETE FROM turns WHERE id=?", due)
    return len(due)


def _messages(conn: sqlite3.Connection, before: float) -> int:
    due = conn.execute(
        "SELECT seq, text FROM (SELECT seq, text, created_at FROM messages ORDER BY seq LIMIT ?) WHERE created_at<?",
        (BATCH, before),
    ).fetchall()
    found = conn.execute("SELECT value FROM settings WHERE key='fts_seq'").fetchone()
    indexed = int(found[0]) if found else 0
    # an external-content index forgets a row only when it is handed the row's text (sqlite.org/fts5.html §4.4.3)
    conn.executemany(
        "INSERT INTO messages_fts(messages_fts, rowid, text) VALUES ('delete', ?, ?)",
        [row for row in due if row[1] and row[0] <= indexed],
    )
    conn.executemany("DELETE FROM messages WHERE seq=?", [(seq,) for seq, _ in due])
    return len(due)
