"""A Docker engine of the tests' own: its data, socket, mounts and processes end with it.

It runs in mount and process namespaces of its own and touches no network setting of the host (no bridge, no
packet filter rules); containers get the host's network while building and none while running.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.capabilities import dockerd
from tests.structure.source import ROOT
from tests.waiting import until

BASE = "python:3.13-slim"
IMAGE = "hermes-test"
_ARCHIVE = "python-3.13-slim.tar"


def provisions() -> Path:
    """Folder with the stand-in for the base image and with compose: made once a machine (about a minute)."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tests" / "v2"
    if not (folder / _ARCHIVE).exists():
        done = subprocess.run(
            [ROOT / "tests/deploy/base_image.sh", folder], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"the base image could not be made: {done.stderr[-2000:]}"
    return folder


class Engine:
    """A running engine; `docker` runs the client against it, `close` ends everything."""

    def __init__(self, folder: Path) -> None:
        program = dockerd()
        assert program is not None
        if (plugins := provisions() / "cli-plugins").exists():
            shutil.copytree(plugins, folder / "config/cli-plugins")
        self._folder = folder
        self._log = folder / "engine.log"
        self._group = f"hermes-test-{os.getpid()}"
        socket = folder / "sock"
        # A shell is process 1 there: it reaps what the engine orphans, and its end ends all the others.
        space = "setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child"
        command = [*space.split(), "--mount-proc", "sh", "-c", '"$@" & wait', "engine", program]
        command += ["--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")]
        command += ["--pidfile", str(folder / "pid"), "--host", f"unix://{socket}"]
        command += f"--cgroup-parent {self._group} --default-ulimit nofile=1024:4096".split()
        command += ["--iptables=false", "--ip6tables=false", "--bridge=none"]
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
        try:
            until(self._answers, within=30, why=f"the engine starts (log: {self._log})")
        except AssertionError:
            self.close()
            raise

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
        self.must("import", *changes, str(provisions() / _ARCHIVE), BASE, within=180)
        self.must("build", "--network=host", "--tag", IMAGE, str(ROOT), within=900)

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.must(kind, "inspect", name))[0]
        return found

    def close(self) -> None:
        names = self.docker("ps", "--all", "--quiet").stdout.split()
        if names:
            self.docker("rm", "--force", "--volumes", *names)
        self._process.kill()
        self._process.wait(timeout=20)
        for group in Path("/sys/fs/cgroup").rglob(self._group):
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        shutil.rmtree(self._folder / "data", ignore_errors=True)
