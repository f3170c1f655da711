"""Home channels that were set from a chat."""

from __future__ import annotations

import json
import sqlite3

from hermes.core.events import Address
from hermes.store.database import Database

_PREFIX = "home:"


class SqliteHomes:
    """Implements ``core.homes.HomeStore``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self) -> dict[str, Address]:
        def find(conn: sqlite3.Connection) -> dict[str, Address]:
            found = conn.execute(
                "SELECT key, value FROM settings WHERE substr(key, 1, ?)=?", (len(_PREFIX), _PREFIX)
            )
            return {key.removeprefix(_PREFIX): Address(**json.loads(value)) for key, value in found}

        return await self._db.read(find)

    async def keep(self, address: Address) -> None:
        value = json.dumps(
            {
                "platform": address.platform, "account": address.account, "chat_id": address.chat_id,
                "thread_id": address.thread_id,
            }
        )  # fmt: skip
        await self._db.write(
            lambda conn: conn.execute(
                "INSERT OR REPLACE INTO settings VALUES (?,?)", (f"{_PREFIX}{address.platform}", value)
            )
        )
