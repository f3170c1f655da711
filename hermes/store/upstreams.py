"""What the governor knows of each upstream, across restarts."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.governor import StoredUpstream
from hermes.store.database import Database


class SqliteUpstreams:
    """Implements ``core.governor.UpstreamStore``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def load(self) -> list[StoredUpstream]:
        return await self._db.read(
            lambda conn: [
                StoredUpstream(r[0], r[1], r[2], r[3])
                for r in conn.execute("SELECT target, state, blocked_until, updated_at FROM upstreams")
            ]
        )

    async def save(self, upstreams: Sequence[StoredUpstream]) -> None:
        await self._db.write(
            lambda conn: conn.executemany(
                "INSERT OR REPLACE INTO upstreams(target, state, blocked_until, updated_at) VALUES (?,?,?,?)",
                [(u.target, u.state, u.blocked_until, u.updated_at) for u in upstreams],
            )
        )
