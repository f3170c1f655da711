"""What was learned about provider + model by a repair that worked (R16): stored with an expiry, listed, cleared."""

from __future__ import annotations

import sqlite3

from hermes.core.learned import Learned
from hermes.store.database import Database


class SqliteLearned:
    """Implements ``core.learned.LearnedStore``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self, now: float) -> list[Learned]:
        """Everything that has not expired, by name."""
        return await self._db.read(
            lambda conn: [
                Learned(*row)
                for row in conn.execute(
                    "SELECT provider, model, key, value, learned_at, expires_at FROM learned WHERE expires_at > ? "
                    "ORDER BY provider, model, key",
                    (now,),
                )
            ]
        )

    async def keep(self, learned: Learned) -> None:
        """One fact; a later one of the same key takes its place, and what has expired goes."""

        def write(conn: sqlite3.Connection) -> None:
            conn.execute("DELETE FROM learned WHERE expires_at <= ?", (learned.learned_at,))
            conn.execute(
                "INSERT OR REPLACE INTO learned(provider, model, key, value, learned_at, expires_at) "
                "VALUES (?,?,?,?,?,?)",
                (learned.provider, learned.model, learned.key, learned.value, learned.learned_at, learned.expires_at),
            )

        await self._db.write(write)

    async def clear(self, provider: str = "", model: str = "") -> int:
        """Forgets all of one model of a provider, or simply all; returns how many."""

        def write(conn: sqlite3.Connection) -> int:
            if not provider:
                return conn.execute("DELETE FROM learned").rowcount
            return conn.execute("DELETE FROM learned WHERE provider = ? AND model = ?", (provider, model)).rowcount

        return await self._db.write(write)
