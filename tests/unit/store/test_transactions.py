"""R23: a transaction is one function, whole or not at all, whoever is cancelled and whatever the disk says."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import LostOwnership, StoreUnavailable
from hermes.runtime.clock import SystemClock
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import (
    Database,
    ThreadedDatabase,
    _Submitted,
    _until_ended,
    open_connection,
    run_batch,
)
from hermes.store.home import take_ownership
from tests.unit.store.making import NOW, Store


@pytest_asyncio.fixture
async def threaded(tmp_path: Path) -> AsyncIterator[ThreadedDatabase]:
    async for db in opened(tmp_path):
        yield db


async def opened(folder: Path) -> AsyncIterator[ThreadedDatabase]:
    supervisor = Supervisor("test", clock=SystemClock())
    db = ThreadedDatabase(folder / "state.db")
    await db.open()
    await db.write(lambda conn: conn.execute("CREATE TABLE notes(n INTEGER PRIMARY KEY, text TEXT)"))
    yield db
    await db.aclose()
    await supervisor.aclose(1.0)


def insert(number: int) -> object:
    return lambda conn: conn.execute("INSERT INTO notes VALUES (?, '')", (number,)).rowcount


async def notes(db: Database) -> list[int]:
    return await db.read(lambda conn: [r[0] for r in conn.execute("SELECT n FROM notes ORDER BY n")])


async def test_every_commit_reaches_the_disk(threaded: ThreadedDatabase) -> None:
    def pragmas(conn: sqlite3.Connection) -> tuple[object, object]:
        return (
            conn.execute("PRAGMA synchronous").fetchone()[0],
            conn.execute("PRAGMA journal_mode").fetchone()[0],
        )

    assert await threaded.write(pragmas) == (2, "wal"), "2 is FULL: one fsync before a commit is reported"


async def test_what_gathers_while_a_commit_runs_shares_the_next_one(threaded: ThreadedDatabase) -> None:
    before = threaded.commits
    await asyncio.gather(*(threaded.write(insert(n)) for n in range(50)))  # type: ignore[arg-type]
    assert await notes(threaded) == list(range(50))
    assert threaded.commits - before <= 3


async def test_a_failing_transaction_undoes_only_itself(threaded: ThreadedDatabase) -> None:
    def half(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO notes VALUES (100, '')")
        raise RuntimeError("changed my mind")

    outcomes = await asyncio.gather(
        threaded.write(insert(1)),  # type: ignore[arg-type]
        threaded.write(half),
        threaded.write(insert(1)),  # type: ignore[arg-type]  # breaks the key
        threaded.write(insert(2)),  # type: ignore[arg-type]
        return_exceptions=True,
    )
    assert [type(o) for o in outcomes] == [int, RuntimeError, sqlite3.IntegrityError, int]
    assert await notes(threaded) == [1, 2]


@given(kinds=st.lists(st.sampled_from(["insert", "raise", "clash"]), min_size=1, max_size=8))
def test_a_batch_is_the_sum_of_its_sound_transactions(kinds: list[str]) -> None:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    try:
        conn.execute("CREATE TABLE notes(n INTEGER PRIMARY KEY, text TEXT)")
        conn.execute("INSERT INTO notes VALUES (-1, '')")
        outcomes = run_batch(conn, [_act(kind, n) for n, kind in enumerate(kinds)], 0)
        written = [r[0] for r in conn.execute("SELECT n FROM notes WHERE n>=0 ORDER BY n")]
        assert written == [n for n, kind in enumerate(kinds) if kind == "insert"]
        assert [raised is None for _, raised in outcomes] == [kind == "insert" for kind in kinds]
        assert not conn.in_transaction
    finally:
        conn.close()


def _act(kind: str, number: int) -> object:
    def act(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO notes VALUES (?, '')", (number,))
        if kind == "raise":
            raise ValueError(kind)
        if kind == "clash":
            conn.execute("INSERT INTO notes VALUES (-1, '')")

    return act


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_waiter_leaves_its_transaction_whole(
    threaded: ThreadedDatabase, steps: int, times: int
) -> None:
    def two(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO notes VALUES (1, '')")
        conn.execute("INSERT INTO notes VALUES (2, '')")

    task = asyncio.create_task(threaded.write(two))
    for _ in range(steps):
        await asyncio.sleep(0)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task])
    submitted = steps > 0
    assert await notes(threaded) == ([1, 2] if submitted else [])
    assert task.cancelled() or task.done()
    await threaded.write(insert(3))  # type: ignore[arg-type]
    assert 3 in await notes(threaded)


async def test_a_cancelled_waiter_hears_of_it_only_when_its_transaction_is_over(
    threaded: ThreadedDatabase,
) -> None:
    order: list[str] = []
    task = asyncio.create_task(threaded.write(lambda conn: order.append("written")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    order.append("cancelled")
    assert order == ["written", "cancelled"]
    assert task.cancelled()


async def test_a_full_disk_refuses_all_of_a_batch_and_heals(store: Store) -> None:
    def limit(pages: int) -> object:
        return lambda conn: conn.execute(f"PRAGMA max_page_count={pages}").fetchone()

    await store.say(1)
    await store.db.write(limit(1))  # type: ignore[arg-type]  # SQLite takes the file's present size
    big = "x" * 200_000
    outcomes = await asyncio.gather(
        store.say(2, text=big), store.say(3, text=big, chat="8"), return_exceptions=True
    )
    assert any(isinstance(o, StoreUnavailable) for o in outcomes)
    refused = [n for n, o in zip((2, 3), outcomes, strict=True) if isinstance(o, StoreUnavailable)]
    assert {"7/2", "8/3"} - set(await _keys(store)) == {f"{ {2: 7, 3: 8}[n]}/{n}" for n in refused}
    await store.db.write(limit(1_000_000))  # type: ignore[arg-type]
    for number in refused:
        await store.say(number, text=big, chat={2: "7", 3: "8"}[number])
    assert set(await _keys(store)) == {"7/1", "7/2", "8/3"}


async def _keys(store: Store) -> list[object]:
    return [r[0] for r in await store.rows("SELECT dedup_key FROM inbox ORDER BY id")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
async def test_a_really_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    async for db in opened(small_disk):
        store = Store.over(db)
        filler = small_disk / "filler"
        filler.write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize - 64 * 1024))
        acknowledged: list[object] = []
        while (number := len(acknowledged)) < 200 and await _taken(store, number):
            acknowledged.append(f"7/{number}")
        assert 0 < len(acknowledged) < 200
        assert await _keys(store) == acknowledged
        filler.unlink()
        await store.say(999)
        assert await _keys(store) == [*acknowledged, "7/999"]
    survivor = open_connection(small_disk / "state.db")
    assert survivor.execute("SELECT count(*) FROM inbox").fetchone() == (len(acknowledged) + 1,)
    assert survivor.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    survivor.close()


async def _taken(store: Store, number: int) -> bool:
    try:
        await store.say(number, text="x" * 5_000)
    except StoreUnavailable:
        return False
    return True


async def test_a_process_that_lost_the_home_writes_nothing_more(store: Store) -> None:
    owned = await take_ownership(store.db, NOW)
    store.db.generation = owned.generation  # type: ignore[misc]
    await store.say(1)
    await store.db.write(lambda conn: conn.execute("UPDATE owner SET generation=generation+1"))
    with pytest.raises(LostOwnership):
        await store.say(2)
    assert await _keys(store) == ["7/1"]


async def test_a_closed_store_refuses_at_once(tmp_path: Path) -> None:
    async for db in opened(tmp_path):
        kept = db
    with pytest.raises(StoreUnavailable):
        await kept.write(lambda conn: None)
    with pytest.raises(StoreUnavailable):
        await kept.read(lambda conn: None)


async def test_a_reader_cannot_write(threaded: ThreadedDatabase) -> None:
    with pytest.raises(StoreUnavailable):
        await threaded.read(insert(1))  # type: ignore[arg-type]
    assert await notes(threaded) == []


async def test_a_waiter_that_was_cancelled_in_the_moment_in_which_its_batch_ended_leaves() -> None:
    """The batch ends after the cancellation and before the waiter runs: nobody else would wake it again."""
    submitted = _Submitted(lambda conn: None, asyncio.get_running_loop().create_future())
    submitted.future.cancel()
    submitted.resolve(None, None)
    async with asyncio.timeout(1):
        await _until_ended(submitted)
    assert submitted.late is None
