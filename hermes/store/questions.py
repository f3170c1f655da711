"""Open questions to a person and the suspended turns that wait for them (R12, R13)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from hermes.core.errors import LostFence
from hermes.core.events import Address
from hermes.core.ids import InboxId, IntentId, QuestionId, SessionId, TurnId
from hermes.core.principals import ChatKind
from hermes.core.records import Asked, NewDelivery, OutboxRow, Outcome, Priority, Question, ToolOutcome
from hermes.core.transcript import ToolResultItem, ToolStatus
from hermes.store.delivery_of_turn import adopt_draft, draft_of
from hermes.store.rows import TURNS_OPEN, insert_delivery
from hermes.store.turns import SqliteTurns, finish_tool

_COLUMNS = "id, session_id, turn_id, intent_id, call_id, kind, prompt, options, expires_at, user_id"


class SqliteTurnsAndQuestions(SqliteTurns):
    """Implements ``ports.Turns``."""

    async def suspend(
        self, turn: TurnId, epoch: int, question: Question, reply: NewDelivery, now: float
    ) -> list[OutboxRow]:
        owner = self._db.generation

        def suspend(conn: sqlite3.Connection) -> list[OutboxRow]:
            changed = conn.execute(
                "UPDATE turns SET state='suspended', suspended_until=? WHERE id=? AND epoch=? AND state='running'",
                (question.expires_at, turn, epoch),
            ).rowcount
            if not changed:
                raise LostFence(f"turn {turn} is no longer at epoch {epoch}")
            asker = question.user_id or _asker(conn, turn)
            conn.execute(
                "INSERT INTO questions(session_id, turn_id, intent_id, call_id, kind, prompt, options, user_id, state, "
                "created_at, expires_at) VALUES (?,?,?,?,?,?,?,?,'open',?,?)",
                (
                    question.session_id, turn, question.intent_id, question.call_id, question.kind, question.prompt,
                    json.dumps(question.options), asker, now, question.expires_at,
                ),
            )  # fmt: skip
            draft = draft_of(conn, turn)
            if draft is not None:  # what was shown so far becomes the question
                return adopt_draft(conn, draft, reply, (turn, epoch), now, owner, self.uncertain == "hold")
            return insert_delivery(conn, reply, now, turn_id=turn, epoch=epoch, generation=owner)

        return await self._db.write(suspend)

    async def open_question(self, session: SessionId) -> Question | None:
        def find(conn: sqlite3.Connection) -> Question | None:
            found = conn.execute(
                f"SELECT {_COLUMNS} FROM questions WHERE session_id=? AND state='open' ORDER BY id LIMIT 1", (session,)
            ).fetchone()
            return _question(found) if found else None

        return await self._db.read(find)

    async def sessions_with_questions(self) -> set[SessionId]:
        """Sessions that wait for an answer; kept in memory so that an ordinary message costs no look-up."""
        return await self._db.read(
            lambda conn: {
                SessionId(r[0]) for r in conn.execute("SELECT session_id FROM questions WHERE state='open'")
            }
        )

    async def answer_question(
        self, question: QuestionId, answer: str, by: Sequence[InboxId], now: float, *, expired: bool = False
    ) -> bool:
        def resolve(conn: sqlite3.Connection) -> bool:
            changed = conn.execute(
                "UPDATE questions SET state=?, answer=?, answered_at=? WHERE id=? AND state='open'",
                ("expired" if expired else "answered", answer, now, question),
            ).rowcount
            if not changed:
                return False
            found = conn.execute(f"SELECT {_COLUMNS} FROM questions WHERE id=?", (question,)).fetchone()
            asked = _question(found)
            result = ToolResultItem(
                asked.call_id, "clarify", answer, ToolStatus.ERROR if expired else ToolStatus.OK
            )
            finish_tool(conn, ToolOutcome(asked.turn_id, asked.intent_id, result), now)
            conn.execute(
                "UPDATE turns SET state='running', suspended_until=NULL WHERE id=? AND state='suspended'",
                (asked.turn_id,),
            )
            conn.executemany(
                "UPDATE inbox SET state='done', outcome=?, outcome_ref=?, done_at=? WHERE id=? AND state='new'",
                [(Outcome.ANSWERED_QUESTION.value, f"turn:{asked.turn_id}", now, row) for row in by],
            )
            return True

        return await self._db.write(resolve)

    async def asked_with(self, question: Question) -> Asked | None:
        def find(conn: sqlite3.Connection) -> Asked | None:
            row = conn.execute(
                "SELECT delivery_id, platform, account, chat_id, thread_id, receipt FROM outbox WHERE turn_id=? "
                "AND priority=? AND state='delivered' AND receipt IS NOT NULL ORDER BY seq DESC LIMIT 1",
                (question.turn_id, Priority.APPROVAL.value),
            ).fetchone()
            if row is None:
                return None
            [parts] = conn.execute("SELECT count(*) FROM outbox WHERE delivery_id=?", row[:1]).fetchone()
            return Asked(Address(*row[1:5]), row[5], parts)

        return await self._db.read(find)

    async def expired_questions(self, now: float) -> list[Question]:
        return await self._db.read(
            lambda conn: [
                _question(r)
                for r in conn.execute(
                    f"SELECT {_COLUMNS} FROM questions WHERE state='open' AND expires_at<=?", (now,)
                )
            ]
        )

    async def end_suspended(self, session: SessionId, now: float) -> int:
        """/stop on a suspended turn: the question closes, the turn may be claimed and ended by its lane."""

        def end(conn: sqlite3.Connection) -> int:
            conn.execute(
                "UPDATE questions SET state='withdrawn', answered_at=? WHERE session_id=? AND state='open'",
                (now, session),
            )
            return conn.execute(
                "UPDATE turns SET state='running', cause='stop', suspended_until=NULL "
                f"WHERE session_id=? AND state='suspended' AND {TURNS_OPEN}",
                (session,),
            ).rowcount

        return await self._db.write(end)


def _asker(conn: sqlite3.Connection, turn: int) -> str | None:
    """In a group a question is for whoever began the turn (R39); in a private chat there is nobody else."""
    found = conn.execute(
        "SELECT i.user_id FROM inbox i JOIN turn_inputs t ON t.inbox_id=i.id WHERE t.turn_id=? AND i.chat_kind<>? "
        "ORDER BY i.id LIMIT 1",
        (turn, ChatKind.PRIVATE.value),
    ).fetchone()
    return found[0] if found else None


def _question(r: Sequence[Any]) -> Question:
    return Question(
        QuestionId(r[0]), SessionId(r[1]), TurnId(r[2]), IntentId(r[3]), r[4], r[5], r[6],
        tuple(json.loads(r[7])), r[8], r[9],
    )  # fmt: skip
