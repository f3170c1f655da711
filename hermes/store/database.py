"""One writer thread that batches whole transactions under one fsync (R23), and read connections.

A transaction is ONE synchronous function ``fn(conn)``; the loop hands it over, waits shielded and
re-raises a cancellation only afterwards, so a cancelled task never leaves half a transaction:

    await db.write(fn) ─┐
    await db.write(fn) ─┼─► batch: BEGIN IMMEDIATE · SAVEPOINT fn · SAVEPOINT fn · COMMIT (one fsync)
    await db.write(fn) ─┘        └ while it runs, the next batch gathers

aiosqlite owns connection and thread; ``Connection._execute`` is the one private name used (ADR 0002).
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiosqlite

from hermes.core.errors import LostOwnership, StoreDamaged, StoreUnavailable
from hermes.store import schema

T = TypeVar("T")
Transaction = Callable[[sqlite3.Connection], T]


class Database(Protocol):
    """Runs transactions; the thread or the caller's own stack, as the lane needs (R28)."""

    @property
    def generation(self) -> int:
        """The owner's generation this process holds; 0 before ``take_ownership``."""

    async def write(self, fn: Transaction[T]) -> T:
        """``fn`` is committed and on disk when this returns. Raises what ``fn`` raised, or StoreUnavailable."""

    async def read(self, fn: Transaction[T]) -> T:
        """``fn`` on a connection that cannot write."""

    async def aclose(self) -> None:
        """Waits for what was submitted, then closes."""


def open_connection(path: Path | str) -> sqlite3.Connection:
    """A writing connection in manual-commit mode, migrated. Raises ForeignHome, StoreUnavailable."""
    schema.refuse_foreign(path)
    try:
        conn = sqlite3.connect(path, isolation_level=None, cached_statements=512)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"state.db cannot be opened: {error}") from error
    try:
        schema.prepare(conn)
    except sqlite3.DatabaseError as error:
        conn.close()
        raise StoreUnavailable(f"state.db cannot be used: {error}; restore the last good backup") from error
    except BaseException:
        conn.close()
        raise
    return conn


def open_reader(path: Path | str) -> sqlite3.Connection:
    """A connection that cannot write."""
    conn = sqlite3.connect(path, isolation_level=None, cached_statements=128)
    conn.execute("PRAGMA query_only=ON")
    return conn


def run_batch(
    conn: sqlite3.Connection, batch: list[Transaction[Any]], generation: int
) -> list[tuple[Any, BaseException | None]]:
    """All of ``batch`` in one commit, each in its own savepoint: one that raises undoes only itself.

    Raises LostOwnership when another process took the file over, sqlite3.Error when nothing was written.
    """
    conn.execute("BEGIN IMMEDIATE")
    try:
        if generation:
            held = conn.execute("SELECT generation FROM owner").fetchone()[0]
            if held != generation:
                raise LostOwnership(f"state.db is owned by generation {held}, this process has {generation}")
        run = _run_alone if len(batch) == 1 else _run_one
        outcomes = [run(conn, fn) for fn in batch]
        if conn.in_transaction:
            conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise
    return outcomes


def _run_alone(conn: sqlite3.Connection, fn: Transaction[Any]) -> tuple[Any, BaseException | None]:
    """A batch of one needs no savepoint: what it raises undoes the whole transaction."""
    try:
        return fn(conn), None
    except BaseException as error:
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, _OF_ONE_TRANSACTION):
            raise  # as in _run_one
        conn.execute("ROLLBACK")
        return None, error


def _run_one(conn: sqlite3.Connection, fn: Transaction[Any]) -> tuple[Any, BaseException | None]:
    conn.execute("SAVEPOINT one")
    try:
        result = fn(conn)
    except BaseException as error:
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, _OF_ONE_TRANSACTION):
            raise  # the disk refused or the file is damaged: the whole batch is undone and each caller is told
        conn.execute("ROLLBACK TO one")
        conn.execute("RELEASE one")
        return None, error
    conn.execute("RELEASE one")
    return result, None


_OF_ONE_TRANSACTION = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError)
"""Errors that say something about a statement; all others say it about the file."""


class _Submitted:
    """A transaction handed over. ``late`` is what a cancelled waiter waits for instead (R23); ``ended``: its batch has,
    perhaps after the waiter was cancelled and before it came to see that."""

    __slots__ = ("ended", "fn", "future", "late")

    def __init__(self, fn: Transaction[Any], future: asyncio.Future[Any]) -> None:
        self.fn = fn
        self.future = future
        self.late: asyncio.Future[None] | None = None
        self.ended = False

    def resolve(self, result: Any, raised: BaseException | None) -> None:
        """Its batch has ended."""
        self.ended = True
        if self.late is not None and not self.late.done():
            self.late.set_result(None)
        if self.future.done():
            return
        if raised is not None:
            self.future.set_exception(raised)
        else:
            self.future.set_result(result)


