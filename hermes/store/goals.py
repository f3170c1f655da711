"""Standing goals, one a conversation; a due one begins a turn where no message waits."""

from __future__ import annotations

import sqlite3

from hermes.core.goals import Goal, GoalState, Unjudged
from hermes.core.ids import SessionId, TurnId
from hermes.core.principals import ChatKind, ChatRef, Identity, PrincipalId
from hermes.core.records import Claim, NewDelivery, OutboxRow
from hermes.core.stores import NOTE_ONLY
from hermes.core.transcript import AssistantItem, load_item
from hermes.core.urgency import Urgency
from hermes.store.database import Database
from hermes.store.rows import INBOX_OPEN, TURNS_OPEN, insert_delivery
from hermes.store.snapshots import live_history

_COLUMNS = (
    "session_id, principal_id, platform, account, user_id, chat_id, thread_id, chat_kind, text, note, user_roles, "
    "state, reason, turns, misread"
)

_HERE = "generation=(SELECT generation FROM sessions WHERE id=goals.session_id)"
"""A goal belongs to a conversation: after /new it sleeps until that conversation is taken up again."""


class SqliteGoals:
    """Implements ``core.goals.Goals``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, goal: Goal, now: float) -> None:
        chat, who = goal.chat, goal.identity
        await self._db.write(
            lambda conn: conn.execute(
                f"INSERT OR REPLACE INTO goals({_COLUMNS}, due, generation, judged_turn, created_at, updated_at) "
                "SELECT ?,?,?,?,?,?,?,?,?,?,?,'active','',0,0,1,generation,coalesce((SELECT max(id) FROM turns), 0),"
                "?,? FROM sessions WHERE id=?",
                (goal.session_id, goal.principal_id, chat.platform, chat.account, who.user_id, chat.chat_id,
                 chat.thread_id, chat.kind.value, goal.text, goal.said, " ".join(sorted(who.roles)), now, now,
                 goal.session_id),
            )
        )  # fmt: skip

    async def get(self, session: SessionId) -> Goal | None:
        return await self._db.read(lambda conn: _goal(conn, session))

    async def drop(self, session: SessionId) -> bool:
        return await self._db.write(
            lambda conn: bool(
                conn.execute(f"DELETE FROM goals WHERE session_id=? AND {_HERE}", (session,)).rowcount
            )
        )

    async def set_state(self, session: SessionId, state: GoalState, reason: str, now: float) -> bool:
        resumed = state is GoalState.ACTIVE

        def change(conn: sqlite3.Connection) -> bool:
            return bool(
                conn.execute(
                    "UPDATE goals SET state=?, reason=?, due=?, turns=CASE WHEN ? THEN 0 ELSE turns END, misread=0, "
                    f"updated_at=? WHERE session_id=? AND {_HERE} AND (state='active')<>?",
                    (state.value, reason, resumed, resumed, now, session, resumed),
                ).rowcount
            )

        return await self._db.write(change)

    async def active(self) -> list[SessionId]:
        return await self._db.read(
            lambda conn: [SessionId(r[0]) for r in conn.execute("SELECT session_id FROM goals WHERE state='active'")]
        )

    async def unjudged(self, session: SessionId) -> Unjudged | None:
        return await self._db.read(lambda conn: _unjudged(conn, session))

    async def go_on(self, found: Unjudged, said: str, misread: int, now: float) -> bool:
        def due(conn: sqlite3.Connection) -> bool:
            return bool(
                conn.execute(
                    "UPDATE goals SET due=1, note=?, misread=?, judged_turn=?, updated_at=? "
                    "WHERE session_id=? AND state='active' AND text=?",
                    (said, misread, found.turn_id, now, found.goal.session_id, found.goal.text),
                ).rowcount
            )

        return await self._db.write(due)

    async def conclude(
        self, found: Unjudged, state: GoalState, reason: str, notice: NewDelivery, now: float
    ) -> list[OutboxRow]:
        owner = self._db.generation

        def end(conn: sqlite3.Connection) -> list[OutboxRow]:
            changed = conn.execute(
                "UPDATE goals SET state=?, reason=?, due=0, judged_turn=?, updated_at=? "
                "WHERE session_id=? AND state='active' AND text=?",
                (state.value, reason, found.turn_id, now, found.goal.session_id, found.goal.text),
            ).rowcount
            return insert_delivery(conn, notice, now, generation=owner) if changed else []

        return await self._db.write(end)


def begin_goal_turn(conn: sqlite3.Connection, session: SessionId, owner: int, now: float) -> Claim | None:
    """A turn of the conversation's due goal, inside the claim's transaction; None where none is due."""
    due = conn.execute(
        f"SELECT 1 FROM goals WHERE session_id=? AND due=1 AND state='active' AND {_HERE}", (session,)
    ).fetchone()
    goal = _goal(conn, session) if due is not None else None
    if goal is None:
        return None
    conn.execute("UPDATE goals SET due=0, turns=turns+1, updated_at=? WHERE session_id=?", (now, session))
    generation = conn.execute("SELECT generation FROM sessions WHERE id=?", (session,)).fetchone()[0]
    address = goal.address
    turn = conn.execute(
        "INSERT INTO turns(session_id, principal_id, generation, epoch, state, platform, account, chat_id, thread_id, "
        "claim_generation, created_at, goal, urgency) VALUES (?,?,?,1,'running',?,?,?,?,?,?,?,?)",
        (session, goal.principal_id, generation, address.platform, address.account, address.chat_id,
         address.thread_id, owner, now, goal.turns + 1, Urgency.BACKGROUND),
    ).lastrowid  # fmt: skip
    assert turn is not None
    history = live_history(conn, session)
    return Claim(
        TurnId(turn), session, goal.principal_id, 1, False, address, (), history, 1, 0.0, goal_words=goal.said,
        urgency=Urgency.BACKGROUND,
    )


def _goal(conn: sqlite3.Connection, session: str) -> Goal | None:
    r = conn.execute(f"SELECT {_COLUMNS} FROM goals WHERE session_id=? AND {_HERE}", (session,)).fetchone()
    if r is None:
        return None
    identity = Identity(r[2], r[3], r[4], roles=frozenset(r[10].split()))
    chat = ChatRef(r[2], r[3], r[5], r[6], ChatKind(r[7]))
    return Goal(
        SessionId(r[0]), PrincipalId(r[1]), identity, chat, r[8], r[9] or "", GoalState(r[11]), r[12] or "", r[13],
        r[14],
    )  # fmt: skip


def _unjudged(conn: sqlite3.Connection, session: str) -> Unjudged | None:
    found = conn.execute(
        "SELECT judged_turn FROM goals WHERE session_id=? AND state='active' AND due=0", (session,)
    ).fetchone()
    busy = conn.execute(
        f"SELECT EXISTS (SELECT 1 FROM turns WHERE session_id=? AND {TURNS_OPEN}) OR EXISTS "
        f"(SELECT 1 FROM inbox WHERE session_id=? AND state='new' AND {INBOX_OPEN} AND not_before<?)",
        (session, session, NOTE_ONLY),
    ).fetchone()[0]
    goal = _goal(conn, session)
    if found is None or busy or goal is None:
        return None
    last = conn.execute(
        "SELECT id, outcome, reason FROM turns WHERE id=(SELECT turn_id FROM messages WHERE session_id=? AND "
        "generation=(SELECT generation FROM sessions WHERE id=?) ORDER BY seq DESC LIMIT 1) AND id>? AND state='done'",
        (session, session, found[0]),
    ).fetchone()
    if last is None:
        return None
    said = [load_item(r[0]) for r in conn.execute("SELECT item FROM messages WHERE turn_id=? ORDER BY seq", (last[0],))]
    texts = [item.text for item in said if isinstance(item, AssistantItem) and item.text.strip()]
    return Unjudged(goal, TurnId(last[0]), last[1] or "", last[2] or "", texts[-1] if texts else "")
