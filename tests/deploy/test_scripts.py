"""A fresh clone and one command: `scripts/run` makes its environment and serves."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.source import ROOT, tracked
from tests.waiting import until

pytestmark = pytest.mark.wire

_INSTALLING = 400
"""Seconds for an installation with cold caches on a busy machine."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git tracks, as it stands now, in a folder whose name has a space."""
    folder = tmp_path_factory.mktemp("clone") / "fresh clone"
    for path in tracked():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return folder


def _environment(home: Path, **more: str) -> dict[str, str]:
    kept = ("PATH", "HOME", "TMPDIR", "LANG")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in kept or name.startswith(("PIP_", "SSL_", "REQUESTS_", "XDG_"))
    }
    return {**inherited, "HERMES_HOME": str(home), **more}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Run:
    """One `scripts/run`, started from a folder that is not the clone."""

    def __init__(self, clone: Path, folder: Path, *words: str) -> None:
        self.port = _free_port()
        self.home = folder / "home"
        self.output = folder / "output.log"
        environment = _environment(self.home, HERMES_BIND=f"127.0.0.1:{self.port}")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [clone / "scripts/run", *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_ready(self) -> None:
        def ready() -> bool:
            if self.process.poll() is not None:
                if "requirements.lock failed" in self.text():
                    pytest.skip("wire: needs the package index (pip could not install)")
                raise AssertionError(f"scripts/run ended: {self.text()[-3000:]}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        until(ready, within=_INSTALLING, why="the gateway is ready", every=0.1)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=20)


@pytest.fixture
def run(clone: Path, tmp_path: Path) -> Iterator[Run]:
    run = Run(clone, tmp_path)
    try:
        yield run
    finally:
        run.close()


def test_one_command_in_a_fresh_clone_serves_and_ends_on_the_first_signal(run: Run) -> None:
    run.wait_ready()
    assert "installing" in run.text()
    with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/healthz", timeout=10) as answer:
        assert answer.status == 200
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(timeout=40) == 0, run.text()[-3000:]


def test_the_second_start_installs_nothing(run: Run) -> None:
    run.wait_ready()
    assert "installing" not in run.text()


def test_arguments_reach_the_gateway(clone: Path, tmp_path: Path) -> None:
    run = Run(clone, tmp_path, "--config", "no such file.yaml")
    try:
        assert run.process.wait(timeout=_INSTALLING) == 78, run.text()[-3000:]
        assert "no such file.yaml" in run.text()
    finally:
        run.close()


def test_without_a_fitting_python_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    script = 'source "$1/scripts/environment.sh"; choose_python'
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(ROOT)],
        env=_environment(tmp_path, HERMES_PYTHON="/bin/false"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "HERMES_PYTHON=/bin/false is no Python 3.11 or newer" in done.stderr


@pytest.mark.parametrize(
    "script", ["scripts/run", "scripts/test", "scripts/lock", "scripts/environment.sh", ".ci/run"]
)
def test_bash_can_read_every_script(script: str) -> None:
    done = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
