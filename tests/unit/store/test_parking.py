"""Parked turns and upstreams on disk."""

from __future__ import annotations

import pytest

from hermes.core.errors import LostFence
from hermes.core.governor import Park, StoredUpstream
from hermes.core.money import Charge, Settlement
from hermes.core.records import Claim, TurnCause
from hermes.store.parking import SqliteParking
from hermes.store.upstreams import SqliteUpstreams
from tests.unit.store.making import NOW, Store, delivery

OUTAGE = "main/m@1800000000"


async def running(store: Store, number: int, chat: str = "7") -> Claim:
    """A turn at its first step."""
    _, session = await store.say(number, chat=chat)
    claim = await store.claim(session)
    await store.begin(claim)
    return claim


def park_of(claim: Claim, *, step: int = 1, outage: str = OUTAGE, until: float = NOW + 600) -> Park:
    """Twelve seconds of work, then the upstream was gone."""
    refused = tuple(Settlement(n, Charge.RELEASED) for n in range(1, 9))
    return Park(claim.turn_id, claim.epoch, step, outage, 12.0, until, refused)


async def test_a_parked_turn_takes_no_new_turn_costs_nothing_and_asks_the_same_step_again(store: Store) -> None:
    parking = SqliteParking(store.db)
    claim = await running(store, 1)
    [told] = await parking.park(park_of(claim), delivery("down"), NOW)
    assert told.turn_id == claim.turn_id
    await store.say(2)
    assert await store.turns.claim(claim.session_id, NOW, lambda row: True) is None
    assert await store.rows("SELECT state, actual_usd FROM ledger") == [("released", 0.0)]
    assert await parking.resume(claim.turn_id, NOW)
    again = await store.claim(claim.session_id)
    assert (again.turn_id, again.step, again.active_seconds, again.cause) == (claim.turn_id, 1, 12.0, None)
    assert len(again.history) == 1


async def test_a_chat_hears_of_an_outage_once_and_a_turn_never_twice(store: Store) -> None:
    parking = SqliteParking(store.db)
    first = await running(store, 1)
    other = await running(store, 2, chat="8")
    assert len(await parking.park(park_of(first), delivery("down"), NOW)) == 1
    assert len(await parking.park(park_of(other), delivery("down", chat="8"), NOW)) == 1
    await parking.resume(first.turn_id, NOW)
    again = await store.claim(first.session_id)
    await store.begin(again)
    later = park_of(again, outage="main/m@1800009999")
    assert await parking.park(later, delivery("down"), NOW) == []
    await store.turns.end_suspended(first.session_id, NOW)
    ended = await store.claim(first.session_id)
    assert ended.cause is TurnCause.STOP


async def test_the_bound_counts_from_the_first_parking(store: Store) -> None:
    parking = SqliteParking(store.db)
    claim = await running(store, 1)
    await parking.park(park_of(claim), delivery("down"), NOW)
    await parking.resume(claim.turn_id, NOW)
    again = await store.claim(claim.session_id)
    await store.begin(again)
    await parking.park(park_of(again, until=NOW + 9999), delivery("down"), NOW)
    [waiting] = await parking.parked()
    assert (waiting.until, waiting.outage, waiting.session_id) == (NOW + 600, OUTAGE, claim.session_id)
    assert await parking.expire(claim.turn_id, NOW)
    assert not await parking.expire(claim.turn_id, NOW)
    assert await parking.parked() == []
    assert (await store.claim(claim.session_id)).cause is TurnCause.OUTAGE


async def test_a_turn_whose_end_was_decided_is_not_parked(store: Store) -> None:
    parking = SqliteParking(store.db)
    claim = await running(store, 1)
    row, _ = await store.say(2)
    await store.turns.stop(claim.session_id, row, NOW)
    with pytest.raises(LostFence):
        await parking.park(park_of(claim), delivery("down"), NOW)
    assert await store.rows("SELECT count(*) FROM outbox") == [(0,)]


async def test_upstreams_come_back_as_they_were_saved(store: Store) -> None:
    upstreams = SqliteUpstreams(store.db)
    await upstreams.save([StoredUpstream("a/b", "{}", NOW + 5, NOW), StoredUpstream("c/d", "{}", None, NOW)])
    await upstreams.save([StoredUpstream("a/b", '{"x":1}', None, NOW + 1)])
    assert await upstreams.load() == [
        StoredUpstream("a/b", '{"x":1}', None, NOW + 1),
        StoredUpstream("c/d", "{}", None, NOW),
    ]