class ThreadedDatabase:
    """The daemon's database: aiosqlite's threads, batched commits.

    No task stands between a waiter and the thread: a batch is put to the thread where the first of it is
    submitted, and what gathers meanwhile goes with the next. Each wake of the loop less is a wake less in
    the latency of every message.
    """

    def __init__(self, path: Path, *, readers: int = 1) -> None:
        self._path = path
        self._reader_count = readers
        self._readers: list[aiosqlite.Connection] = []
        self._queue: list[_Submitted] = []
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer: aiosqlite.Connection | None = None
        self._closing = False
        self._next_reader = 0
        self.generation = 0
        self.commits = 0
        self.transactions = 0
        self.on_failure: Callable[[BaseException], None] | None = None

    async def open(self) -> None:
        """Opens and migrates. Raises ForeignHome or StoreUnavailable; nothing is left open then."""
        path = self._path
        self._writer = await _connect(lambda: open_connection(path))
        try:
            for _ in range(self._reader_count):
                self._readers.append(await _connect(lambda: open_reader(path)))
        except BaseException:
            await self.aclose()
            raise

    async def write(self, fn: Transaction[T]) -> T:
        if self._closing or self._writer is None:
            raise StoreUnavailable("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        submitted = _Submitted(fn, future)
        self._queue.append(submitted)
        if not self._busy:
            self._put(self._writer)
        try:
            return await future
        except asyncio.CancelledError:
            await _until_ended(submitted)
            raise

    async def read(self, fn: Transaction[T]) -> T:
        if not self._readers:
            raise StoreUnavailable("the store is closed")
        reader = self._readers[self._next_reader]
        self._next_reader = (self._next_reader + 1) % len(self._readers)
        try:
            return await _run_on(reader, fn)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state.db cannot be read: {error}") from error

    async def aclose(self) -> None:
        self._closing = True
        await self._idle.wait()
        for connection in (*self._readers, self._writer):
            if connection is not None:
                await connection.close()
        self._readers.clear()
        self._writer = None

    def _put(self, writer: aiosqlite.Connection) -> None:
        """All that gathered, as one batch, to the writer's thread."""
        batch, self._queue = self._queue, []
        self._busy = True
        self._idle.clear()
        functions = [one.fn for one in batch]
        done: asyncio.Future[list[tuple[Any, BaseException | None]]] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda ended: self._ended(writer, batch, ended))
        # what Connection._execute does, without a task to wait in (ADR 0002)
        writer._tx.put_nowait((done, lambda: run_batch(writer._conn, functions, self.generation)))

    def _ended(
        self,
        writer: aiosqlite.Connection,
        batch: list[_Submitted],
        ended: asyncio.Future[list[tuple[Any, BaseException | None]]],
    ) -> None:
        error = ended.exception()
        if error is not None:
            failure = _failure(error)
            for one in batch:
                one.resolve(None, failure)
            if self.on_failure is not None:
                self.on_failure(failure)
        else:
            self.commits += 1
            self.transactions += len(batch)
            for one, (result, raised) in zip(batch, ended.result(), strict=True):
                one.resolve(result, raised)
        if self._queue:
            self._put(writer)
        else:
            self._busy = False
            self._idle.set()


async def _until_ended(submitted: _Submitted) -> None:
    """A cancelled waiter leaves only when its transaction has ended, one way or the other (R23)."""
    while not submitted.ended:
        if submitted.late is None:
            submitted.late = asyncio.get_running_loop().create_future()
        with contextlib.suppress(asyncio.CancelledError):  # one more is no reason to leave it half seen
            await asyncio.wait([submitted.late])
    if not submitted.future.cancelled():
        submitted.future.exception()  # seen: the waiter is going away


def _failure(error: BaseException) -> LostOwnership | StoreUnavailable:
    """SQLite says a damaged file with the bare DatabaseError; all else may pass (a full disk, an I/O error)."""
    if isinstance(error, LostOwnership):
        return error
    if type(error) is sqlite3.DatabaseError:
        return StoreDamaged(f"state.db is damaged ({error}): nothing more is written; restore the last good backup")
    return StoreUnavailable(f"state.db: {error}")


async def _connect(connector: Callable[[], sqlite3.Connection]) -> aiosqlite.Connection:
    connection = aiosqlite.Connection(connector, iter_chunk_size=64)
    try:
        return await connection
    except BaseException:
        # its thread still answers: it must be gone before the loop is, or it speaks to a closed one
        connection._thread.join(1.0)
        raise


def _run_on(connection: aiosqlite.Connection, fn: Transaction[T]) -> Awaitable[T]:
    execute: Callable[..., Awaitable[T]] = connection._execute
    return execute(lambda: fn(connection._conn))


class InlineDatabase:
    """The simulation's database: one in-memory file, no threads, survives a simulated restart (R28)."""

    def __init__(self, conn: sqlite3.Connection | None = None) -> None:
        self.conn = conn if conn is not None else open_connection(":memory:")
        self.generation = 0
        self.fail_with: sqlite3.Error | None = None

    async def write(self, fn: Transaction[T]) -> T:
        if self.fail_with is not None:
            raise StoreUnavailable(f"state.db: {self.fail_with}")
        try:
            [(result, raised)] = run_batch(self.conn, [fn], self.generation)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state.db: {error}") from error
        if raised is not None:
            raise raised
        return result  # type: ignore[no-any-return]  # run_batch is generic over its callers

    async def read(self, fn: Transaction[T]) -> T:
        return fn(self.conn)

    async def aclose(self) -> None:
        """The file survives: a simulated restart opens it again."""
