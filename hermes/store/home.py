"""One owner of one home (R32): the lock, the generation, and what an unclean end left behind (R15)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from hermes.core.errors import ForeignHome, HomeInUse
from hermes.store.database import Database
from hermes.store.ledger import charge_all_open

PARK_AFTER_CRASHES = 3
SOCKET_PATH_BYTES = 107
"""unix(7): what fits into ``sun_path`` besides its terminator."""


def _locked(fd: int) -> bool:
    """Takes the lock if it is free; taking it again is fine."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class HomeLock:
    """An exclusive lock on ``HERMES_HOME/gateway.lock``; never on state.db, whose locks SQLite owns."""

    def __init__(self, home: Path) -> None:
        self._path = home / "gateway.lock"
        self._fd: int | None = None

    def acquire(self, patience: float = 0.0) -> None:
        """Waits at most ``patience`` seconds. Raises HomeInUse, naming the process that holds it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + patience
        while not _locked(fd) and time.monotonic() < until:
            time.sleep(0.05)
        if not _locked(fd):
            holder = os.pread(fd, 64, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise HomeInUse(
                f"another gateway (pid {holder}) already serves {self._path.parent}: stop it first, "
                "or set HERMES_HOME to another directory"
            )
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Idempotent."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


@dataclass(frozen=True, slots=True)
class Ownership:
    """What taking the home over found."""

    generation: int
    clean: bool
    unclean_starts: int
    suspects: int
    parked: int


async def take_ownership(db: Database, now: float) -> Ownership:
    """Raises the generation and, after an unclean end, counts the turns that may have caused it."""

    def take(conn: sqlite3.Connection) -> Ownership:
        generation, clean, unclean = conn.execute(
            "SELECT generation, clean_end, unclean_starts FROM owner"
        ).fetchone()
        suspects = parked = 0
        if clean:
            unclean = 0
        else:
            unclean += 1
            suspects, parked = _blame(conn)
        charge_all_open(conn, now)  # no call of an earlier process is under way any more (R16)
        conn.execute(
            "UPDATE owner SET generation=?, pid=?, host=?, started_at=?, clean_end=0, unclean_starts=?",
            (generation + 1, os.getpid(), socket.gethostname(), now, unclean),
        )
        return Ownership(generation + 1, bool(clean), unclean, suspects, parked)

    return await db.write(take)


def _blame(conn: sqlite3.Connection) -> tuple[int, int]:
    """R15: suspects are running turns with a local step open; only one that ran alone is parked."""
    suspects = [
        r[0]
        for r in conn.execute(
            "SELECT t.id FROM turns t WHERE t.state='running' AND t.state<>'done' AND EXISTS (SELECT 1 FROM journal j "
            "WHERE j.turn_id=t.id AND j.kind='tool' AND j.open=1) AND coalesce((SELECT j.kind FROM journal j "
            "WHERE j.turn_id=t.id ORDER BY j.id DESC LIMIT 1), '')<>'released'"
        )
    ]
    parked = 0
    for turn in suspects:
        conn.execute("UPDATE turns SET crashes=crashes+1 WHERE id=?", (turn,))
        parked += conn.execute(
            "UPDATE turns SET parked=1 WHERE id=? AND alone=1 AND crashes>=?", (turn, PARK_AFTER_CRASHES)
        ).rowcount
    return len(suspects), parked


async def note_clean_end(db: Database) -> None:
    """The last write of an orderly shutdown."""
    await db.write(lambda conn: conn.execute("UPDATE owner SET clean_end=1"))


SHARED_FILE_SYSTEMS = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre", "beegfs",
    "gpfs", "ocfs2", "gfs2", "9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "drvfs", "fuse.sshfs",
    "fuse.vmhgfs-fuse", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.ceph", "fuse.cephfs",
    "fuse.davfs", "fuse.gcsfuse", "fuse.blobfuse", "fuse.blobfuse2", "fuse.gvfsd-fuse", "fuse.osxfs",
    "fuse.grpcfuse",
})  # fmt: skip
"""Kinds whose locks or shared memory do not reach every machine that can open the file (R43,
https://www.sqlite.org/useovernet.html, https://www.sqlite.org/wal.html §1)."""


def refuse_shared(home: Path, mounts: str) -> None:
    """Raises ForeignHome when ``home`` lies on a network or VM-shared file system.

    ``mounts`` is the text of /proc/self/mountinfo; see proc(5).
    """
    real = Path(os.path.realpath(home))
    nearest, kind = Path("/"), ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4].encode("latin-1", "replace").decode("unicode_escape", "replace"))
        if (point == real or point in real.parents) and len(point.parts) >= len(nearest.parts):
            nearest, kind = point, after.split(" ")[0]
    if kind in SHARED_FILE_SYSTEMS:
        raise ForeignHome(
            f"the home {home} lies on {nearest}, a shared file system ({kind}), where a database can be damaged: "
            "set HERMES_HOME to a directory on a local disk"
        )


def prepare_home(home: Path) -> None:
    """The home and its directories, private to their owner. Raises ForeignHome on a shared file system."""
    if len(os.fsencode(home / "control.sock")) > SOCKET_PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, f"its path is too long for a socket: at most {SOCKET_PATH_BYTES - 13} bytes")
    with contextlib.suppress(FileNotFoundError):  # no Linux: nothing is known about mounts
        refuse_shared(home, Path("/proc/self/mountinfo").read_text("utf-8", "replace"))
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        home.chmod(0o700)
    for name in ("memories", "skills", "media", "spill", "logs", "backups"):
        (home / name).mkdir(mode=0o700, exist_ok=True)
