"""One owner of one home, and no hand on what is another program's (R32, R34)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.errors import ForeignHome, HomeInUse, StoreUnavailable
from hermes.store.database import open_connection
from hermes.store.home import HomeLock, prepare_home, refuse_shared
from hermes.store.schema import APPLICATION_ID, MIGRATIONS

HOLDER = """
import sys
from pathlib import Path
from hermes.store.home import HomeLock
lock = HomeLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_a_new_file_is_ours_and_of_this_version(tmp_path: Path) -> None:
    conn = open_connection(tmp_path / "state.db")
    assert conn.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert conn.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    conn.close()
    open_connection(tmp_path / "state.db").close()


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("mark", ["PRAGMA application_id=7", "CREATE TABLE sessions(id)", "PRAGMA user_version=3"])
def test_another_programs_file_is_refused_and_left_as_it_was(tmp_path: Path, mode: str, mark: str) -> None:
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute(f"PRAGMA journal_mode={mode}")
    other.execute(mark)
    other.execute("PRAGMA wal_checkpoint")
    other.execute("CREATE TABLE later(x)")  # in wal mode this lies in the log only
    before = contents(tmp_path)
    with pytest.raises(ForeignHome, match="hermes import"):
        open_connection(tmp_path / "state.db")
    assert contents(tmp_path) == before
    other.close()


def test_a_newer_schema_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    conn = open_connection(tmp_path / "state.db")
    conn.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    conn.close()
    before = contents(tmp_path)
    with pytest.raises(ForeignHome, match="start the newer version again"):
        open_connection(tmp_path / "state.db")
    assert contents(tmp_path) == before


def test_a_damaged_file_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreUnavailable, match="restore the last good backup"):
        open_connection(tmp_path / "state.db")


def test_a_crash_between_two_migrations_or_before_the_first_is_mended_by_the_next_start(tmp_path: Path) -> None:
    fresh = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    fresh.execute("PRAGMA journal_mode=WAL")
    fresh.execute(f"PRAGMA application_id={APPLICATION_ID}")
    fresh.close()
    conn = open_connection(tmp_path / "state.db")
    assert conn.execute("SELECT generation FROM owner").fetchone() == (0,)
    conn.close()


def test_a_second_gateway_on_one_home_is_refused_by_name_and_let_in_afterwards(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    lock = HomeLock(tmp_path)
    with pytest.raises(HomeInUse, match=f"pid {holder.pid}"):
        lock.acquire()
    holder.kill()
    holder.wait(timeout=20)
    holder.stdin.close()
    holder.stdout.close()
    lock.acquire()
    with pytest.raises(HomeInUse):
        HomeLock(tmp_path).acquire()
    lock.release()
    lock.release()


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /net rw,relatime shared:2 master:7 - nfs4 server:/export rw
31 30 254:1 / /net/local rw - xfs /dev/vdb rw
32 22 0:32 / /mnt/with\\040space rw - vboxsf host rw
33 22 0:33 / /box rw - overlay overlay rw
34 22 0:34 / /tmp rw - tmpfs tmpfs rw
35 22 0:35 / /mnt/c rw - 9p C:\\134 rw
36 22 0:36 / /ssh rw - fuse.sshfs me@there:/ rw
37 22 0:37 / /fuse rw - fuse.fuse-overlayfs fuse-overlayfs rw
"""


@pytest.mark.parametrize(
    ("home", "kind"),
    [
        ("/srv/me/.hermes", None),
        ("/net/home", "nfs4"),
        ("/net/local/home", None),
        ("/network/home", None),
        ("/mnt/with space/home", "vboxsf"),
        ("/box/home", None),
        ("/tmp/home", None),
        ("/mnt/c/Users/me", "9p"),
        ("/ssh", "fuse.sshfs"),
        ("/fuse/home", None),
    ],
)
def test_a_home_on_a_shared_file_system_is_refused_by_name(home: str, kind: str | None) -> None:
    if kind is None:
        assert refuse_shared(Path(home), MOUNTS) is None
        return
    with pytest.raises(ForeignHome, match=rf"\({kind}\).*local disk"):
        refuse_shared(Path(home), MOUNTS)


def test_a_home_is_private_to_its_owner(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    prepare_home(home)
    assert home.stat().st_mode & 0o777 == 0o700
    assert {p.name for p in home.iterdir()} >= {"memories", "skills", "media", "spill", "logs", "backups"}
    assert all(p.stat().st_mode & 0o077 == 0 for p in home.iterdir())
