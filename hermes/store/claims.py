"""A session's next turn: the unfinished one goes on, else a new one over its ``new`` rows (R10, R11)."""

from __future__ import annotations

import sqlite3

from hermes.core.events import Address
from hermes.core.ids import DeliveryId, IntentId, SessionId, TurnId
from hermes.core.principals import PrincipalId, Role
from hermes.core.records import Claim, Draft, InboxRow, StartedTool, ToolEffect, TurnCause
from hermes.core.urgency import Urgency
from hermes.store.ledger import charge_open
from hermes.store.rows import INBOX_COLUMNS, inbox_row
from hermes.store.snapshots import live_history


def begin_turn(
    conn: sqlite3.Connection, session: SessionId, rows: list[InboxRow], owner: int, now: float, role: Role
) -> Claim:
    """A turn over these rows, which become ``claimed``."""
    last = rows[-1]
    chat = last.update.chat
    assert chat is not None
    assert last.principal_id is not None
    reply_to = None if chat.kind.value == "private" else last.update.message_ref
    address = Address(last.update.platform, last.update.account, chat.chat_id, chat.thread_id, reply_to)
    generation = conn.execute("SELECT generation FROM sessions WHERE id=?", (session,)).fetchone()[0]
    urgency = min(row.update.urgency for row in rows)
    turn = conn.execute(
        "INSERT INTO turns(session_id, principal_id, generation, epoch, state, platform, account, chat_id, thread_id, "
        "reply_to, claim_generation, created_at, urgency, role) VALUES (?,?,?,1,'running',?,?,?,?,?,?,?,?,?)",
        (session, last.principal_id, generation, address.platform, address.account, address.chat_id,
         address.thread_id, address.reply_to, owner, now, urgency, role),
    ).lastrowid  # fmt: skip
    assert turn is not None
    conn.executemany(
        "UPDATE inbox SET state='claimed', turn_id=?, claim_generation=? WHERE id=?",
        [(turn, owner, row.id) for row in rows],
    )
    return Claim(
        TurnId(turn), session, last.principal_id, 1, False, address, tuple(rows),
        live_history(conn, session), 1, 0.0, urgency=urgency, role=role,
    )  # fmt: skip


def resume_turn(
    conn: sqlite3.Connection, session: SessionId, found: tuple[object, ...], owner: int, now: float
) -> Claim | None:
    """The session's unfinished turn under a new epoch; None while it is suspended."""
    turn, state, epoch, principal, platform, account, chat, thread, reply_to = found[:9]
    step, active, parked, crashes, cause, urgency, role = found[9:]
    if state == "suspended":
        return None
    conn.execute(
        "UPDATE turns SET epoch=epoch+1, claim_generation=?, alone=? WHERE id=?",
        (owner, 1 if int(str(crashes)) >= 2 else 0, turn),
    )
    # the call that a crash cut off may have been billed: charge its reservation in full (R16)
    charge_open(conn, int(str(turn)), now)
    conn.execute("UPDATE journal SET open=0 WHERE turn_id=? AND kind='model' AND open=1", (turn,))
    rows = conn.execute(
        f"SELECT {INBOX_COLUMNS} FROM inbox WHERE turn_id=? AND state='claimed' AND id NOT IN "
        "(SELECT inbox_id FROM turn_inputs WHERE turn_id=?) ORDER BY id",
        (turn, turn),
    ).fetchall()
    draft = conn.execute(
        "SELECT seq, delivery_id, receipt FROM outbox WHERE turn_id=? AND state='drafting' LIMIT 1", (turn,)
    ).fetchone()
    started = tuple(
        StartedTool(r[0], IntentId(r[1]), r[2], ToolEffect(r[3]))
        for r in conn.execute(
            "SELECT call_id, intent_id, name, effect FROM journal WHERE turn_id=? AND kind='tool' AND open=1", (turn,)
        )
    )
    words = conn.execute(  # not yet in the transcript: the turn of a goal has no row to read them from
        "SELECT g.note FROM turns t JOIN goals g ON g.session_id=t.session_id WHERE t.id=? AND t.goal IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id=t.id)",
        (turn,),
    ).fetchone()
    tokens = conn.execute(
        "SELECT coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0) FROM ledger "
        "WHERE session_id=? AND turn_id=?",
        (session, turn),
    ).fetchone()[0]
    address = Address(str(platform), str(account), str(chat),
                      None if thread is None else str(thread), None if reply_to is None else str(reply_to))  # fmt: skip
    return Claim(
        TurnId(int(str(turn))), session, PrincipalId(str(principal)), int(str(epoch)) + 1, True, address,
        tuple(map(inbox_row, rows)), live_history(conn, session), int(str(step)) + 1, float(str(active)),
        Draft(draft[0], DeliveryId(draft[1]), draft[2]) if draft else None,
        parked=bool(parked), started=started, suspect=int(str(crashes)) >= 2,
        cause=TurnCause(str(cause)) if cause is not None else None, spent_tokens=tokens,
        goal_words=words[0] if words is not None else "",
        urgency=Urgency(int(str(urgency))), role=Role(int(str(role))),
    )  # fmt: skip
