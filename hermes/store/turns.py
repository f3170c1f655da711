"""Turns: claim, steps, T2, stop, resume. Every write is conditional on the turn's fence (R10)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.errors import LostFence
from hermes.core.ids import InboxId, SessionId, TurnId
from hermes.core.money import Refusal, Reservation
from hermes.core.principals import Role
from hermes.core.records import (
    Claim,
    InboxRow,
    OutboxRow,
    Outcome,
    StepIntent,
    StepResult,
    Stopped,
    ToolIntent,
    ToolOutcome,
    TurnCause,
    TurnFinish,
)
from hermes.core.stores import NOTE_ONLY
from hermes.core.transcript import Item, ToolResultItem, UserItem, dump_item, searchable_text
from hermes.store import delivery_of_turn
from hermes.store.claims import begin_turn, resume_turn
from hermes.store.database import Database
from hermes.store.goals import begin_goal_turn
from hermes.store.ledger import charge_open, reserve, settle
from hermes.store.rows import INBOX_COLUMNS, INBOX_OPEN, OUTBOX_OPEN, TURNS_OPEN, inbox_row
from hermes.store.snapshots import live_history


class SqliteTurns:
    """Implements the turn half of ``ports.Turns``; ``questions.SqliteQuestions`` the other."""

    def __init__(self, db: Database, *, input_limit: int = 50, input_chars: int = 200_000) -> None:
        self._db = db
        self.uncertain = "mark"  # gateway.delivery.uncertain
        self._input_limit = input_limit
        self._input_chars = input_chars

    async def claim(
        self,
        session: SessionId,
        now: float,
        allowed: Callable[[InboxRow], Role | bool | None],
        first_step: Callable[[Claim], StepIntent | None] | None = None,
    ) -> Claim | None:
        generation = self._db.generation

        def claim(conn: sqlite3.Connection) -> Claim | None:
            open_turn = conn.execute(
                "SELECT id, state, epoch, principal_id, platform, account, chat_id, thread_id, reply_to, step, "
                "active_seconds, parked, crashes, cause, urgency, role FROM turns WHERE session_id=? AND state<>'done' "
                "LIMIT 1",
                (session,),
            ).fetchone()
            if open_turn is not None:
                return resume_turn(conn, session, open_turn, generation, now)
            rows, more, role = self._pick(conn, session, now, allowed)
            if rows:
                begun = begin_turn(conn, session, rows, generation, now, role)
            elif (of_goal := begin_goal_turn(conn, session, generation, now)) is not None:
                begun = of_goal
            else:
                return None
            intent = first_step(begun) if first_step is not None else None
            reserved = _begin_step(conn, intent, now) if intent is not None else None
            return replace(begun, begun=intent is not None, more=more, reservation=reserved)

        return await self._db.write(claim)

    def _pick(
        self,
        conn: sqlite3.Connection,
        session: SessionId,
        now: float,
        allowed: Callable[[InboxRow], Role | bool | None],
    ) -> tuple[list[InboxRow], bool, Role]:
        """The rows of a new turn, whether some were left by a bound, and the least of their authors' roles.

        Notes alone begin no turn (R9).
        """
        found = conn.execute(
            f"SELECT {INBOX_COLUMNS}, not_before FROM inbox WHERE session_id=? AND state='new' AND {INBOX_OPEN} AND "
            "(not_before<=? OR not_before>=?) ORDER BY id LIMIT ?",
            (session, now, NOTE_ONLY, self._input_limit),
        ).fetchall()
        rows: list[InboxRow] = []
        chars, only_notes, more, role = 0, True, len(found) == self._input_limit, Role.OWNER
        for record in found:
            row = inbox_row(record)
            verdict = allowed(row)
            if verdict is None:
                continue
            if not verdict:
                _refuse(conn, row, now)
                continue
            chars += len(row.update.raw)
            if rows and chars > self._input_chars:
                more = True
                break
            rows.append(row)
            role = min(role, verdict if isinstance(verdict, Role) else Role.USER)
            only_notes = only_notes and record[-1] >= NOTE_ONLY
        return ([], False, role) if only_notes else (rows, more, role)

    async def transcript(self, session: SessionId) -> tuple[str, ...]:
        return await self._db.read(lambda conn: live_history(conn, session))

    async def begin_step(self, intent: StepIntent, now: float) -> Reservation | Refusal:
        return await self._db.write(lambda conn: _begin_step(conn, intent, now))

    async def bind(
        self, turn: TurnId, epoch: int, rows: Sequence[InboxId], allowed: Callable[[InboxRow], bool | None], now: float
    ) -> list[InboxRow]:
        generation = self._db.generation

        def bind(conn: sqlite3.Connection) -> list[InboxRow]:
            session = _fence(conn, turn, epoch)[0]
            bound: list[InboxRow] = []
            for number in rows:
                found = conn.execute(
                    f"SELECT {INBOX_COLUMNS} FROM inbox WHERE id=? AND session_id=? AND state='new'", (number, session)
                ).fetchone()
                if found is None:
                    continue
                row = inbox_row(found)
                verdict = allowed(row)
                if verdict:
                    conn.execute(
                        "UPDATE inbox SET state='claimed', turn_id=?, claim_generation=? WHERE id=?",
                        (turn, generation, number),
                    )
                    conn.execute("UPDATE turns SET urgency=min(urgency, ?) WHERE id=?", (int(row.update.urgency), turn))
                    bound.append(row)
                elif verdict is not None:
                    _refuse(conn, row, now)
            return bound

        return await self._db.write(bind)

    async def finish_step(self, result: StepResult, now: float) -> None:
        def finish(conn: sqlite3.Connection) -> None:
            session, principal, generation = _fence(conn, result.turn_id, result.epoch)
            _append(conn, result.turn_id, session, principal, generation, result.step, result.item, now)
            _close_model_step(conn, result.turn_id, now)
            settle(conn, result.charges, now)

        await self._db.write(finish)

    async def start_tools(self, intents: Sequence[ToolIntent], now: float) -> None:
        def start(conn: sqlite3.Connection) -> None:
            _fence(conn, intents[0].turn_id, intents[0].epoch)
            conn.executemany(
                "INSERT INTO journal(turn_id, epoch, step, kind, intent_id, call_id, name, effect, open, at) "
                "VALUES (?,?,?,'tool',?,?,?,?,1,?)",
                [
                    (i.turn_id, i.epoch, i.step, i.intent_id, i.call_id, i.name, i.effect.value, now)
                    for i in intents
                ],
            )

        await self._db.write(start)

    async def finish_tool(self, outcome: ToolOutcome, now: float) -> bool:
        return await self._db.write(lambda conn: finish_tool(conn, outcome, now))

    async def skip_tools(
        self, turn: TurnId, epoch: int, step: int, results: Sequence[ToolResultItem], now: float
    ) -> None:
        def skip(conn: sqlite3.Connection) -> None:
            session, principal, generation = _fence(conn, turn, epoch)
            for item in results:
                _append(conn, turn, session, principal, generation, step, item, now)

        await self._db.write(skip)

    async def turn_items(self, turn: TurnId) -> tuple[str, ...]:
        return await self._db.read(
            lambda conn: tuple(
                r[0] for r in conn.execute("SELECT item FROM messages WHERE turn_id=? ORDER BY seq", (turn,))
            )
        )

    async def finish(self, finish: TurnFinish, now: float) -> list[OutboxRow]:
        owner = self._db.generation

        def t2(conn: sqlite3.Connection) -> list[OutboxRow]:
            session, principal, generation = _fence(conn, finish.turn_id, finish.epoch)
            step, cause = conn.execute("SELECT step, cause FROM turns WHERE id=?", (finish.turn_id,)).fetchone()
            if cause is not None and finish.cause is None:
                raise LostFence(f"turn {finish.turn_id} was ended by {cause} before its answer")
            for item in finish.items:
                _append(conn, finish.turn_id, session, principal, generation, step, item, now)
            settle(conn, finish.charges, now)
            charge_open(conn, finish.turn_id, now)
            conn.execute("UPDATE journal SET open=0, ended_at=? WHERE turn_id=? AND open=1", (now, finish.turn_id))
            _end_inputs(conn, finish, now)
            conn.execute(
                "UPDATE turns SET state='done', outcome=?, reason=?, cause=?, active_seconds=?, ended_at=? WHERE id=?",
                (finish.outcome.value, finish.reason, finish.cause, finish.active_seconds, now, finish.turn_id),
            )
            conn.execute("UPDATE sessions SET last_active_at=? WHERE id=?", (now, session))
            if finish.outcome is Outcome.FAILED_TOLD and finish.reason in _UNFIT_REASONS:
                conn.execute("UPDATE messages SET live=0 WHERE turn_id=?", (finish.turn_id,))
            return delivery_of_turn.insert_replies(conn, finish, now, owner, hold=self.uncertain == "hold")

        return await self._db.write(t2)

    async def release(self, turn: TurnId, epoch: int, active_seconds: float, now: float) -> None:
        def release(conn: sqlite3.Connection) -> None:
            _fence(conn, turn, epoch)
            conn.execute("UPDATE turns SET active_seconds=? WHERE id=?", (active_seconds, turn))
            conn.execute(
                "INSERT INTO journal(turn_id, epoch, step, kind, open, at) VALUES (?,?,0,'released',0,?)",
                (turn, epoch, now),
            )

        await self._db.write(release)

    async def stop(self, session: SessionId, line: InboxId, now: float) -> Stopped:
        def stop(conn: sqlite3.Connection) -> Stopped:
            queued = conn.execute(
                "UPDATE inbox SET state='done', outcome=?, outcome_ref=?, done_at=? "
                f"WHERE session_id=? AND state='new' AND {INBOX_OPEN} AND id<?",
                (Outcome.STOPPED.value, str(line), now, session, line),
            ).rowcount
            running = conn.execute(
                f"UPDATE turns SET cause=? WHERE session_id=? AND state='running' AND {TURNS_OPEN}",
                (TurnCause.STOP.value, session),
            ).rowcount
            withdrawn = conn.execute(
                "UPDATE outbox SET state='withdrawn', reason='stopped', done_at=? WHERE session_id=? "
                f"AND state='pending' AND {OUTBOX_OPEN} AND turn_id IS NOT NULL AND priority='final'",
                (now, session),
            ).rowcount
            return Stopped(queued, bool(running), withdrawn)

        return await self._db.write(stop)

    async def new_generation(self, session: SessionId, now: float) -> None:
        await self._db.write(
            lambda conn: conn.execute(
                "UPDATE sessions SET generation=last_generation+1, last_generation=last_generation+1, cut_seq=0, "
                "snapshot_id=NULL, title=NULL, last_active_at=? WHERE id=?",
                (now, session),
            )
        )

    async def cut_history(self, session: SessionId, keep_from_seq: int) -> None:
        """What is older than ``keep_from_seq`` is no longer sent to a model; it stays stored and searchable."""
        await self._db.write(
            lambda conn: conn.execute(
                "UPDATE sessions SET cut_seq=max(cut_seq, ?) WHERE id=?", (keep_from_seq, session)
            )
        )

    async def unfinished_sessions(self) -> list[SessionId]:
        return await self._db.read(
            lambda conn: [
                SessionId(r[0])
                for r in conn.execute(
                    f"SELECT session_id FROM turns WHERE state='running' AND {TURNS_OPEN} ORDER BY created_at"
                )
            ]
        )


_UNFIT_REASONS = frozenset({"context_overflow", "payload_too_large", "image_too_large"})
"""What a model can never take is kept and searchable, but not sent again: the next message is answered."""


def _refuse(conn: sqlite3.Connection, row: InboxRow, now: float) -> None:
    """The second look found that its author may not talk (any more)."""
    conn.execute(
        "UPDATE inbox SET state='done', outcome=?, outcome_reason='access', done_at=? WHERE id=?",
        (Outcome.IGNORED.value, now, row.id),
    )


def finish_tool(conn: sqlite3.Connection, outcome: ToolOutcome, now: float) -> bool:
    """Accepted for its intent whatever the epoch, if no result is there yet (R10)."""
    accepted = conn.execute(
        "UPDATE journal SET open=0, ended_at=? WHERE intent_id=? AND open=1", (now, outcome.intent_id)
    ).rowcount
    if not accepted:
        return False
    session, principal, generation, step = conn.execute(
        "SELECT session_id, principal_id, generation, step FROM turns WHERE id=?", (outcome.turn_id,)
    ).fetchone()
    _append(conn, outcome.turn_id, session, principal, generation, step, outcome.item, now)
    return True


def _begin_step(conn: sqlite3.Connection, intent: StepIntent, now: float) -> Reservation | Refusal:
    session, principal, generation = _fence(conn, intent.turn_id, intent.epoch)
    conn.execute("UPDATE turns SET step=? WHERE id=?", (intent.step, intent.turn_id))
    for entry in intent.inputs:
        _append(conn, intent.turn_id, session, principal, generation, intent.step, entry.item, now)
        conn.executemany(
            "INSERT OR IGNORE INTO turn_inputs VALUES (?,?,?)",
            [(intent.turn_id, row, intent.step) for row in entry.inbox_ids],
        )
    quote = intent.quote
    reserved = reserve(conn, quote, session, principal, generation, now)
    if isinstance(reserved, Reservation):
        conn.execute(
            "INSERT INTO journal(turn_id, epoch, step, kind, name, open, at) VALUES (?,?,?,'model',?,1,?)",
            (intent.turn_id, intent.epoch, intent.step, f"{quote.provider}/{quote.model}", now),
        )
    return reserved


def _fence(conn: sqlite3.Connection, turn: TurnId, epoch: int) -> tuple[str, str, int]:
    found = conn.execute(
        "SELECT session_id, principal_id, generation FROM turns WHERE id=? AND epoch=? AND state='running'",
        (turn, epoch),
    ).fetchone()
    if found is None:
        raise LostFence(f"turn {turn} is no longer at epoch {epoch}")
    return found[0], found[1], found[2]


def _append(
    conn: sqlite3.Connection, turn: TurnId, session: str, principal: str, generation: int, step: int,
    item: Item, now: float,
) -> None:  # fmt: skip
    silent = isinstance(item, ToolResultItem) or (isinstance(item, UserItem) and item.note)
    text = "" if silent else searchable_text(item)
    conn.execute(
        "INSERT INTO messages(session_id, generation, principal_id, turn_id, step, item, text, created_at) "
        "VALUES (?,?,?,?,?,?,?,?)",
        (session, generation, principal, turn, step, dump_item(item), text, now),
    )


def _close_model_step(conn: sqlite3.Connection, turn: TurnId, now: float) -> None:
    conn.execute(
        "UPDATE journal SET open=0, ended_at=? WHERE turn_id=? AND kind='model' AND open=1", (now, turn)
    )


def _end_inputs(conn: sqlite3.Connection, finish: TurnFinish, now: float) -> None:
    """Finishes exactly the consumed rows and gives back to ``new`` what was bound but not consumed (R10)."""
    consumed = conn.execute(
        "SELECT inbox_id, step FROM turn_inputs WHERE turn_id=? ORDER BY inbox_id", (finish.turn_id,)
    ).fetchall()
    begun_at = min((step for _, step in consumed), default=0)
    last = max((row for row, step in consumed if step == begun_at), default=0)
    for row, step in consumed:
        outcome, ref = finish.outcome, f"turn:{finish.turn_id}"
        if outcome is Outcome.ANSWERED and step > begun_at:
            outcome = Outcome.STEERED_INTO
        elif outcome is Outcome.ANSWERED and row != last:
            outcome, ref = Outcome.MERGED_INTO, str(last)
        conn.execute(
            "UPDATE inbox SET state='done', outcome=?, outcome_reason=?, outcome_ref=?, done_at=? "
            "WHERE id=? AND state='claimed'",
            (outcome.value, finish.reason, ref, now, row),
        )
    if finish.outcome is Outcome.ANSWERED:
        conn.execute(
            "UPDATE inbox SET state='new', turn_id=NULL WHERE turn_id=? AND state='claimed'", (finish.turn_id,)
        )
    else:  # a turn that failed or was stopped before its inputs were written ends them with it
        conn.execute(
            "UPDATE inbox SET state='done', outcome=?, outcome_reason=?, outcome_ref=?, done_at=? "
            "WHERE turn_id=? AND state='claimed'",
            (finish.outcome.value, finish.reason, f"turn:{finish.turn_id}", now, finish.turn_id),
        )
