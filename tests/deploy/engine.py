"""A Docker engine of the tests' own: its data, socket, mounts and processes end with it.

It runs in mount and process namespaces of its own and touches no network setting of the host (no bridge, no
packet filter rules); containers get the host's network while building and none while running.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.capabilities import dockerd
from tests.structure.source import ROOT
from tests.waiting import until

BASE = "python:3.13-slim"
IMAGE = "hermes-test"


def base_archive() -> Path:
    """The stand-in for the base image; made once a machine (about a minute) and kept in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tests"
    archive = cache / "python-3.13-slim.v1.tar"
    if not archive.exists():
        done = subprocess.run(
            [ROOT / "tests/deploy/base_image.sh", archive], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"the base image could not be made: {done.stderr[-2000:]}"
    return archive


class Engine:
    """A running engine; `docker` runs the client against it, `close` ends everything."""

    def __init__(self, folder: Path) -> None:
        program = dockerd()
        assert program is not None
        self._folder = folder
        self._log = folder / "engine.log"
        self._group = f"hermes-test-{os.getpid()}"
        socket = folder / "sock"
        # A shell is process 1 there: it reaps what the engine orphans, and its end ends all the others.
        command = [
            *(
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ),
            *("sh", "-c", '"$@" & wait', "engine", program),
            *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
            *("--pidfile", str(folder / "pid"), "--host", f"unix://{socket}", "--cgroup-parent", self._group),
            *(
                "--default-ulimit",
                "nofile=1024:4096",
                "--iptables=false",
                "--ip6tables=false",
                "--bridge=none",
            ),
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        # Debian's own client is preferred: it is of the engine's age.
        client = next(
            path for path in ("/usr/bin/docker", shutil.which("docker")) if path and Path(path).exists()
        )
        self._client = [client, "--host", f"unix://{socket}"]
        self._environment = {**os.environ, "DOCKER_BUILDKIT": "0", "DOCKER_CONFIG": str(folder / "config")}
        until(self._answers, within=30, why=f"the engine starts (log: {self._log})")

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"the engine ended: {self._log.read_text(errors='replace')[-2000:]}")
        return self.docker("version").returncode == 0

    def docker(self, *words: str, within: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs the client; its exit code is the caller's to judge."""
        return subprocess.run(
            [*self._client, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def must(self, *words: str, within: float = 60) -> str:
        done = self.docker(*words, within=within)
        assert done.returncode == 0, f"docker {' '.join(words)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout.strip()

    def build(self) -> None:
        """Imports the stand-in as the base image and builds the project's Dockerfile on it."""
        path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        changes = ["-c", 'CMD ["python3"]', "-c", f"ENV {path} LANG=C.UTF-8"]
        self.must("import", *changes, str(base_archive()), BASE, within=180)
        self.must("build", "--network=host", "--tag", IMAGE, str(ROOT), within=900)

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.must(kind, "inspect", name))[0]
        return found

    def close(self) -> None:
        names = self.docker("ps", "--all", "--quiet").stdout.split()
        if names:
            self.docker("rm", "--force", "--volumes", *names)
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=20)
        for group in Path("/sys/fs/cgroup").rglob(self._group):
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        shutil.rmtree(self._folder / "data", ignore_errors=True)
