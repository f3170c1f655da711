"""Files that people sent: ``HERMES_HOME/media/ab/<hash>``, and a row for each attachment (R22).

    keep ── file written, synced, renamed ─► row (fetched) ─► a later attempt finds both and fetches nothing

A file is named by the hash of its bytes, so writing it twice is harmless, and a row whose file is gone counts as
unknown. Age is the file's own: being sent again makes it young.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hermes.core.attachments import Fetched, ImageLimits, Kept
from hermes.core.events import AttachmentRef
from hermes.core.ids import InboxId
from hermes.core.principals import PrincipalId
from hermes.core.transcript import ImageData, ImageRef
from hermes.policy.images import exceeds
from hermes.runtime.logs import get_logger
from hermes.runtime.offload import Offload, OffloadFull, OffloadTimeout
from hermes.runtime.pictures import MAX_PIXELS, TAKEN, NotAPicture, prepare, probe
from hermes.store.database import Database

log = get_logger(__name__)

FETCHED, FAILED = "fetched", "failed"
PICTURE_SECONDS = 30.0
"""Longest time for decoding one picture."""
SMALLER_ONES_BYTES = 32 * 2**20
"""Bytes of pictures that were made smaller and are kept in memory: a turn sends them with each of its steps."""
SWEEP_FILES = 500
"""Files that one pass of the retention removes."""
SWEEP_ROWS = 200
SWEEP_EVERY = 3600.0
_SHORTEST_NAME = 8


class SqliteMedia:
    """Implements ``MediaStore`` and ``Pictures`` of ``core.attachments``. ``folder`` is made when needed, 0700."""

    def __init__(
        self, db: Database, folder: Path, offload: Offload, *, max_pixels: int = MAX_PIXELS
    ) -> None:
        self._db = db
        self._folder = folder
        self._offload = offload
        self.max_pixels = max_pixels
        self.read_seconds = 60.0
        self._smaller: OrderedDict[tuple[str, ImageLimits], ImageData] = OrderedDict()
        self._smaller_bytes = 0
        self._next_sweep = 0.0

    # ---- files and rows ----

    async def known(self, rows: Sequence[InboxId]) -> Mapping[tuple[InboxId, str], Fetched]:
        """See ``MediaStore``."""
        marks = ",".join("?" * len(rows))

        def read(conn: sqlite3.Connection) -> list[tuple[object, ...]]:
            return conn.execute(
                f"SELECT inbox_id, ref, sha256, size, mime, state, error FROM attachments WHERE inbox_id IN ({marks})",
                tuple(rows),
            ).fetchall()

        found: dict[tuple[InboxId, str], Fetched] = {}
        for row, ref, sha256, size, mime, state, error in await self._db.read(read):
            key = (InboxId(int(str(row))), str(ref))
            if state == FAILED:
                found[key] = Fetched(None, str(error))
                continue
            content = await self.read(str(sha256))
            if content is not None and len(content) == size:
                found[key] = Fetched(await self._kept(str(sha256), content, str(mime)))
        return found

    async def keep(self, row: InboxId, attachment: AttachmentRef, content: bytes, now: float) -> Kept:
        """See ``MediaStore``."""
        kept = await self.put(content, attachment.mime or "application/octet-stream")
        await self._note(row, attachment, (kept.mime, kept.size, kept.sha256, FETCHED, None, now))
        return kept

    async def put(self, content: bytes, mime: str) -> Kept:
        """See ``MediaStore``."""
        return await self._kept(await self._offload.run("files", write_file, self._folder, content), content, mime)

    async def failed(self, row: InboxId, attachment: AttachmentRef, error: str, now: float) -> None:
        """See ``MediaStore``."""
        await self._note(row, attachment, (attachment.mime, attachment.size, None, FAILED, error[:300], now))

    async def _note(
        self, row: InboxId, attachment: AttachmentRef,
        rest: tuple[str | None, int | None, str | None, str, str | None, float],
    ) -> None:  # fmt: skip
        def write(conn: sqlite3.Connection) -> None:
            conn.execute("DELETE FROM attachments WHERE inbox_id=? AND ref=?", (row, attachment.ref))
            conn.execute(
                "INSERT INTO attachments(inbox_id, kind, ref, name, mime, size, sha256, state, error, fetched_at) "
                "VALUES (?,?,?,?,?,?,?,?,?,?)",
                (row, attachment.kind, attachment.ref, attachment.name, *rest),
            )

        await self._db.write(write)

    async def _kept(self, sha256: str, content: bytes, mime: str) -> Kept:
        try:
            found = await self._offload.run("cpu", probe, content, self.max_pixels, timeout=PICTURE_SECONDS)
        except (NotAPicture, OffloadTimeout, OffloadFull):
            return Kept(sha256, len(content), mime)
        image = ImageRef(sha256, found.mime, len(content), found.width, found.height)
        return Kept(sha256, len(content), found.mime, image)

    async def read(self, sha256: str) -> bytes | None:
        """See ``MediaStore``."""
        return await self._offload.run("files", read_file, self._path(sha256))

    async def find(self, principal: PrincipalId, sha256: str) -> tuple[AttachmentRef, Kept] | None:
        """See ``MediaStore``."""
        prefix = sha256.lower()
        if len(prefix) < _SHORTEST_NAME or not all(c in "0123456789abcdef" for c in prefix):
            return None

        def read(conn: sqlite3.Connection) -> tuple[str, ...] | None:
            row: tuple[str, ...] | None = conn.execute(
                "SELECT a.kind, a.ref, a.name, a.mime, a.sha256 FROM attachments a JOIN inbox i ON i.id=a.inbox_id "
                "WHERE i.principal_id=? AND a.state='fetched' AND substr(a.sha256, 1, ?)=? ORDER BY a.id DESC LIMIT 1",
                (principal, len(prefix), prefix),
            ).fetchone()
            return row

        row = await self._db.read(read)
        content = await self.read(row[4]) if row is not None else None
        if row is None or content is None:
            return None
        return AttachmentRef(row[0], row[1], row[2], row[3], len(content)), await self._kept(
            row[4], content, row[3] or "application/octet-stream"
        )

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    # ---- pictures ----

    async def load(
        self, images: Sequence[ImageRef], limits: ImageLimits | None = None
    ) -> Mapping[str, ImageData]:
        """See ``Pictures``."""
        wanted = limits if limits is not None else ImageLimits()
        found: dict[str, ImageData] = {}
        for image in images:
            data = await self._load(image, wanted)
            if data is not None:
                found[image.sha256] = data
        return found

    async def _load(self, image: ImageRef, limits: ImageLimits) -> ImageData | None:
        if image.mime in TAKEN.values() and not exceeds(image, limits):
            content = await self.read(image.sha256)
            return ImageData(image.mime, content) if content is not None else None
        key = (image.sha256, limits)
        if key in self._smaller:
            self._smaller.move_to_end(key)
            return self._smaller[key]
        content = await self.read(image.sha256)
        if content is None:
            return None
        try:
            data = await self._offload.run(
                "cpu", prepare, content, limits, self.max_pixels, timeout=PICTURE_SECONDS
            )
        except (NotAPicture, OffloadTimeout, OffloadFull) as error:
            log.warning("picture_left_out", error=str(error))
            return None
        self._smaller[key] = data
        self._smaller_bytes += len(data.data)
        while self._smaller_bytes > SMALLER_ONES_BYTES:
            self._smaller_bytes -= len(self._smaller.popitem(last=False)[1].data)
        return data

    # ---- retention ----

    async def sweep(self, age: float, now: float) -> int:
        """Removes files and rows older than ``age`` seconds, some at a time, and looks for more at most once an hour
        when there was nothing left. Returns how many files and rows went."""
        if now < self._next_sweep:
            return 0
        files = await self._offload.run("files", _remove_old, self._folder, time.time() - age)
        rows = await self._db.write(
            lambda conn: conn.execute(
                "DELETE FROM attachments WHERE id IN (SELECT id FROM attachments WHERE fetched_at<? LIMIT ?)",
                (now - age, SWEEP_ROWS),
            ).rowcount
        )
        if files < SWEEP_FILES and rows < SWEEP_ROWS:
            self._next_sweep = now + SWEEP_EVERY
        return files + rows


def write_file(folder: Path, content: bytes) -> str:
    """The hash that names the file, which is complete on the disk. Raises OSError."""
    sha256 = hashlib.sha256(content).hexdigest()
    path = folder / sha256[:2] / sha256
    try:
        os.utime(path)
        if path.stat().st_size == len(content):
            return sha256
    except FileNotFoundError:
        pass
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
    return sha256


def read_file(path: Path) -> bytes | None:
    """The bytes; None where there is no such file to be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _remove_old(folder: Path, before: float) -> int:
    """Also what a crash left half written: it is old then."""
    return remove_files(old_files(folder, before))


def old_files(folder: Path, before: float) -> list[Path]:
    """Some of the files last written before then (unix seconds)."""
    found: list[Path] = []
    try:
        files = [file for part in os.scandir(folder) if part.is_dir() for file in os.scandir(part.path)]
    except OSError:
        return []
    for file in files:
        if len(found) >= SWEEP_FILES:
            break
        with contextlib.suppress(OSError):
            if file.stat(follow_symlinks=False).st_mtime < before:
                found.append(Path(file.path))
    return found


def remove_files(paths: Iterable[Path]) -> int:
    """How many of them went."""
    removed = 0
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
            removed += 1
    return removed
