"""The book of calls: reserved before each, closed after it, and never more than the caps together (R16).

``spend`` holds the running total of each scope that a cap can have: what is settled and what is reserved. It
is written in the transactions that write ``ledger``, and only for calls that cost something.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hermes.core.ids import SessionId
from hermes.core.money import (
    Charge,
    Quote,
    Refusal,
    Reservation,
    Settlement,
    Totals,
    UsageLine,
    UsageReport,
)
from hermes.core.principals import PrincipalId
from hermes.policy.budget import Granted, grant
from hermes.store.database import Database

_SUMS = (
    "coalesce(sum(calls), 0), coalesce(sum(input_tokens), 0), coalesce(sum(cached_tokens), 0), "
    "coalesce(sum(output_tokens), 0), coalesce(sum(coalesce(actual_usd, reserved_usd)), 0), "
    "coalesce(sum(calls * (1 - priced)), 0)"
)
_COUNTED = "state <> 'released'"


class SqliteLedger:
    """Implements ``core.money.Ledger``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def reserve(
        self, quote: Quote, closing: Sequence[Settlement], now: float
    ) -> Reservation | Refusal:
        def book(conn: sqlite3.Connection) -> Reservation | Refusal:
            settle(conn, closing, now)
            session, principal, generation = conn.execute(
                "SELECT session_id, principal_id, generation FROM turns WHERE id=?", (quote.turn_id,)
            ).fetchone()
            return reserve(conn, quote, session, principal, generation, now)

        return await self._db.write(book)

    async def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        await self._db.write(lambda conn: settle(conn, settlements, now))

    async def usage(
        self, session: SessionId | None, principal: PrincipalId | None, day: str, days: int
    ) -> UsageReport:
        return await self._db.read(lambda conn: _report(conn, session, principal, day, days))


def reserve(
    conn: sqlite3.Connection, quote: Quote, session: str, principal: str, generation: int, now: float
) -> Reservation | Refusal:
    """Opens a row for a call about to be made, inside the caller's transaction."""
    usd, output = 0.0, None
    if quote.price is not None:
        spent = _totals(conn, quote, session, principal, generation) if quote.caps.any else Totals()
        answer = grant(
            quote.caps, spent, quote.price, tokens_in=quote.tokens_in, output=quote.output, least=quote.least
        )
        if not isinstance(answer, Granted):
            return answer
        bounded = quote.caps.any or answer.output < quote.output  # under a cap nothing is left to the server
        usd, output = answer.usd, answer.output if bounded else None
    row = conn.execute(
        "INSERT INTO ledger(turn_id, session_id, principal_id, generation, day, provider, model, purpose, state, "
        "reserved_usd, priced, at) VALUES (?,?,?,?,?,?,?,?,'open',?,?,?)",
        (quote.turn_id, session, principal, generation, quote.day, quote.provider, quote.model,
         quote.purpose.value, usd, quote.price is not None, now),
    ).lastrowid  # fmt: skip
    assert row is not None
    if usd:
        _add(conn, _keys(quote.turn_id, session, generation, principal, quote.day), usd, now)
    return Reservation(row, quote.provider, quote.model, usd, output, quote.price)


def settle(conn: sqlite3.Connection, settlements: Sequence[Settlement], now: float) -> None:
    """Closes rows that are open, inside the caller's transaction; others stay as they are."""
    for one in settlements:
        found = conn.execute(
            "SELECT reserved_usd, turn_id, session_id, generation, principal_id, day FROM ledger "
            "WHERE id=? AND state='open'",
            (one.id,),
        ).fetchone()
        if found is None:
            continue
        reserved, turn, session, generation, principal, day = found
        usd = reserved if one.usd is None else one.usd
        used = one.usage
        conn.execute(
            "UPDATE ledger SET state=?, actual_usd=?, input_tokens=?, output_tokens=?, cached_tokens=?, "
            "written_tokens=?, calls=?, settled_at=?, provider=coalesce(nullif(?, ''), provider), "
            "model=coalesce(nullif(?, ''), model) WHERE id=?",
            (one.state.value, usd, used.input_tokens, used.output_tokens, used.cached_tokens, used.written_tokens,
             one.calls, now, one.provider, one.model, one.id),
        )  # fmt: skip
        if usd != reserved:
            _add(conn, _keys(turn, session, generation, principal, day), usd - reserved, now)


def charge_open(conn: sqlite3.Connection, turn: int, now: float) -> None:
    """Calls of a turn of which nobody will learn how they ended are charged in full."""
    conn.execute(
        "UPDATE ledger SET state=?, actual_usd=reserved_usd, settled_at=? WHERE turn_id=? AND state='open'",
        (Charge.CHARGED.value, now, turn),
    )


def charge_all_open(conn: sqlite3.Connection, now: float) -> int:
    """The same for all calls that were under way when the last process died; how many."""
    return conn.execute(
        "UPDATE ledger SET state=?, actual_usd=reserved_usd, settled_at=? WHERE turn_id>=0 AND state='open'",
        (Charge.CHARGED.value, now),
    ).rowcount


def _keys(
    turn: int | None, session: str | None, generation: int | None, principal: str | None, day: str
) -> tuple[str, ...]:
    """The scopes of a call, as keys of ``spend``; the order is that of ``Totals``."""
    return (f"turn:{turn}", f"session:{session}:{generation}", f"person:{principal}:{day}", f"day:{day}")


def _add(conn: sqlite3.Connection, keys: Sequence[str], usd: float, now: float) -> None:
    conn.executemany(
        "INSERT INTO spend(key, usd, at) VALUES (?,?,?) "
        "ON CONFLICT(key) DO UPDATE SET usd=max(0.0, usd+excluded.usd), at=excluded.at",
        [(key, usd, now) for key in keys],
    )


def _totals(
    conn: sqlite3.Connection, quote: Quote, session: str, principal: str, generation: int
) -> Totals:
    found = [
        conn.execute("SELECT usd FROM spend WHERE key=?", (key,)).fetchone()
        for key in _keys(quote.turn_id, session, generation, principal, quote.day)
    ]
    return Totals(*(float(row[0]) if row is not None else 0.0 for row in found))


def _report(
    conn: sqlite3.Connection, session: str | None, principal: str | None, day: str, days: int
) -> UsageReport:
    def line(name: str, where: str, *values: object) -> UsageLine:
        found = conn.execute(f"SELECT {_SUMS} FROM ledger WHERE {where} AND {_COUNTED}", values).fetchone()
        return UsageLine(name, *found)

    whose, own = ("principal_id=?", (principal,)) if principal is not None else ("1=1", ())
    in_session = UsageLine("session")
    if session is not None:
        in_session = line(
            "session",
            "session_id=? AND generation=(SELECT generation FROM sessions WHERE id=?)",
            session, session,
        )  # fmt: skip
    models = conn.execute(
        f"SELECT provider || '/' || model, {_SUMS} FROM ledger WHERE day=? AND {whose} AND {_COUNTED} "
        "GROUP BY provider, model ORDER BY 2 DESC",
        (day, *own),
    ).fetchall()
    recent = conn.execute(
        f"SELECT day, {_SUMS} FROM ledger WHERE day>=date(?, ?) AND {whose} AND {_COUNTED} "
        "GROUP BY day ORDER BY day DESC",
        (day, f"-{max(0, days - 1)} days", *own),
    ).fetchall()
    return UsageReport(
        day, in_session, line("today", f"day=? AND {whose}", day, *own),
        tuple(UsageLine(*r) for r in models), tuple(UsageLine(*r) for r in recent),
        line("everybody", "day=?", day),
    )  # fmt: skip
