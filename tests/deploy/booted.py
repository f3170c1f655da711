"""A real systemd as PID 1, in a container that is an overlay of this machine's own root (no download).

Everything is mounted in a mount namespace of its own: when the container's supervising process ends, however
it ends, the kernel takes the mounts away. Nothing on the host is changed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.structure.source import ROOT
from tests.waiting import until

_BOOT = """
set -eu
mount -t tmpfs -o mode=0755 tmpfs "$SPACE"
mkdir "$SPACE/upper" "$SPACE/work" "$SPACE/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$SPACE/upper,workdir=$SPACE/work" "$SPACE/tree"
rm -rf "$SPACE"/tree/etc/systemd/system/*.wants
: > "$SPACE/tree/etc/machine-id"
cp -a "$STAGE/." "$SPACE/tree/"
exec systemd-nspawn -q -D "$SPACE/tree" --machine="$NAME" -b --register=no --keep-unit --private-network "$@"
"""
_UNIT = "hermes.service"
_LIBRARY = "LD_LIBRARY_PATH=/opt/python/lib"
"""Interpreters built with a shared library look for it where they were built."""
_TIED = ("setpriv", "--pdeathsig", "KILL")  # ends with this process, also if that is killed


def stage(folder: Path) -> list[str]:
    """Lays out an installed Hermes under `folder` as the unit expects it at /opt/hermes.

    Returns the read-only binds that bring in this very interpreter and its packages: the unit's ProtectHome
    hides an interpreter that lives in somebody's home.
    """
    home = folder / "opt/hermes"
    shutil.copytree(ROOT / "hermes", home / "hermes", ignore=shutil.ignore_patterns("__pycache__"))
    binaries = home / ".venv/bin"
    binaries.mkdir(parents=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "opt/python").mkdir()
    (binaries / "python").symlink_to(f"/opt/python/bin/{version}")
    (home / ".venv/pyvenv.cfg").write_text("home = /opt/python/bin\ninclude-system-site-packages = false\n")
    packages = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    inside = home / ".venv/lib" / version / "site-packages"
    inside.mkdir(parents=True)
    program = binaries / "hermes"
    program.write_text(
        "#!/opt/hermes/.venv/bin/python\n"
        "import sys\n"
        "sys.path.insert(0, '/opt/hermes')\n"
        "from hermes.__main__ import main\n"
        "sys.exit(main())\n"
    )
    program.chmod(0o755)
    units = folder / "etc/systemd/system"
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True)
    shutil.copy(ROOT / "deploy/systemd" / _UNIT, units / _UNIT)
    (wants / _UNIT).symlink_to(f"/etc/systemd/system/{_UNIT}")
    drop_in = units / f"{_UNIT}.d/interpreter.conf"
    drop_in.parent.mkdir()
    drop_in.write_text(f"[Service]\nEnvironment={_LIBRARY}\n")
    return [
        f"--bind-ro={sys.base_prefix}:/opt/python",
        f"--bind-ro={packages}:/opt/hermes/.venv/lib/{version}/site-packages",
    ]


class Booted:
    """One booted container. Commands run inside it; `close` powers it off and leaves nothing."""

    def __init__(self, space: Path, staged: Path, binds: list[str]) -> None:
        self._console = space.parent / "console.log"
        name = f"hermes-test-{os.getpid()}"
        environment = {**os.environ, "SPACE": str(space), "STAGE": str(staged), "NAME": name}
        with self._console.open("wb") as console:
            self._outer = subprocess.Popen(
                [*_TIED, "unshare", "--mount", "--propagation", "private", "sh", "-c", _BOOT, "boot", *binds],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._init = 0
        try:
            self._wait_booted()
        except AssertionError:
            self.close()
            raise

    def _wait_booted(self) -> None:
        why = f"the container boots (console: {self._console})"
        self._init = until(self._find_init, within=20, why=why)
        states = {"running", "degraded"}
        until(lambda: self.run("systemctl", "is-system-running").stdout.strip() in states, within=60, why=why)

    def _find_init(self) -> int | None:
        if self._outer.poll() is not None:
            raise AssertionError(f"systemd-nspawn ended: {self._console.read_text(errors='replace')[-2000:]}")
        for child in psutil.Process(self._outer.pid).children():
            if child.name() == "systemd" and Path(f"/proc/{child.pid}/root/run/systemd/private").exists():
                return child.pid
        return None

    def run(self, *command: str, within: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs a command inside, as root; its exit code is the caller's to judge."""
        clean = ["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        return subprocess.run(
            ["nsenter", "-t", str(self._init), "-a", *clean, *command],
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def show(self, what: str) -> str:
        """A property of the unit, as `systemctl show` has it."""
        return self.run("systemctl", "show", "--property", what, "--value", _UNIT).stdout.strip()

    def systemctl(self, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self.run("systemctl", verb, _UNIT, *more, within=180)

    def hermes(self, *words: str, within: float = 60) -> subprocess.CompletedProcess[str]:
        """The command line as the owner types it beside the running service."""
        return self.run(
            *("env", _LIBRARY, "HERMES_HOME=/var/lib/hermes"),
            "/opt/hermes/.venv/bin/hermes",
            *words,
            within=within,
        )

    def journal(self) -> str:
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit", _UNIT).stdout

    def path(self, inside: str) -> Path:
        """A file of the container, seen from outside."""
        return Path(f"/proc/{self._init}/root{inside}")

    def close(self) -> None:
        if self._init and self._outer.poll() is None:
            self.run("systemctl", "poweroff", "--no-block")
        try:
            self._outer.wait(timeout=30 if self._init else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self._outer.pid, signal.SIGKILL)
            self._outer.wait(timeout=10)
