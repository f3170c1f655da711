"""T1 and the rows' ends. Every function body below that takes ``conn`` is one transaction (R23)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hermes.core.ids import InboxId, SessionId
from hermes.core.principals import ChatKind, PrincipalId
from hermes.core.records import (
    Accepted,
    Admitted,
    InboxRow,
    InboxState,
    NewDelivery,
    OutboxRow,
    Outcome,
    StrangerCount,
)
from hermes.store.database import Database
from hermes.store.rows import INBOX_COLUMNS, INBOX_OPEN, inbox_row, insert_delivery


class SqliteInbox:
    """Implements ``ports.Inbox``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def accept(
        self,
        admitted: Sequence[Admitted],
        strangers: Sequence[StrangerCount],
        cursors: Mapping[str, str],
        now: float,
    ) -> list[Accepted]:
        def t1(conn: sqlite3.Connection) -> list[Accepted]:
            for stranger in strangers:
                _count_stranger(conn, stranger, now)
            accepted = [_accept_one(conn, a, now) for a in admitted]
            for channel, value in cursors.items():
                platform, account, name = channel.split("\n", 2)
                conn.execute(
                    "INSERT OR REPLACE INTO cursors VALUES (?,?,?,?,?)", (platform, account, name, value, now)
                )
            return accepted

        return await self._db.write(t1)

    async def cursors(self, platform: str, account: str) -> dict[str, str]:
        return await self._db.read(
            lambda conn: dict(
                conn.execute(
                    "SELECT channel, value FROM cursors WHERE platform=? AND account=? ORDER BY updated_at DESC",
                    (platform, account),
                ).fetchall()
            )
        )

    async def backlog(self) -> list[InboxRow]:
        return await self._db.read(
            lambda conn: [
                inbox_row(r)
                for r in conn.execute(
                    f"SELECT {INBOX_COLUMNS} FROM inbox WHERE state='{InboxState.NEW}' AND {INBOX_OPEN} ORDER BY +id"
                )
            ]
        )

    async def count_failure(self, row: InboxId, error: str, not_before: float) -> int:
        def count(conn: sqlite3.Connection) -> int:
            conn.execute(
                "UPDATE inbox SET attempts=attempts+1, not_before=?, outcome_reason=? WHERE id=?",
                (not_before, error, row),
            )
            found = conn.execute("SELECT attempts FROM inbox WHERE id=?", (row,)).fetchone()
            return int(found[0]) if found else 0

        return await self._db.write(count)

    async def finish(
        self,
        rows: Sequence[InboxId],
        outcome: Outcome,
        *,
        now: float,
        reason: str | None = None,
        ref: str | None = None,
        replies: Sequence[NewDelivery] = (),
    ) -> list[OutboxRow]:
        generation = self._db.generation

        def end(conn: sqlite3.Connection) -> list[OutboxRow]:
            ended = sum(_end_row(conn, row, outcome, reason, ref, now) for row in rows)
            if rows and not ended:
                return []
            return [r for d in replies for r in insert_delivery(conn, d, now, generation=generation)]

        return await self._db.write(end)

    async def defer(self, row: InboxId, not_before: float) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "UPDATE inbox SET not_before=? WHERE id=? AND state='new'", (not_before, row)
            )
        )

    async def dead_letters(self) -> list[InboxRow]:
        return await self._db.read(
            lambda conn: [
                inbox_row(r)
                for r in conn.execute(
                    f"SELECT {INBOX_COLUMNS.replace('problem', 'coalesce(outcome_reason, problem)')} FROM inbox "
                    "WHERE outcome='dead_letter' AND outcome_ref IS NOT 'dropped' ORDER BY id"
                )
            ]
        )

    async def revive(self, row: InboxId) -> InboxRow | None:
        def revive(conn: sqlite3.Connection) -> InboxRow | None:
            changed = conn.execute(
                "UPDATE inbox SET state='new', outcome=NULL, outcome_reason=NULL, outcome_ref=NULL, done_at=NULL, "
                "attempts=0, not_before=0, turn_id=NULL WHERE id=? AND outcome='dead_letter' "
                "AND session_id IS NOT NULL",
                (row,),
            ).rowcount
            if not changed:
                return None
            return inbox_row(conn.execute(f"SELECT {INBOX_COLUMNS} FROM inbox WHERE id=?", (row,)).fetchone())

        return await self._db.write(revive)

    async def drop(self, row: InboxId, now: float) -> int:
        return await self._db.write(
            lambda conn: (
                conn.execute(
                    "UPDATE inbox SET outcome_ref='dropped' WHERE id=? AND outcome='dead_letter'", (row,)
                ).rowcount
            )
        )

    async def replace(
        self, platform: str, account: str, message_ref: str, by: InboxId, now: float
    ) -> list[InboxId]:
        def replace(conn: sqlite3.Connection) -> list[InboxId]:
            replaced = conn.execute(
                "UPDATE inbox SET state='done', outcome=?, outcome_ref=?, done_at=? WHERE platform=? AND "
                "account=? AND message_ref=? AND id<>? AND state='new' AND state<>'done' AND session_id="
                "(SELECT session_id FROM inbox WHERE id=?) RETURNING id",
                (Outcome.REPLACED_BY_EDIT, str(by), now, platform, account, message_ref, by, by),
            )
            return [InboxId(row) for (row,) in replaced.fetchall()]

        return await self._db.write(replace)


