"""Files on their way out: ``HERMES_HOME/spool/ab/<hash>``, complete on disk before any row names them (R22).

A row of the outbox names its file by hash, so that what is sent is what was meant, whatever becomes of the original.
A file outlives every row that waits for it, and goes at the age of media once none does.
"""

from __future__ import annotations

import time
from pathlib import Path

from hermes.core.transcript import FileRef
from hermes.runtime.offload import Offload
from hermes.store.database import Database
from hermes.store.media import SWEEP_FILES, old_files, read_file, remove_files, write_file

SWEEP_EVERY = 3600.0


class Spool:
    """``folder`` is made when needed, 0700."""

    def __init__(self, db: Database, folder: Path, offload: Offload) -> None:
        self._db = db
        self._folder = folder
        self._offload = offload
        self._next_sweep = 0.0

    async def put(self, name: str, mime: str, content: bytes) -> FileRef:
        """The file is on disk when this returns. Raises OSError."""
        sha256 = await self._offload.run("files", write_file, self._folder, content)
        return FileRef(sha256, name, mime, len(content))

    async def read(self, sha256: str) -> bytes | None:
        """The bytes; None when they are gone."""
        return await self._offload.run("files", read_file, self._folder / sha256[:2] / sha256)

    async def sweep(self, age: float, now: float) -> int:
        """Removes files older than ``age`` seconds that no open row names, some at a time, at most once an hour when
        nothing was left. Returns how many."""
        if now < self._next_sweep:
            return 0
        old = await self._offload.run("files", old_files, self._folder, time.time() - age)
        wanted = await self._db.read(
            lambda conn: {
                str(name)
                for (name,) in conn.execute(
                    "SELECT DISTINCT file FROM outbox WHERE file IS NOT NULL AND state NOT IN "
                    "('delivered', 'withdrawn')"
                )
            }
        )
        gone = await self._offload.run("files", remove_files, [path for path in old if path.name not in wanted])
        if len(old) < SWEEP_FILES:
            self._next_sweep = now + SWEEP_EVERY
        return gone
