"""The book of calls: caps are checked in the transaction that reserves, and totals are the sums of rows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.money import Caps, Charge, Limit, Quote, Refusal, Reservation, Settlement
from hermes.core.principals import PrincipalId
from hermes.core.records import Claim, InputItem, StepIntent
from hermes.core.transcript import Usage, UserItem
from hermes.store.database import InlineDatabase
from hermes.store.home import take_ownership
from hermes.store.ledger import SqliteLedger
from hermes.store.retention import Ages, sweep
from tests.unit.store.making import NOW, Store, answered, quote_of

DAY = "2026-12-01"


@pytest.fixture
async def books(store: Store) -> tuple[Store, SqliteLedger, Claim]:
    _, session = await store.say(1)
    return store, SqliteLedger(store.db), await store.claim(session)


def a_quarter(claim: Claim, **caps: float) -> Quote:
    """A call that may cost $0.25, or at least $0.00128."""
    return quote_of(claim, caps=Caps(**caps))


CAPS = (
    ("turn", Limit.TURN_USD), ("session", Limit.SESSION_USD), ("person_day", Limit.PERSON_DAY_USD),
    ("day", Limit.DAY_USD),
)  # fmt: skip


@pytest.mark.parametrize(("cap", "limit"), CAPS)
async def test_reservations_of_every_scope_fill_its_cap_and_the_next_is_refused(
    books: tuple[Store, SqliteLedger, Claim], cap: str, limit: Limit
) -> None:
    _, ledger, claim = books
    quote = a_quarter(claim, **{cap: 0.5})
    found = [await ledger.reserve(quote, (), NOW) for _ in range(3)]
    assert [isinstance(one, Reservation) for one in found] == [True, True, False]
    refused = found[-1]
    assert isinstance(refused, Refusal)
    assert (refused.limit, refused.cap, refused.left) == (limit, 0.5, 0.0)


async def test_what_a_call_did_not_use_is_free_again(books: tuple[Store, SqliteLedger, Claim]) -> None:
    store, ledger, claim = books
    quote = a_quarter(claim, turn=0.3)
    first = await ledger.reserve(quote, (), NOW)
    assert isinstance(first, Reservation)
    settled = Settlement(first.id, Charge.SETTLED, Usage(100, 50, 20, 10), 0.01, "p2", "m2", 2)
    second = await ledger.reserve(quote, [settled], NOW)
    assert isinstance(second, Reservation)
    assert second.usd == 0.25
    row = await store.rows(
        "SELECT state, actual_usd, input_tokens, output_tokens, cached_tokens, written_tokens, provider, model, calls "
        "FROM ledger WHERE id=?", first.id
    )  # fmt: skip
    assert row == [("settled", 0.01, 100, 50, 20, 10, "p2", "m2", 2)]


async def test_little_money_grants_a_shorter_answer(books: tuple[Store, SqliteLedger, Claim]) -> None:
    _, ledger, claim = books
    found = await ledger.reserve(a_quarter(claim, day=0.1), (), NOW)
    assert isinstance(found, Reservation)
    assert (found.output, found.usd) == (20_000, pytest.approx(0.1))


async def test_a_row_is_closed_once(books: tuple[Store, SqliteLedger, Claim]) -> None:
    store, ledger, claim = books
    found = await ledger.reserve(a_quarter(claim), (), NOW)
    assert isinstance(found, Reservation)
    await ledger.settle([Settlement(found.id, Charge.RELEASED), Settlement(found.id, Charge.CHARGED, usd=None)], NOW)
    assert await store.rows("SELECT state, actual_usd FROM ledger") == [("released", 0.0)]
    assert {usd for (usd,) in await store.rows("SELECT usd FROM spend")} == {0.0}


async def test_without_a_price_nothing_is_totalled_and_no_cap_refuses(books: tuple[Store, SqliteLedger, Claim]) -> None:
    store, ledger, claim = books
    free = replace(a_quarter(claim, day=0.0001), price=None)
    for _ in range(3):
        assert isinstance(await ledger.reserve(free, (), NOW), Reservation)
    assert await store.rows("SELECT count(*), sum(priced) FROM ledger") == [(3, 0)]
    assert await store.rows("SELECT count(*) FROM spend") == [(0,)]


async def test_a_start_charges_what_was_under_way(books: tuple[Store, SqliteLedger, Claim]) -> None:
    store, ledger, claim = books
    await ledger.reserve(a_quarter(claim), (), NOW)
    await take_ownership(store.db, NOW)
    assert await store.rows("SELECT state, actual_usd FROM ledger") == [("charged", 0.25)]


async def test_a_refused_first_step_keeps_the_words_and_opens_nothing(store: Store) -> None:
    row, session = await store.say(1)

    def first(claim: Claim) -> StepIntent:
        inputs = (InputItem(UserItem("hello"), (row,)),)
        return StepIntent(claim.turn_id, claim.epoch, 1, inputs, a_quarter(claim, turn=0.001))

    claim = await store.turns.claim(session, NOW, lambda row: True, first)
    assert claim is not None
    assert claim.begun
    assert isinstance(claim.reservation, Refusal)
    assert await store.rows("SELECT count(*) FROM ledger") == [(0,)]
    assert await store.rows("SELECT count(*) FROM journal") == [(0,)]
    await store.turns.finish(answered(claim, "no money"), NOW)
    assert await store.rows("SELECT state FROM inbox") == [("done",)]


async def test_usage_is_added_up_by_conversation_day_and_model(books: tuple[Store, SqliteLedger, Claim]) -> None:
    _, ledger, claim = books
    for day, model, usd in ((DAY, "m", 0.1), (DAY, "n", 0.2), ("2026-11-30", "m", 0.05), ("2026-11-01", "m", 1.0)):
        quote = replace(a_quarter(claim), day=day, model=model)
        found = await ledger.reserve(quote, (), NOW)
        assert isinstance(found, Reservation)
        await ledger.settle([Settlement(found.id, Charge.SETTLED, Usage(10, 5, 4), usd)], NOW)
    report = await ledger.usage(claim.session_id, claim.principal_id, DAY, 7)
    assert (report.session.calls, report.session.usd) == (4, pytest.approx(1.35))
    assert (report.today.calls, report.today.cached_tokens, report.today.usd) == (2, 8, pytest.approx(0.3))
    assert [(one.name, one.usd) for one in report.models] == [("p/m", 0.1), ("p/n", 0.2)]
    assert [one.name for one in report.days] == [DAY, "2026-11-30"]
    others = await ledger.usage(claim.session_id, PrincipalId("stranger"), DAY, 7)
    assert others.today.calls == 0
    assert others.models == ()


async def test_a_released_call_is_none(books: tuple[Store, SqliteLedger, Claim]) -> None:
    _, ledger, claim = books
    found = await ledger.reserve(a_quarter(claim), (), NOW)
    assert isinstance(found, Reservation)
    await ledger.settle([Settlement(found.id, Charge.RELEASED)], NOW)
    assert (await ledger.usage(claim.session_id, claim.principal_id, DAY, 7)).today.calls == 0


async def test_old_calls_and_totals_go_with_old_messages(books: tuple[Store, SqliteLedger, Claim]) -> None:
    store, ledger, claim = books
    await ledger.reserve(a_quarter(claim), (), NOW)
    ages = Ages(messages=100.0, inbox=1e9, outbox=1e9, seen_keys=1e9)
    await sweep(store.db, ages, NOW + 99)
    assert await store.rows("SELECT count(*) FROM ledger") == [(1,)]
    await sweep(store.db, ages, NOW + 101)
    assert await store.rows("SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM spend)") == [(0,)]


# ---- any order of events ----------------------------------------------------------------------------

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 2), st.floats(0.001, 1.0)),
        st.tuples(st.just("settle"), st.integers(0, 9), st.floats(0.0, 1.0)),
        st.tuples(st.just("release"), st.integers(0, 9), st.just(0.0)),
        st.tuples(st.just("crash"), st.just(0), st.just(0.0)),
    ),
    max_size=40,
)


@given(ACTS, st.floats(0.1, 3.0), st.floats(0.1, 3.0))
@settings(deadline=None, max_examples=60)
def test_in_any_order_no_cap_is_passed_and_totals_are_sums(
    acts: list[tuple[str, int, float]], session_cap: float, day_cap: float
) -> None:
    async def play() -> None:
        store = Store.over(InlineDatabase())
        ledger, claims = SqliteLedger(store.db), []
        for chat in "789":
            _, session = await store.say(int(chat), chat=chat)
            claims.append(await store.claim(session))
        rows: list[Reservation] = []
        for kind, which, amount in acts:
            if kind == "reserve":
                caps = Caps(session=session_cap, day=day_cap)
                quote = quote_of(claims[which], output=int(amount * 200_000), caps=caps)
                found = await ledger.reserve(quote, (), NOW)
                rows += [found] if isinstance(found, Reservation) else []
            elif kind == "crash":
                await take_ownership(store.db, NOW)
            elif rows:
                row = rows[which % len(rows)]
                state = Charge.SETTLED if kind == "settle" else Charge.RELEASED
                await ledger.settle([Settlement(row.id, state, usd=row.usd * amount)], NOW)
        spent = "sum(coalesce(actual_usd, reserved_usd))"
        [(total,)] = await store.rows(f"SELECT coalesce({spent}, 0) FROM ledger")
        assert total <= day_cap + 1e-6
        for session, usd in await store.rows(f"SELECT session_id, {spent} FROM ledger GROUP BY session_id"):
            assert usd <= session_cap + 1e-6
            assert await store.rows("SELECT usd FROM spend WHERE key=?", f"session:{session}:1") == [
                (pytest.approx(usd, abs=1e-6),)
            ]

    asyncio.run(play())
