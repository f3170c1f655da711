"""Small makers for the store's tests: updates, rows, whole turns. Times are unix seconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hermes.core.events import Address, RawUpdate
from hermes.core.ids import InboxId, SessionId
from hermes.core.money import Price, Purpose, Quote
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.core.records import (
    Accepted,
    Admitted,
    Claim,
    InboxRow,
    InputItem,
    NewDelivery,
    OutboxRow,
    Outcome,
    OutgoingPart,
    StepIntent,
    TurnFinish,
)
from hermes.core.transcript import AssistantItem, UserItem
from hermes.store.database import Database
from hermes.store.inbox import SqliteInbox
from hermes.store.outbox import SqliteOutbox
from hermes.store.questions import SqliteTurnsAndQuestions
from hermes.store.sessions import SqliteSessions

__all__ = ["NOW", "Store", "address", "answered", "delivery", "everybody", "states", "update"]

NOW = 1_800_000_000.0


def update(
    number: int,
    text: str = "hello",
    *,
    chat: str = "7",
    user: str | None = None,
    kind: ChatKind = ChatKind.PRIVATE,
    ref: str | None = None,
) -> RawUpdate:
    """What a platform said; ``number`` makes its key."""
    return RawUpdate(
        "telegram", "1", f"{chat}/{number}", json.dumps({"text": text}),
        Identity("telegram", "1", user or chat, "A"), ChatRef("telegram", "1", chat, None, kind),
        ref or str(number), NOW,
    )  # fmt: skip


def address(chat: str = "7") -> Address:
    return Address("telegram", "1", chat)


def delivery(*texts: str, chat: str = "7", **more: object) -> NewDelivery:
    return NewDelivery(address(chat), tuple(OutgoingPart(t) for t in texts), **more)  # type: ignore[arg-type]


def everybody(row: InboxRow) -> bool:
    return True


def quote_of(claim: Claim, **more: object) -> Quote:
    """A call that may cost a quarter of a dollar: 50,000 answer tokens at five dollars a million."""
    price = Price(0.0, 5.0, 0.0, 0.0)
    known = {"price": price, "output": 50_000, "least": 256, **more}
    return Quote(claim.turn_id, Purpose.TURN, "p", "m", "2026-12-01", **known)  # type: ignore[arg-type]


def answered(claim: Claim, *texts: str, outcome: Outcome = Outcome.ANSWERED) -> TurnFinish:
    """The end of a turn with one reply of these parts."""
    reply = NewDelivery(claim.address, tuple(OutgoingPart(t) for t in texts), session_id=claim.session_id)
    return TurnFinish(
        claim.turn_id, claim.epoch, outcome, items=(AssistantItem(" ".join(texts)),),
        replies=(reply,) if texts else (),
    )  # fmt: skip


@dataclass
class Store:
    """All ports over one database, and the acts that most tests begin with."""

    db: Database
    inbox: SqliteInbox
    outbox: SqliteOutbox
    turns: SqliteTurnsAndQuestions
    sessions: SqliteSessions

    @staticmethod
    def over(db: Database) -> Store:
        return Store(db, SqliteInbox(db), SqliteOutbox(db), SqliteTurnsAndQuestions(db), SqliteSessions(db))

    async def accept(self, *updates: RawUpdate, key: str | None = None) -> list[Accepted]:
        """T1 for admitted updates; the session's key is the chat unless one is given."""
        admitted = [Admitted(u, key or f"telegram:{u.chat.chat_id}" if u.chat else None) for u in updates]
        return await self.inbox.accept(admitted, (), {}, NOW)

    async def say(self, number: int, text: str = "hello", chat: str = "7") -> tuple[InboxId, SessionId]:
        """One accepted message."""
        [accepted] = await self.accept(update(number, text, chat=chat))
        assert accepted.row.session_id is not None
        return accepted.row.id, accepted.row.session_id

    async def claim(self, session: SessionId) -> Claim:
        claim = await self.turns.claim(session, NOW, everybody)
        assert claim is not None
        return claim

    async def begin(self, claim: Claim, step: int = 1, text: str = "hello") -> None:
        """The step's intent with all of the claim's rows in it."""
        rows = tuple(r.id for r in claim.rows)
        inputs = (InputItem(UserItem(text), rows),) if rows else ()
        await self.turns.begin_step(StepIntent(claim.turn_id, claim.epoch, step, inputs, quote_of(claim)), NOW)

    async def answer(self, number: int, text: str = "hello", reply: str = "hi", chat: str = "7") -> list[OutboxRow]:
        """A message and its answered turn."""
        _, session = await self.say(number, text, chat)
        claim = await self.claim(session)
        await self.begin(claim, text=text)
        return await self.turns.finish(answered(claim, reply), NOW)

    async def rows(self, sql: str, *values: object) -> Sequence[tuple[object, ...]]:
        """Any look at the disk."""
        return await self.db.read(lambda conn: conn.execute(sql, values).fetchall())


async def states(store: Store) -> list[tuple[object, ...]]:
    """(state, outcome) of every accepted row, in order."""
    return list(await store.rows("SELECT state, outcome FROM inbox ORDER BY id"))
