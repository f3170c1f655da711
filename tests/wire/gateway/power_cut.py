"""The scenario of `test_power_cut`: a file system of the gateway's own is shut down under load and recovered."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import struct
import subprocess
from pathlib import Path

from tests.waiting import until
from tests.wire.gateway.harness import Gateway, Lab, lab
from tests.wire.gateway.invariants import check_chats, check_disk, stop_when_delivered, unanswered
from tests.wire.gateway.random_kills import Talk

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
CUTS = 3


class Disk:
    """An ext4 of its own in a file; ``cut`` is what a power failure does to it."""

    def __init__(self, tmp: Path) -> None:
        self.image, self.place = tmp / "disk.img", tmp / "disk"
        self.place.mkdir()
        with self.image.open("wb") as image:
            image.truncate(256 << 20)
        _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0", str(self.image))

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.place))

    def cut(self) -> None:
        """From now on every write and sync fails; what was not on the disk is lost."""
        fd = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        if os.path.ismount(self.place):
            _run("umount", str(self.place))

    def check(self) -> None:
        _run("e2fsck", "-fn", str(self.image))


def _run(*command: str) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": path}, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


def play(tmp_path: Path, seed: int) -> int:
    """Cuts the power under load, three times; returns how many messages were answered in the end."""
    tmp_path.mkdir()
    disk = Disk(tmp_path)
    disk.mount()
    try:
        return _play(tmp_path, disk, random.Random(seed))
    finally:
        disk.unmount()


def _play(tmp_path: Path, disk: Disk, rng: random.Random) -> int:
    with lab(tmp_path) as it:
        it.gateway = Gateway(disk.place / "home", it.gateway.config)
        it.gateway.log = tmp_path / "gateway.log"  # the log is not on the disk that fails
        it.gateway.runtime = tmp_path / "run"
        _run("sync", "-f", str(it.gateway.config_file))  # the owner's file, written long ago
        talk = Talk(it, rng)
        for _ in range(CUTS):
            it.gateway.start()
            talk.some(rng.uniform(0.3, 1.5))
            _hold_still(it)
            disk.cut()
            it.gateway.signal(signal.SIGCONT)
            talk.some(rng.uniform(0.1, 1.0))  # nothing of this may be acknowledged and lost
            assert _ends_or_is_killed(it) in (75, -9)
            disk.unmount()
            disk.mount()
        it.model.order("config", {"latency": 0, "gap": 0})
        it.gateway.start()
        until(lambda: not unanswered(it.telegram, talk.said), within=120, why="all is answered", every=0.5)
        until(lambda: it.telegram.read("state")["pending"] == 0, within=20, why="all is confirmed")
        stop_when_delivered(it.gateway, it.telegram)
        check_disk(it.gateway)
        answered = check_chats(it.telegram, talk.said).messages
        it.gateway.close()
    disk.unmount()
    disk.check()
    return answered


def _hold_still(it: Lab) -> None:
    """Stops every thread outside of a system call: power fails for all at one instant.

    A sync that is under way while this ioctl runs may report success and lose its data; a plain file shows
    the same. So nothing is under way, and what was acknowledged before was truly on the disk.
    """
    assert it.gateway.process is not None
    tasks = Path(f"/proc/{it.gateway.process.pid}/task")
    it.gateway.signal(signal.SIGSTOP)
    until(lambda: all(_state(task) == "T" for task in tasks.iterdir()), within=20, why="all threads stand", every=0.005)


def _state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(") ")[2][0]


def _ends_or_is_killed(it: Lab) -> int:
    """A gateway whose disk is gone may end by itself and ask for a restart, or go on waiting for the disk."""
    assert it.gateway.process is not None
    if it.gateway.process.poll() is None:
        it.gateway.kill()
        return -9
    return it.gateway.wait_exit()
