"""What is over and old goes; what is open or young stays, and the text index stays true (R35)."""

from __future__ import annotations

from hermes.core.records import Outcome
from hermes.store.retention import BATCH, Ages, sweep
from tests.unit.store.making import NOW, Store, delivery

AGES = Ages(messages=100.0, inbox=10.0, outbox=10.0, seen_keys=1000.0)
TABLES = ("inbox", "outbox", "turns", "turn_inputs", "journal", "messages", "seen_keys", "ledger", "spend")


async def left(store: Store) -> dict[str, object]:
    return {t: (await store.rows(f"SELECT count(*) FROM {t}"))[0][0] for t in TABLES}


async def test_each_class_goes_at_its_own_age_and_open_rows_never(store: Store) -> None:
    [row] = await store.answer(1, "about bees")
    await store.outbox.delivered(row.seq, "m", NOW)
    await store.outbox.enqueue([delivery("waits")], NOW)
    await store.say(2)
    assert await sweep(store.db, AGES, NOW + 5) == 0
    assert await sweep(store.db, AGES, NOW + 50) == 3
    assert await left(store) == {
        "inbox": 1, "outbox": 1, "turns": 0, "turn_inputs": 0, "journal": 0, "messages": 2, "seen_keys": 2,
        "ledger": 1, "spend": 4,
    }  # fmt: skip
    assert await sweep(store.db, AGES, NOW + 5000) == 9
    assert await left(store) == {t: int(t in ("inbox", "outbox")) for t in TABLES}


async def test_a_deleted_message_is_found_no_more_and_the_index_is_sound(store: Store) -> None:
    await store.answer(1, "about bees")
    await store.sessions.index_new_text()
    await store.answer(2, "about wasps")  # not indexed yet
    await sweep(store.db, AGES, NOW + 5000)
    [(principal,)] = await store.rows("SELECT principal_id FROM sessions")
    assert await store.sessions.search(principal, "bees", 5) == []  # type: ignore[arg-type]
    await store.db.write(
        lambda conn: conn.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)")
    )
    assert (await left(store))["messages"] == 0


async def test_a_sweep_is_small_and_the_next_one_goes_on(store: Store) -> None:
    for number in range(BATCH + 10):
        row, _ = await store.say(number)
        await store.inbox.finish([row], Outcome.COMMAND, now=NOW)
    assert await sweep(store.db, AGES, NOW + 50) == BATCH
    assert await sweep(store.db, AGES, NOW + 50) == 10
    assert await sweep(store.db, AGES, NOW + 50) == 0
