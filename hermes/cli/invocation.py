"""How a command was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invocation:
    """The global options: ``--debug`` shows tracebacks and more log lines, ``--json`` is for programs."""

    debug: bool = False
    json: bool = False
