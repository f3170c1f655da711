"""A turn's reply becomes outbox rows; a streamed draft becomes part 0 of it, never a second message (R17)."""

from __future__ import annotations

import sqlite3

from hermes.core.delivery import Operation
from hermes.core.records import NewDelivery, OutboxRow, Priority, TurnFinish
from hermes.policy.delivery import MARK_DELAY
from hermes.store.rows import OUTBOX_COLUMNS, insert_delivery, outbox_row


def insert_replies(
    conn: sqlite3.Connection, finish: TurnFinish, now: float, owner: int, *, hold: bool = False
) -> list[OutboxRow]:
    """The reply parts of T2. The first reply takes over the turn's draft, if there is one.

    Unsent notices of the turn are dropped together with it (R20).
    """
    rows: list[OutboxRow] = []
    draft = draft_of(conn, finish.turn_id)
    if finish.replies:
        conn.execute(
            "UPDATE outbox SET state='withdrawn', done_at=? WHERE turn_id=? AND state='pending' AND priority=?",
            (now, finish.turn_id, Priority.NOTICE.value),
        )
    if draft is not None and not finish.replies:
        conn.execute("UPDATE outbox SET state='withdrawn', done_at=? WHERE seq=?", (now, draft[0]))
    for number, reply in enumerate(finish.replies):
        if number == 0 and draft is not None:
            rows += adopt_draft(conn, draft, reply, (finish.turn_id, finish.epoch), now, owner, hold)
        else:
            rows += insert_delivery(
                conn, reply, now, turn_id=finish.turn_id, epoch=finish.epoch, generation=owner
            )
    return rows


def draft_of(conn: sqlite3.Connection, turn: int) -> tuple[int, int, str | None] | None:
    """(seq, delivery, receipt) of a turn's streamed message."""
    found: tuple[int, int, str | None] | None = conn.execute(
        "SELECT seq, delivery_id, receipt FROM outbox WHERE turn_id=? AND state='drafting' LIMIT 1", (turn,)
    ).fetchone()
    return found


def adopt_draft(
    conn: sqlite3.Connection, draft: tuple[int, int, str | None], reply: NewDelivery, turn: tuple[int, int],
    now: float, owner: int, hold: bool,
) -> list[OutboxRow]:  # fmt: skip
    """Part 0 is the draft's own row: an edit where its first send has a receipt.

    Without one that send may have arrived: a create that waits and is marked, or the whole is held (R19), unless
    the platform knows a repeated create.
    """
    seq, delivery_id, receipt = draft
    operation = Operation.EDIT if receipt is not None else Operation.CREATE
    sure = receipt is not None or reply.creates_are_safe
    not_before = 0.0 if sure else now + MARK_DELAY
    conn.execute(
        "UPDATE outbox SET state='pending', payload=?, operation=?, mark=?, session_id=?, claim_generation=?, "
        "not_before=?, priority=? WHERE seq=?",
        (
            reply.parts[0].payload, operation.value, int(not sure), reply.session_id, owner, not_before,
            reply.priority.value, seq,
        ),
    )
    first = outbox_row(conn.execute(f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE seq=?", (seq,)).fetchone())
    rest = NewDelivery(
        reply.address, reply.parts[1:], reply.priority, reply.expires_at, reply.delivered_at_commit, reply.session_id
    )
    rows = insert_delivery(conn, rest, now, turn_id=turn[0], epoch=turn[1], generation=owner)
    for row in rows:
        conn.execute(
            "UPDATE outbox SET delivery_id=?, part=part+1, reply_to=NULL, nonce=? WHERE seq=?",
            (delivery_id, f"{delivery_id:x}-{row.part + 1:x}", row.seq),
        )
    if not sure and hold:
        conn.execute(
            "UPDATE outbox SET state='held', reason='its draft may have arrived', done_at=? WHERE delivery_id=?",
            (now, delivery_id),
        )
        return []
    refreshed = [
        outbox_row(r)
        for r in conn.execute(
            f"SELECT {OUTBOX_COLUMNS} FROM outbox WHERE delivery_id=? AND part>0 ORDER BY part", (delivery_id,)
        )
    ]
    return [first, *refreshed]
