"""Pairing offers, those who were let in, and the codes that join identities."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hermes.core.people import Offer, Paired, PairingPolicy
from hermes.core.principals import ChatRef, Identity, PrincipalId, Role
from hermes.policy.pairing import may_offer
from hermes.store.database import Database

_OFFER = "platform, account, user_id, coalesce(display, ''), chat_id, offered_at, expires_at"
_PAIRED = "platform, account, user_id, coalesce(display, ''), role, paired_by, paired_at"


class SqlitePeople:
    """Implements ``core.people.PeopleStore``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def offer(
        self, identity: Identity, chat: ChatRef, code_hash: str, policy: PairingPolicy, now: float
    ) -> bool:
        def offer(conn: sqlite3.Connection) -> bool:
            who = (identity.platform, identity.account, identity.user_id)
            conn.execute("DELETE FROM pairing_offers WHERE max(expires_at, offered_at+?)<?", (policy.every, now))
            last = conn.execute(
                "SELECT offered_at FROM pairing_offers WHERE platform=? AND account=? AND user_id=?", who
            ).fetchone()
            pending = conn.execute("SELECT count(*) FROM pairing_offers").fetchone()[0]
            if not may_offer(policy, last_offer=last[0] if last else None, pending=pending, now=now):
                return False
            conn.execute(
                "INSERT OR REPLACE INTO pairing_offers VALUES (?,?,?,?,?,?,?,?)",
                (*who, identity.display, chat.chat_id, code_hash, now, now + policy.valid_for),
            )
            return True

        return await self._db.write(offer)

    async def offers(self, now: float) -> Sequence[Offer]:
        return await self._db.read(
            lambda conn: [
                Offer(*r)
                for r in conn.execute(
                    f"SELECT {_OFFER} FROM pairing_offers WHERE expires_at>? ORDER BY offered_at", (now,)
                )
            ]
        )

    async def approve(self, code_hash: str, role: Role, by: str, now: float) -> Offer | None:
        def approve(conn: sqlite3.Connection) -> Offer | None:
            found = conn.execute(
                f"SELECT {_OFFER} FROM pairing_offers WHERE code_hash=? AND expires_at>?", (code_hash, now)
            ).fetchone()
            if found is None:
                return None
            offer = Offer(*found)
            who = (offer.platform, offer.account, offer.user_id)
            conn.execute("DELETE FROM pairing_offers WHERE platform=? AND account=? AND user_id=?", who)
            conn.execute(
                "INSERT OR REPLACE INTO paired VALUES (?,?,?,?,?,?,?)", (*who, offer.display, role.value, by, now)
            )
            conn.execute("DELETE FROM stranger_counts WHERE platform=? AND account=? AND user_id=?", who)
            return offer

        return await self._db.write(approve)

    async def paired(self) -> Sequence[Paired]:
        return await self._db.read(
            lambda conn: [_paired(r) for r in conn.execute(f"SELECT {_PAIRED} FROM paired ORDER BY paired_at")]
        )

    async def revoke(self, platform: str, user_id: str) -> Sequence[Paired]:
        return await self._db.write(
            lambda conn: [
                _paired(r)
                for r in conn.execute(
                    f"DELETE FROM paired WHERE platform=? AND user_id=? RETURNING {_PAIRED}", (platform, user_id)
                ).fetchall()
            ]
        )

    async def keep_link_code(self, principal: PrincipalId, code_hash: str, expires_at: float, now: float) -> None:
        def keep(conn: sqlite3.Connection) -> None:
            conn.execute("DELETE FROM link_codes WHERE principal_id=? OR expires_at<?", (principal, now))
            conn.execute("INSERT INTO link_codes VALUES (?,?,?,?,NULL)", (code_hash, principal, now, expires_at))

        await self._db.write(keep)

    async def link(self, identity: Identity, code_hash: str, now: float) -> PrincipalId | None:
        def link(conn: sqlite3.Connection) -> PrincipalId | None:
            found = conn.execute(
                "SELECT principal_id FROM link_codes WHERE code_hash=? AND expires_at>? AND used_at IS NULL",
                (code_hash, now),
            ).fetchone()
            if found is None:
                return None
            conn.execute("UPDATE link_codes SET used_at=? WHERE code_hash=?", (now, code_hash))
            who = (identity.platform, identity.account, identity.user_id)
            before = conn.execute(
                "SELECT principal_id FROM identities WHERE platform=? AND account=? AND user_id=?", who
            ).fetchone()
            conn.execute(
                "INSERT INTO identities VALUES (?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
                "principal_id=excluded.principal_id, linked_at=excluded.linked_at",
                (*who, found[0], identity.display, now),
            )
            if before is not None and before[0] != found[0]:
                _join(conn, before[0], found[0])
            return PrincipalId(found[0])

        return await self._db.write(link)


def _join(conn: sqlite3.Connection, old: str, new: str) -> None:
    """What an identity said goes with it, unless another identity still belongs to the old principal."""
    if conn.execute("SELECT 1 FROM identities WHERE principal_id=? LIMIT 1", (old,)).fetchone():
        return
    for table in ("sessions", "messages", "turns", "inbox", "ledger", "goals"):
        conn.execute(f"UPDATE {table} SET principal_id=? WHERE principal_id=?", (new, old))
    conn.execute("DELETE FROM principals WHERE id=?", (old,))


def _paired(r: tuple[object, ...]) -> Paired:
    platform, account, user, display, role, by, at = r
    return Paired(
        str(platform), str(account), str(user), str(display), Role(int(str(role))), str(by), float(str(at))
    )
