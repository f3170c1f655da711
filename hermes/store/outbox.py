"""The outbox's rows through their states; each function handed to the writer is one transaction (R23)."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from hermes.core.delivery import Operation
from hermes.core.errors import LostFence
from hermes.core.events import Address
from hermes.core.ids import DeliveryId, TurnId
from hermes.core.records import Draft, NewDelivery, OutboxRow, Priority
from hermes.policy.delivery import MARK_DELAY
from hermes.store.database import Database
from hermes.store.rows import (
    DEFAULT_EXPIRY_SECONDS,
    OUTBOX_COLUMNS,
    OUTBOX_DEAD,
    OUTBOX_OPEN,
    insert_delivery,
    outbox_row,
)


class SqliteOutbox:
    """Implements ``ports.Outbox``. ``max_age`` bounds rows whose writer named no bound, in seconds."""

    def __init__(self, db: Database, *, max_age: float = DEFAULT_EXPIRY_SECONDS) -> None:
        self._db = db
        self.max_age = max_age

    async def enqueue(self, deliveries: Sequence[NewDelivery], now: float) -> list[OutboxRow]:
        owner = self._db.generation
        return await self._db.write(
            lambda conn: [r for d in deliveries for r in insert_delivery(conn, d, now, generation=owner)]
        )

    async def recover(self, uncertain: str, now: float, safe: Collection[str] = ()) -> int:
        """Rows an earlier process left ``sending``: edits go again, creates are marked or held (R18)."""

        def recover(conn: sqlite3.Connection) -> int:
            places = ",".join("?" * len(safe))
            again = conn.execute(
                f"UPDATE outbox SET state='pending' WHERE state='sending' AND {OUTBOX_OPEN} "
                f"AND (operation<>? OR platform IN ({places}))",
                (Operation.CREATE.value, *safe),
            ).rowcount
            if uncertain == "hold":
                doubtful = conn.execute(
                    "UPDATE outbox SET state='held', reason='killed while sending', done_at=? "
                    f"WHERE state='sending' AND {OUTBOX_OPEN}",
                    (now,),
                ).rowcount
            else:
                doubtful = conn.execute(
                    "UPDATE outbox SET state='pending', mark=1, not_before=max(not_before, ?) "
                    f"WHERE state='sending' AND {OUTBOX_OPEN}",
                    (now + MARK_DELAY,),
                ).rowcount
            return again + doubtful

        return await self._db.write(recover)

    async def pending(self) -> list[OutboxRow]:
        return await self._db.read(
            lambda conn: [
                outbox_row(r)
                for r in conn.execute(
                    f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE state='pending' AND {OUTBOX_OPEN} ORDER BY seq"
                )
            ]
        )

    async def start_sending(self, seq: int, now: float) -> bool:
        owner = self._db.generation
        return await self._db.write(
            lambda conn: (
                conn.execute(
                    "UPDATE outbox SET state='sending', claim_generation=? WHERE seq=? AND state='pending'",
                    (owner, seq),
                ).rowcount
                == 1
            )
        )

    async def reread(self, seq: int) -> OutboxRow | None:
        def find(conn: sqlite3.Connection) -> OutboxRow | None:
            found = conn.execute(f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE seq=?", (seq,)).fetchone()
            return outbox_row(found) if found else None

        return await self._db.read(find)

    async def delivered(self, seq: int, receipt: str | None, now: float) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "UPDATE outbox SET state='delivered', receipt=coalesce(?, receipt), done_at=? WHERE seq=?",
                (receipt, now, seq),
            )
        )

    async def put_back(self, seq: int, *, not_before: float, attempts: int, marked: bool, now: float) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "UPDATE outbox SET state='pending', not_before=?, attempts=?, mark=? WHERE seq=? AND state='sending'",
                (not_before, attempts, int(marked), seq),
            )
        )

    async def hold(self, seq: int, reason: str, now: float) -> None:
        await self._end_delivery(seq, "held", reason, now)

    async def bury(self, seq: int, reason: str, now: float) -> None:
        await self._end_delivery(seq, "failed", reason, now)

    async def _end_delivery(self, seq: int, state: str, reason: str, now: float) -> None:
        """The part and those after it: a held or failed part stops its own delivery only (R20)."""

        def end(conn: sqlite3.Connection) -> None:
            conn.execute(
                "UPDATE outbox SET state=?, reason=?, done_at=? WHERE state IN ('pending', 'sending') AND "
                "delivery_id=(SELECT delivery_id FROM outbox WHERE seq=?) AND "
                "part>=(SELECT part FROM outbox WHERE seq=?)",
                (state, reason, now, seq, seq),
            )

        await self._db.write(end)

    async def withdraw(self, turn: TurnId, now: float) -> int:
        return await self._db.write(
            lambda conn: (
                conn.execute(
                    "UPDATE outbox SET state='withdrawn', done_at=? WHERE turn_id=? AND state='pending'",
                    (now, turn),
                ).rowcount
            )
        )

    async def open_draft(self, turn: TurnId, epoch: int, address: Address, now: float) -> Draft:
        owner = self._db.generation

        def open_draft(conn: sqlite3.Connection) -> Draft:
            live = conn.execute(
                "SELECT session_id FROM turns WHERE id=? AND epoch=? AND state='running'", (turn, epoch)
            ).fetchone()
            if live is None:
                raise LostFence(f"turn {turn} is no longer at epoch {epoch}")
            seq = conn.execute(
                "INSERT INTO outbox(delivery_id, part, session_id, platform, account, chat_id, thread_id, reply_to, "
                "operation, priority, payload, nonce, state, expires_at, turn_id, epoch, claim_generation, created_at) "
                "VALUES (0,0,?,?,?,?,?,?,'create',?,'','','drafting',?,?,?,?,?)",
                (
                    live[0], address.platform, address.account, address.chat_id, address.thread_id, address.reply_to,
                    Priority.FINAL.value, now + self.max_age, turn, epoch, owner, now,
                ),
            ).lastrowid  # fmt: skip
            assert seq is not None
            conn.execute("UPDATE outbox SET delivery_id=seq, nonce=printf('%x-0', seq) WHERE seq=?", (seq,))
            return Draft(seq, DeliveryId(seq), None)

        return await self._db.write(open_draft)

    async def draft_receipt(self, seq: int, receipt: str, now: float) -> None:
        """Stored whatever became of the turn meanwhile: a final edit that waits for it can go."""
        await self._db.write(
            lambda conn: conn.execute(
                "UPDATE outbox SET receipt=?, operation='edit', mark=0 WHERE seq=? AND "
                "state IN ('drafting', 'pending')",
                (receipt, seq),
            )
        )

    async def discard_draft(self, seq: int, now: float) -> None:
        """The draft's first send was certainly not made: no trace of it is needed."""
        await self._db.write(
            lambda conn: conn.execute("DELETE FROM outbox WHERE seq=? AND state='drafting' AND receipt IS NULL", (seq,))
        )

    async def dead_letters(self) -> list[OutboxRow]:
        return await self._db.read(
            lambda conn: [
                outbox_row(r)
                for r in conn.execute(
                    f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE {OUTBOX_DEAD} ORDER BY seq"
                )
            ]
        )

    async def retry(self, delivery: DeliveryId, now: float) -> list[OutboxRow]:
        def retry(conn: sqlite3.Connection) -> list[OutboxRow]:
            conn.execute(
                "UPDATE outbox SET state='pending', attempts=0, not_before=0, expires_at=?, reason=NULL, done_at=NULL "
                "WHERE delivery_id=? AND state IN ('failed', 'held')",
                (now + self.max_age, delivery),
            )
            found = conn.execute(
                f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE delivery_id=? AND state='pending' ORDER BY part",
                (delivery,),
            )
            return [outbox_row(r) for r in found]

        return await self._db.write(retry)

    async def drop(self, delivery: DeliveryId, now: float) -> int:
        return await self._db.write(
            lambda conn: (
                conn.execute(
                    "UPDATE outbox SET state='withdrawn', done_at=? WHERE delivery_id=? AND "
                    "state IN ('failed', 'held')",
                    (now, delivery),
                ).rowcount
            )
        )

    async def retire_chat(self, address: Address, reason: str, now: float) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "INSERT OR REPLACE INTO dead_chats VALUES (?,?,?,?,?)",
                (address.platform, address.account, address.chat_id, reason, now),
            )
        )

    async def heal_chat(self, address: Address) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "DELETE FROM dead_chats WHERE platform=? AND account=? AND chat_id=?",
                (address.platform, address.account, address.chat_id),
            )
        )

    async def dead_chats(self) -> dict[tuple[str, str, str], str]:
        return await self._db.read(
            lambda conn: {
                (r[0], r[1], r[2]): r[3]
                for r in conn.execute("SELECT platform, account, chat_id, reason FROM dead_chats ORDER BY since")
            }
        )

    async def ban(self, address: Address, until: float, now: float) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "INSERT INTO chat_bans VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET "
                "until=max(until, excluded.until), noted_at=excluded.noted_at",
                (address.platform, address.account, address.chat_id, until, now),
            )
        )

    async def bans(self, now: float) -> dict[tuple[str, str, str], float]:
        return await self._db.read(
            lambda conn: {
                (r[0], r[1], r[2]): r[3]
                for r in conn.execute(
                    "SELECT platform, account, chat_id, until FROM chat_bans WHERE until>?", (now,)
                )
            }
        )