def _end_row(
    conn: sqlite3.Connection, row: InboxId, outcome: Outcome, reason: str | None, ref: str | None, now: float
) -> int:
    return conn.execute(
        "UPDATE inbox SET state='done', outcome=?, outcome_reason=?, outcome_ref=?, done_at=? "
        "WHERE id=? AND state='new'",
        (outcome.value, reason, ref, now, row),
    ).rowcount


def _count_stranger(conn: sqlite3.Connection, s: StrangerCount, now: float) -> None:
    conn.execute(
        "INSERT INTO stranger_counts VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
        "count=count+excluded.count, last_at=excluded.last_at, chat_id=excluded.chat_id",
        (s.platform, s.account, s.user_id, s.chat.chat_id if s.chat else None, s.count, now, now),
    )


def _accept_one(conn: sqlite3.Connection, admitted: Admitted, now: float) -> Accepted:
    u = admitted.update
    fresh = conn.execute(
        "INSERT OR IGNORE INTO seen_keys VALUES (?,?,?,?)", (u.platform, u.account, u.dedup_key, now)
    ).rowcount
    if not fresh:
        return Accepted(InboxRow(InboxId(0), u, None, None, 0, now), duplicate=True)
    session = principal = None
    if admitted.session_key is not None and u.identity is not None:
        principal = _principal_for(conn, admitted, now)
        session = session_for_key(conn, admitted.session_key, principal, now)
    dead = session is None
    i, c = u.identity, u.chat
    row_id = conn.execute(
        "INSERT INTO inbox(platform, account, dedup_key, message_ref, session_id, principal_id, user_id, display, "
        "chat_id, chat_kind, thread_id, merge_key, raw, problem, state, outcome, outcome_reason, received_at, "
        "sent_at, done_at, not_before, urgency, user_roles) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            u.platform, u.account, u.dedup_key, u.message_ref, session, principal,
            i.user_id if i else None, i.display if i else None, c.chat_id if c else None,
            c.kind.value if c else None, c.thread_id if c else None, u.merge_key, u.raw, u.problem,
            (InboxState.DONE if dead else InboxState.NEW).value, Outcome.DEAD_LETTER.value if dead else None,
            u.problem if dead else None, now, u.sent_at, now if dead else None, now + admitted.hold_seconds,
            int(u.urgency), " ".join(sorted(i.roles)) if i and i.roles else None,
        ),
    ).lastrowid  # fmt: skip
    assert row_id is not None
    return Accepted(InboxRow(InboxId(row_id), u, session, principal, 0, now), duplicate=False)


def _principal_for(conn: sqlite3.Connection, admitted: Admitted, now: float) -> PrincipalId:
    """The identity's principal; a group is its own principal and sees no private memory (R37)."""
    u = admitted.update
    assert u.identity is not None
    if admitted.principal_hint is not None:
        return PrincipalId(admitted.principal_hint)
    if u.chat is not None and u.chat.kind is not ChatKind.PRIVATE:
        principal = f"group:{u.platform}:{u.account}:{u.chat.chat_id}"
        conn.execute("INSERT OR IGNORE INTO principals VALUES (?, 'group', ?)", (principal, now))
        return PrincipalId(principal)
    found = conn.execute(
        "SELECT principal_id FROM identities WHERE platform=? AND account=? AND user_id=?",
        (u.platform, u.account, u.identity.user_id),
    ).fetchone()
    if found:
        return PrincipalId(found[0])
    principal = conn.execute("SELECT 'p' || lower(hex(randomblob(8)))").fetchone()[0]
    conn.execute("INSERT INTO principals VALUES (?, 'user', ?)", (principal, now))
    conn.execute(
        "INSERT INTO identities VALUES (?,?,?,?,?,?)",
        (u.platform, u.account, u.identity.user_id, principal, u.identity.display, now),
    )
    return PrincipalId(principal)


def session_for_key(conn: sqlite3.Connection, key: str, principal: PrincipalId, now: float) -> SessionId:
    """The session a key points to; a new one where it points nowhere yet."""
    found = conn.execute("SELECT session_id FROM session_keys WHERE key=?", (key,)).fetchone()
    if found:
        return SessionId(found[0])
    session = conn.execute("SELECT 's' || lower(hex(randomblob(8)))").fetchone()[0]
    conn.execute(
        "INSERT INTO sessions(id, principal_id, created_at, last_active_at) VALUES (?,?,?,?)",
        (session, principal, now, now),
    )
    conn.execute("INSERT INTO session_keys VALUES (?,?)", (key, session))
    return SessionId(session)
