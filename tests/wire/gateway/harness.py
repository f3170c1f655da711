"""The gateway as a real process between two simulators: start, kill, stop, look.

    with lab(tmp_path) as it:
        it.gateway.start()
        it.telegram.say(7, "hi")
        it.telegram.wait(7, "You said: hi")
        it.gateway.kill()

``state.db`` is read only while no gateway runs (`Gateway.rows`): nobody else opens the live file.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from tests.waiting import until
from tests.wire.gateway.simulated import (
    DISCORD_BOT,
    PEOPLE,
    TOKEN,
    Chat,
    Discord,
    Model,
    Simulator,
    Slack,
    Telegram,
)

__all__ = [
    "DISCORD_BOT", "KEY", "PEOPLE", "RUN", "TOKEN", "Chat", "Discord", "Gateway", "Lab", "Model", "Simulator",
    "Slack", "Telegram", "configuration", "free_port", "lab", "merged", "simulators",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-simulated-key-0123456789"
RUN = (sys.executable, "-m", "hermes", "run")


def free_port() -> int:
    """A port of the loopback that was free a moment ago."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``, section by section."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name)
        result[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def configuration(chat: Chat, model: Model, port: int) -> dict[str, Any]:
    """A gateway between the two; its waits are short where the rules leave them to the owner."""
    return {
        "timezone": "UTC",
        "model": {"provider": "sim", "model": "m"},
        "providers": {
            "sim": {
                "kind": "openai", "base_url": model.where["base_url"], "api_key": KEY, "connect_timeout": 2,
                "first_byte_timeout": 20, "stall_timeout": 3, "models": {"m": {"context_window": 100_000}},
            }
        },
        "agent": {"retry_base": 0.2, "retry_cap": 1},
        "platforms": chat.section(),
        "gateway": {
            "bind": f"127.0.0.1:{port}", "drain_timeout": 5, "delivery": {"base_delay": 0.2},
            "reconnect": {"base": 1, "cap": 2, "park_probe": 2},
        },
    }  # fmt: skip


@dataclass(slots=True)
class Gateway:
    """One home and the process that serves it, if any. ``command`` starts it; ``--config FILE`` follows."""

    home: Path
    config: dict[str, Any]
    command: Sequence[str] = RUN
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    log: Path = field(init=False)
    runtime: Path = field(init=False)
    """Where gateways of one machine see each other; by default this one is alone."""
    _opened: list[IO[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log = self.home.parent / f"{self.home.name}.log"
        self.runtime = self.home.parent / f"{self.home.name}.run"
        self.write_config(self.config)

    @property
    def config_file(self) -> Path:
        return self.home / "config.yaml"

    @property
    def url(self) -> str:
        """The page's address without its token."""
        return f"http://{self.config['gateway']['bind']}"

    def write_config(self, config: Mapping[str, Any]) -> None:
        """JSON is YAML."""
        self.config = dict(config)
        self.config_file.write_text(json.dumps(self.config, indent=1))

    def start(
        self,
        *,
        crash_at: str | None = None,
        env: Mapping[str, str] | None = None,
        ready: bool = True,
        stdout: int | IO[bytes] | None = None,
        before: Any = None,
    ) -> Self:
        """Starts the process; with ``ready`` waits until it serves, unless it is to crash."""
        own = {"HERMES_HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime)}
        environment = {**os.environ, **own, **(env or {})}
        environment.pop("HERMES_CRASH_AT", None)
        if crash_at is not None:
            environment["HERMES_CRASH_AT"] = crash_at
        self.starts += 1
        log = self.log.open("ab")
        self._opened.append(log)
        self.process = subprocess.Popen(
            [*self.command, "--config", str(self.config_file)], cwd=ROOT, env=environment,
            stdin=subprocess.DEVNULL, stdout=log if stdout is None else stdout, stderr=log, preexec_fn=before,
        )  # fmt: skip
        if ready and crash_at is None:
            self.wait_ready()
        return self

    def wait_ready(self, within: float = 30.0) -> None:
        """Until /startupz answers 200."""
        until(lambda: self._ended() or self._probe(), within=within, why="the gateway is ready")
        assert self._running(), f"it ended with {self._code()}: {self.log_tail()}"

    def _ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _running(self) -> bool:
        return not self._ended()

    def _code(self) -> int | None:
        return self.process.returncode if self.process is not None else None

    def _probe(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/startupz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def kill(self) -> None:
        """kill -9, and gone when this returns."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait_exit(self, within: float = 30.0) -> int:
        """The exit code; -9 for a kill."""
        assert self.process is not None
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {within} s: {self.log_tail()}") from None
        self.process = None
        return code

    def stop(self, within: float = 30.0) -> int:
        """SIGTERM; returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_exit(within)

    def close(self) -> None:
        """Whatever the test left running is killed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        for opened in self._opened:
            opened.close()

    # ---- looks ----

    def log_text(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def log_tail(self, lines: int = 25) -> str:
        return "\n".join(self.log_text().splitlines()[-lines:])

    def events(self, name: str) -> list[dict[str, Any]]:
        """Log lines of one event."""
        found = []
        for line in self.log_text().splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("event") == name:
                    found.append(entry)
        return found

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """A look at the disk; only while no gateway runs."""
        import sqlite3

        assert self.process is None, "nobody else opens the live state.db"
        path = self.home / "state.db"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as conn:
            return conn.execute(sql, values).fetchall()


@dataclass(slots=True)
class Lab:
    """A gateway, the Telegram in front of it and the model behind it."""

    telegram: Telegram
    model: Model
    gateway: Gateway


@contextlib.contextmanager
def simulators(token: str = TOKEN, key: str | None = None) -> Iterator[tuple[Telegram, Model]]:
    """The outside of one gateway."""
    telegram = Telegram(token)
    try:
        model = Model(key)
        try:
            yield telegram, model
        finally:
            model.close()
    finally:
        telegram.close()


@contextlib.contextmanager
def lab(
    tmp: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    command: Sequence[str] = RUN,
    token: str = TOKEN,
    key: str | None = None,
) -> Iterator[Lab]:
    """Not started; everything is ended at the end."""
    with simulators(token, key) as (telegram, model):
        config = merged(configuration(telegram, model, free_port()), settings or {})
        gateway = Gateway(tmp / "home", config, command)
        try:
            yield Lab(telegram, model, gateway)
        finally:
            gateway.close()
