"""Every line the process says: one pipeline for structlog and for the standard library's logging.

The last step redacts the finished line (R40), so that an exception's text, a library's URL and our own values
are treated alike, and hands it to a sink that never blocks (R27).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Protocol

import structlog
from structlog.types import Processor, WrappedLogger

from hermes.runtime.redaction import Redactor

NOISY = (
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "telegram",
    "openai",
    "anthropic",
    "discord",
    "slack_bolt",
    "slack_sdk",
    "asyncio",
    "aiohttp.access",
    "aiosqlite",
    "urllib3",
    "mcp",
)
"""Libraries that log each request at INFO, some with the token in the URL."""


class Sink(Protocol):
    """Takes one finished line without its newline; must neither block nor raise."""

    def write_line(self, line: str) -> None: ...


class StreamSink:
    """A sink over a text stream, for a command in the foreground; see SafeWriter for a stream that breaks."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def write_line(self, line: str) -> None:
        self._write(line + "\n")


class _Edge:
    """Where every finished line passes, whoever rendered it: redacted here, and nowhere earlier (R40)."""

    def __init__(self, sink: Sink, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor

    def write_line(self, line: str) -> None:
        self._sink.write_line(self._redactor.redact(line))


class _LineLogger:
    """What structlog calls with the finished line, whatever the level."""

    def __init__(self, edge: _Edge) -> None:
        self._edge = edge

    def msg(self, message: str) -> None:
        self._edge.write_line(message)

    debug = info = warning = error = critical = exception = log = msg


class _Handler(logging.Handler):
    """The standard library's way into the pipeline."""

    def __init__(self, edge: _Edge, formatter: logging.Formatter) -> None:
        super().__init__()
        self._edge = edge
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._edge.write_line(self.format(record))
        except (TypeError, ValueError, KeyError, AttributeError) as error:  # a library's wrong format string
            self._edge.write_line(f"log_line_unreadable logger={record.name} error={error!r}")


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of a module; may be made before `configure` and then follows it."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger


def configure(*, sink: Sink, terminal: bool, level: str, redactor: Redactor, debug: bool = False) -> None:
    """Sends every line to `sink`: coloured text for a terminal, else one JSON object a line.

    `level`: debug, info, warning or error (any case); `debug` lowers it to debug, and noisy libraries from
    WARNING to INFO. Raises ValueError for another level. Loggers in use keep what was configured first.
    """
    known = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
    if level.lower() not in known:
        raise ValueError(f"log level {level!r}: allowed are {', '.join(known)}")
    number = logging.DEBUG if debug else known[level.lower()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    finishing = _finishing(terminal)
    edge = _Edge(sink, redactor)
    structlog.configure(
        processors=[*shared, *finishing],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *args: _LineLogger(edge),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(edge, shared, finishing, number, debug)


def _route_standard_logging(
    edge: _Edge, shared: Sequence[Processor], finishing: Sequence[Processor], level: int, debug: bool
) -> None:
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *finishing],
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(handler)
    root.addHandler(_Handler(edge, formatter))
    root.setLevel(level)
    logging.raiseExceptions = False
    for name in NOISY:
        logging.getLogger(name).setLevel(max(level, logging.INFO if debug else logging.WARNING))


def _finishing(terminal: bool) -> list[Processor]:
    renderer: Processor
    if terminal:
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        before: list[Processor] = []
    else:
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
        before = [structlog.processors.format_exc_info]
    return [*before, renderer]


def _logger_name(
    logger: WrappedLogger, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """One key for both ways in; structlog itself cannot bind a value named `logger`."""
    record = event.get("_record")
    if record is not None:
        event["logger"] = record.name
    elif "module" in event:
        event["logger"] = event.pop("module")
    return event
