"""`hermes` as real processes on a home of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
HERMES = (sys.executable, "-m", "hermes")


def free_port() -> int:
    """A loopback port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Home:
    """A HERMES_HOME and the environment of its processes; nothing of the machine's own comes in."""

    path: Path
    extra: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "HERMES_HOME": str(self.path),
            "HERMES_BIND": f"127.0.0.1:{self.port}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.extra,
        }

    def hermes(
        self, *arguments: str, said: str = "", within: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """One command, to its end."""
        return subprocess.run(
            [*HERMES, *arguments],
            cwd=ROOT, env=self.environ(), input=said, capture_output=True, text=True, check=False, timeout=within,
        )  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """One command, under way."""
        return subprocess.Popen(
            [*HERMES, *arguments],
            cwd=ROOT, env=self.environ(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    @contextmanager
    def gateway(self) -> Iterator[subprocess.Popen[bytes]]:
        """A running gateway, ready; ended by SIGTERM if it has not ended."""
        with (self.path.parent / "gateway.log").open("wb") as log:
            process = subprocess.Popen(
                [*HERMES, "run"],
                cwd=ROOT,
                env=self.environ(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        try:
            until((self.path / "control.sock").exists, within=60, why="the gateway listens")
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(60)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """What the command said on standard error; never a traceback."""
    assert "Traceback" not in done.stderr, done.stderr
    assert "Traceback" not in done.stdout, done.stdout
    return done.stderr
