"""Turns that wait for an upstream's outage to end (R13, R30).

While parked a turn is ``suspended`` with the cause ``outage``; its inputs stay bound, its session takes no
new turn, /stop ends it as it ends one that waits for a person.
"""

from __future__ import annotations

import sqlite3

from hermes.core.errors import LostFence
from hermes.core.governor import Park, ParkedTurn
from hermes.core.ids import SessionId, TurnId
from hermes.core.principals import PrincipalId
from hermes.core.records import NewDelivery, OutboxRow, TurnCause
from hermes.store.database import Database
from hermes.store.ledger import charge_open, settle
from hermes.store.rows import TURNS_OPEN, insert_delivery

_TOLD = "outage_told:"
_TOLD_SECONDS = 7 * 86_400.0


class SqliteParking:
    """Implements ``core.governor.Parking``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def park(self, park: Park, notice: NewDelivery, now: float) -> list[OutboxRow]:
        owner = self._db.generation

        def suspend(conn: sqlite3.Connection) -> list[OutboxRow]:
            changed = conn.execute(
                "UPDATE turns SET state='suspended', cause=?, reason=?, step=?, active_seconds=?, "
                "suspended_until=coalesce(suspended_until, ?) "
                "WHERE id=? AND epoch=? AND state='running' AND cause IS NULL",
                (TurnCause.OUTAGE.value, park.outage, park.step - 1, park.active_seconds, park.until,
                 park.turn_id, park.epoch),
            ).rowcount  # fmt: skip
            if not changed:
                raise LostFence(f"turn {park.turn_id} is no longer at epoch {park.epoch}, or its end was decided")
            conn.execute(
                "UPDATE journal SET open=0, ended_at=? WHERE turn_id=? AND kind='model' AND open=1",
                (now, park.turn_id),
            )
            settle(conn, park.charges, now)
            charge_open(conn, park.turn_id, now)
            told = _told(conn, park, notice, now)
            conn.execute(
                "INSERT INTO journal(turn_id, epoch, step, kind, name, open, at) VALUES (?,?,?,'outage',?,0,?)",
                (park.turn_id, park.epoch, park.step, park.outage, now),
            )
            if told:
                return []
            return insert_delivery(
                conn, notice, now, turn_id=park.turn_id, epoch=park.epoch, generation=owner
            )

        return await self._db.write(suspend)

    async def parked(self) -> list[ParkedTurn]:
        return await self._db.read(
            lambda conn: [
                ParkedTurn(TurnId(r[0]), SessionId(r[1]), PrincipalId(r[2]), r[3] or "", r[4] or 0.0)
                for r in conn.execute(
                    "SELECT id, session_id, principal_id, reason, suspended_until FROM turns "
                    f"WHERE state='suspended' AND cause=? AND {TURNS_OPEN} ORDER BY id",
                    (TurnCause.OUTAGE.value,),
                )
            ]
        )

    async def resume(self, turn: TurnId, now: float) -> bool:
        return await self._release(turn, "cause=NULL, reason=NULL")

    async def expire(self, turn: TurnId, now: float) -> bool:
        return await self._release(turn, "reason=NULL")

    async def _release(self, turn: TurnId, change: str) -> bool:
        def release(conn: sqlite3.Connection) -> bool:
            return bool(
                conn.execute(
                    f"UPDATE turns SET state='running', {change} WHERE id=? AND state='suspended' AND cause=?",
                    (turn, TurnCause.OUTAGE.value),
                ).rowcount
            )

        return await self._db.write(release)


def _told(conn: sqlite3.Connection, park: Park, notice: NewDelivery, now: float) -> bool:
    """Whether this turn has said so before, or its chat has heard of this outage (R30)."""
    a = notice.address
    conn.execute(
        "DELETE FROM settings WHERE key>=? AND key<? AND CAST(value AS REAL)<?",
        (_TOLD, _TOLD + "\U0010ffff", now - _TOLD_SECONDS),
    )
    first = conn.execute(
        "INSERT OR IGNORE INTO settings VALUES (?,?)",
        (f"{_TOLD}{park.outage}:{a.platform}:{a.account}:{a.chat_id}", str(now)),
    ).rowcount
    before = conn.execute(
        "SELECT 1 FROM journal WHERE turn_id=? AND kind='outage' LIMIT 1", (park.turn_id,)
    ).fetchone()
    return not first or before is not None
