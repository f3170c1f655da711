"""From arguments to an exit code. Cheap to import: what a command needs is loaded when it runs.

Whatever goes wrong ends as one sentence on standard error; tracebacks are for ``--debug``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes.cli.codes import FAILED, INTERRUPTED, OK, REFUSED, RESTART
from hermes.cli.invocation import Invocation
from hermes.cli.overview import print_help, print_version
from hermes.config.errors import ConfigError
from hermes.core.errors import ForeignHome, HermesError, HomeInUse, LostOwnership, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments without the global options, which may stand anywhere before ``--``."""

    arguments: tuple[str, ...]
    debug: bool = False
    json: bool = False


def answer(arguments: Sequence[str]) -> int:
    """Does what the arguments ask and returns the exit code."""
    asked = read_globals(arguments)
    return polite(_quick(asked) or (lambda: _full(asked)), debug=asked.debug)


def _full(asked: Asked) -> int:
    from hermes.cli.commands import run_command

    arguments = asked.arguments
    if arguments[0] == "help":
        arguments = (*arguments[1:], "--help")
    return run_command(arguments, Invocation(asked.debug, asked.json))


def read_globals(arguments: Sequence[str]) -> Asked:
    """Takes ``--debug`` and ``--json`` out of the arguments, wherever they stand before ``--``."""
    kept: list[str] = []
    flags = {"--debug": False, "--json": False}
    for place, argument in enumerate(arguments):
        if argument == "--":
            kept += arguments[place:]
            break
        if argument in flags:
            flags[argument] = True
        else:
            kept.append(argument)
    return Asked(tuple(kept), flags["--debug"], flags["--json"])


def _quick(asked: Asked) -> Callable[[], int] | None:
    """Answers that need no library at all (FIRST_HOUR 3), and the probe that runs every 30 seconds."""
    invocation = Invocation(asked.debug, asked.json)
    match asked.arguments:
        case ("version",) | ("--version",) | ("-V",):
            return lambda: print_version(invocation)
        case () | ("--help",) | ("-h",) | ("help",):
            return lambda: print_help(everything=False)
        case ("--help-all",):
            return lambda: print_help(everything=True)
        case ("health",):
            return lambda: _health(invocation)
        case ("run",):
            return lambda: _run(None, invocation)
        case ("run", "--config", file):
            return lambda: _run(file, invocation)
        case _:
            return None


def _run(file: str | None, invocation: Invocation) -> int:
    """The daemon in its usual form: what parses other command lines stays out of its memory."""
    from hermes.app.process import run

    return run(Path(file) if file is not None else None, debug=invocation.debug)


def _health(invocation: Invocation) -> int:
    from hermes.cli.probe import health

    return health(None, invocation)


def polite(act: Callable[[], int], *, debug: bool) -> int:
    """The exit code of ``act``; its errors as one sentence each, with ``debug`` their tracebacks as well."""
    try:
        return act()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        return OK  # whoever read our output has read enough
    except (HermesError, OSError) as error:
        if debug:
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.write(f"hermes: {error}\n")
        return code_of(error)


def code_of(error: Exception) -> int:
    """The exit code that an error of ours ends with."""
    match error:
        case ForeignHome() | HomeInUse() | ConfigError():
            return REFUSED
        case LostOwnership() | StoreUnavailable():
            return RESTART
        case _:
            return FAILED
