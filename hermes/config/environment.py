"""The only reader of the process's environment. Cheap to import; ``app`` hands the answers down."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hermes.config.dotenv import read_dotenv
from hermes.config.errors import Problem


@dataclass(frozen=True, slots=True)
class Environment:
    """What the surroundings said at start.

    ``variables``: the process's environment over ``HERMES_HOME/.env``; may hold secrets, hence never shown.
    ``dotenv``: names that came from ``.env``. ``problems``: what is wrong with it; for `load_config`.
    """

    home: Path
    variables: Mapping[str, str] = field(repr=False)
    dotenv: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    notify_socket: str | None = None
    """systemd's socket for READY and WATCHDOG."""
    watchdog: float | None = None
    """Seconds within which systemd wants a sign of life; None without a watchdog for this process."""
    under_systemd: bool = False
    """A unit started us (INVOCATION_ID)."""
    journal: bool = False
    """stdout or stderr goes to the journal (JOURNAL_STREAM)."""
    no_color: bool = False
    crash_at: str | None = None
    """Tests only: the name of the transition at which the process kills itself (HERMES_CRASH_AT)."""
    runtime_dir: Path | None = None
    """A private directory that vanishes at logout (XDG_RUNTIME_DIR)."""

    @classmethod
    def read(cls) -> Environment:
        """From this process's environment and the ``.env`` of its home. Never raises; see ``problems``."""
        return cls.of(os.environ, pid=os.getpid())

    @classmethod
    def of(cls, environ: Mapping[str, str], *, pid: int = 0) -> Environment:
        """From a given environment. ``pid`` is compared with WATCHDOG_PID."""
        home = _home(environ)
        below, problems = read_dotenv(home / ".env")
        below.pop("HERMES_HOME", None)  # it cannot say where it lies itself
        merged = {**below, **environ}
        return cls(
            home=home,
            variables=merged,
            dotenv=frozenset(below) - frozenset(environ),
            problems=problems,
            notify_socket=environ.get("NOTIFY_SOCKET") or None,
            watchdog=_watchdog(environ, pid),
            under_systemd=bool(environ.get("INVOCATION_ID")),
            journal=bool(environ.get("JOURNAL_STREAM")),
            no_color=bool(merged.get("NO_COLOR")),
            crash_at=environ.get("HERMES_CRASH_AT") or None,
            runtime_dir=Path(environ["XDG_RUNTIME_DIR"]) if environ.get("XDG_RUNTIME_DIR") else None,
        )


def _home(environ: Mapping[str, str]) -> Path:
    given = environ.get("HERMES_HOME")
    user = environ.get("HOME")
    if given:
        if user and (given == "~" or given.startswith("~/")):
            return Path(user) / given[2:]
        return Path(given).absolute()
    return (Path(user) if user else Path.home()) / ".hermes"


def _watchdog(environ: Mapping[str, str], pid: int) -> float | None:
    text = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID")
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) == 0:
        return None
    if meant and pid and meant != str(pid):
        return None
    return int(text) / 1_000_000
