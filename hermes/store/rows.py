"""Between SQLite rows and the frozen rows of ``core.records``; the one place that knows column order."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from hermes.core.delivery import Operation
from hermes.core.events import Address, RawUpdate
from hermes.core.ids import DeliveryId, InboxId, SessionId, TurnId
from hermes.core.principals import ChatKind, ChatRef, Identity, PrincipalId
from hermes.core.records import InboxRow, NewDelivery, OutboxRow, OutboxState, Priority
from hermes.core.urgency import Urgency

INBOX_COLUMNS = (
    "id, platform, account, dedup_key, message_ref, session_id, principal_id, user_id, display, chat_id, "
    "chat_kind, thread_id, merge_key, raw, problem, attempts, received_at, sent_at, urgency, "
    "user_roles"
)
OUTBOX_COLUMNS = (
    "seq, delivery_id, part, platform, account, chat_id, thread_id, reply_to, operation, priority, payload, nonce, "
    "state, mark, attempts, not_before, expires_at, turn_id, receipt, created_at, reason, file"
)
INBOX_OPEN = "state <> 'done'"
TURNS_OPEN = "state <> 'done'"
OUTBOX_OPEN = "state IN ('drafting', 'pending', 'sending', 'uncertain')"
OUTBOX_DEAD = "state IN ('failed', 'held')"
"""The conditions of the partial indexes, word for word: SQLite uses such an index only for a query that
repeats its condition (https://www.sqlite.org/partialindex.html, §3.1), even where another implies it."""
DEFAULT_EXPIRY_SECONDS = 86_400.0
"""A reply older than this is a dead letter; ``gateway.max_age`` replaces it where the caller knows it."""


def inbox_row(r: Sequence[Any]) -> InboxRow:
    """A row selected as INBOX_COLUMNS."""
    identity = chat = None
    if r[7] is not None and r[9] is not None:
        identity = Identity(r[1], r[2], r[7], r[8] or "", False, frozenset((r[19] or "").split()))
        chat = ChatRef(r[1], r[2], r[9], r[11], ChatKind(r[10]))
    update = RawUpdate(
        platform=r[1],
        account=r[2],
        dedup_key=r[3],
        raw=r[13],
        identity=identity,
        chat=chat,
        message_ref=r[4],
        sent_at=r[17],
        merge_key=r[12],
        problem=r[14],
        urgency=Urgency(r[18]),
    )
    session = SessionId(r[5]) if r[5] is not None else None
    principal = PrincipalId(r[6]) if r[6] is not None else None
    return InboxRow(InboxId(r[0]), update, session, principal, r[15], r[16])


def outbox_row(r: Sequence[Any]) -> OutboxRow:
    """A row selected as OUTBOX_COLUMNS."""
    return OutboxRow(
        seq=r[0],
        delivery_id=DeliveryId(r[1]),
        part=r[2],
        address=Address(r[3], r[4], r[5], r[6], r[7]),
        operation=Operation(r[8]),
        priority=Priority(r[9]),
        payload=r[10],
        nonce=r[11],
        state=OutboxState(r[12]),
        marked=bool(r[13]),
        attempts=r[14],
        not_before=r[15],
        expires_at=r[16],
        turn_id=TurnId(r[17]) if r[17] is not None else None,
        receipt=r[18],
        created_at=r[19],
        reason=r[20],
        file=r[21],
    )


def insert_delivery(
    conn: sqlite3.Connection,
    delivery: NewDelivery,
    now: float,
    *,
    turn_id: int | None = None,
    epoch: int | None = None,
    generation: int = 0,
) -> list[OutboxRow]:
    """All parts of one delivery, in order, as ``pending`` (or ``delivered`` where the store is the destination)."""
    state = OutboxState.DELIVERED if delivery.delivered_at_commit else OutboxState.PENDING
    done_at = now if delivery.delivered_at_commit else None
    expires = delivery.expires_at if delivery.expires_at is not None else now + DEFAULT_EXPIRY_SECONDS
    operation = Operation.CREATE if delivery.edits is None else Operation.EDIT
    a = delivery.address
    rows: list[OutboxRow] = []
    delivery_id = 0
    for part, outgoing in enumerate(delivery.parts):
        seq = conn.execute(
            "INSERT INTO outbox(delivery_id, part, session_id, platform, account, chat_id, thread_id, reply_to, "
            "operation, priority, payload, nonce, state, expires_at, turn_id, epoch, claim_generation, created_at, "
            "done_at, receipt, file) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                delivery_id, part, delivery.session_id, a.platform, a.account, a.chat_id, a.thread_id,
                a.reply_to if part == 0 else None, operation.value, delivery.priority.value,
                outgoing.payload, "", state.value, expires, turn_id, epoch, generation, now, done_at, delivery.edits,
                outgoing.file,
            ),
        ).lastrowid  # fmt: skip
        assert seq is not None
        delivery_id = delivery_id or seq
        nonce = f"{delivery_id:x}-{part:x}"
        conn.execute("UPDATE outbox SET delivery_id=?, nonce=? WHERE seq=?", (delivery_id, nonce, seq))
        address = a if part == 0 else Address(a.platform, a.account, a.chat_id, a.thread_id, None)
        rows.append(
            OutboxRow(
                seq, DeliveryId(delivery_id), part, address, operation, delivery.priority,
                outgoing.payload, nonce, state, False, 0, 0.0, expires,
                TurnId(turn_id) if turn_id is not None else None, delivery.edits, now,
                None, outgoing.file,
            )
        )  # fmt: skip
    return rows
