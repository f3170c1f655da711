"""Names that one process of this machine holds at a time, by advisory locks in a private directory.

Used so that two gateways with one bot token do not poll against each other (R32): the second stands by
and takes over when the first is gone, since the kernel gives a dead process's locks back.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
from pathlib import Path


class ExclusiveNames:
    """Holds names until ``release``; the files are named by hashes, so no secret name is ever written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def hold(self, name: str) -> bool:
        """True when this process holds the name now; False while another does. Does not wait.

        Where the directory cannot be used the name counts as held: a lock is a courtesy, not a condition.
        """
        if name in self._held:
            return True
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._directory / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.lock"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._held[name] = fd
        return True

    def release(self) -> None:
        """Gives all names back. Idempotent."""
        for fd in self._held.values():
            with contextlib.suppress(OSError):
                os.close(fd)
        self._held.clear()


def machine_directory(runtime_dir: Path | None) -> Path:
    """The user's private runtime directory, or one of the user's own under the system's temporary one."""
    if runtime_dir is not None:
        return runtime_dir / "hermes"
    return Path(tempfile.gettempdir()) / f"hermes-{os.getuid()}"
