"""The process around the gateway: output, redaction, lock, loop, signals, one way out (R27, R31, R32)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from hermes import __version__
from hermes.app.catalogue import NotBuilt
from hermes.app.loading import load
from hermes.app.run import Output, Served, serve
from hermes.app.secrets import NoCredential, secrets_in
from hermes.config.environment import Environment
from hermes.config.errors import ConfigError
from hermes.config.load import Loaded
from hermes.core.errors import ForeignHome, HomeInUse, StoreUnavailable
from hermes.runtime.logs import configure, get_logger
from hermes.runtime.output import LineSink
from hermes.runtime.redaction import Redactor
from hermes.store.home import HomeLock, prepare_home

log = get_logger(__name__)

LOCK_PATIENCE_SECONDS = 3.0
"""A short command of the CLI may hold the home for a moment; a gateway holds it for good."""
OK, FAILED, RESTART, REFUSED = 0, 1, 75, 78
"""Exit codes of CONTRACT: fine, failed, please restart, and what a restart cannot mend."""


def run(config_path: Path | None, *, debug: bool = False) -> int:
    """``hermes run``: returns only when the gateway has ended; the caller then calls ``leave``."""
    environment = Environment.read()
    try:
        loaded = load(environment, config_path)
        os.umask(0o077)  # the home's files are for nobody else
        prepare_home(environment.home)
        lock = HomeLock(environment.home)
        lock.acquire(patience=LOCK_PATIENCE_SECONDS)
    except (ConfigError, NotBuilt, NoCredential, ForeignHome, HomeInUse) as error:
        return refuse(str(error))
    except OSError as error:
        return refuse(f"the home {environment.home} cannot be used: {error.strerror or error}")
    output = open_output(loaded, environment, debug=debug)
    try:
        return _serve(loaded, environment, output)
    finally:
        lock.release()
        output.close(1.0)


def open_output(loaded: Loaded, environment: Environment, *, debug: bool) -> Output:
    """Log lines to standard output, through a thread that may block instead of the loop."""
    redactor = Redactor()
    for secret in secrets_in(loaded.config):
        redactor.register(secret)
    terminal = sys.stdout.isatty()
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError):
        fd = -1
    sink = LineSink(fd, max_bytes=loaded.config.output.max_bytes)
    level = "DEBUG" if debug else loaded.config.output.level.value.upper()
    configure(sink=sink, terminal=terminal, level=level, redactor=redactor, debug=debug)
    return Output(redactor, lambda: sink.lost, sink.close, sink.write_line if terminal else None)


def _serve(loaded: Loaded, environment: Environment, output: Output) -> int:
    log.info("starting", version=__version__, home=str(environment.home), sources=list(loaded.sources))
    for notice in loaded.notices:
        log.warning("notice", text=notice)
    served = Served(code=OK)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(serve(loaded, environment, output, served))
    except (ForeignHome, HomeInUse) as error:
        log.error("refused", error=str(error))
        refuse(str(error))
        return REFUSED
    except StoreUnavailable as error:
        log.error("store_unavailable", error=str(error))
        return RESTART
    except OSError as error:
        log.error("cannot_start", error=str(error))
        refuse(str(error))
        return FAILED
    log.info("stopped", code=served.code)
    return served.code


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed (Linux): 10 to 15 % less CPU a message; else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def refuse(text: str) -> int:
    """One sentence or one list of problems on standard error; never a traceback."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return REFUSED
