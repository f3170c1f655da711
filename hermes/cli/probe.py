"""``hermes health``: /readyz of the gateway on this machine. Runs every 30 s in a container, so it loads little."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

from hermes.cli.codes import FAILED, OK
from hermes.cli.invocation import Invocation
from hermes.config.environment import Environment
from hermes.config.errors import ConfigError
from hermes.core.errors import HermesError

DEFAULT_BIND = "127.0.0.1:8642"
SECONDS = 5.0
MAX_ANSWER = 1 << 20
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}
"""An address that listens everywhere is asked on the loopback."""


class NoAnswer(HermesError):
    """Nobody answers on the configured address, or not as a gateway does."""


def health(config: Path | None, invocation: Invocation) -> int:
    """0 when ready; else 1 and the reasons. Raises ConfigError."""
    try:
        ready, reasons = ask(*address(Environment.read(), config))
    except NoAnswer as error:
        ready, reasons = False, [str(error)]
    if invocation.json:
        sys.stdout.write(json.dumps({"ready": ready, "reasons": reasons}) + "\n")
    else:
        sys.stdout.write("ready\n" if ready else f"not ready: {'; '.join(reasons)}\n")
    return OK if ready else FAILED


def ask(host: str, port: int) -> tuple[bool, list[str]]:
    """Whether the gateway there is ready, and if not, why. Raises NoAnswer."""
    status, body = _get(host, port, "/readyz")
    reasons = [str(one) for one in body.get("reasons", [])]
    return status == 200, reasons


def address(environment: Environment, config: Path | None) -> tuple[str, int]:
    """Where to ask: HERMES_BIND, else ``gateway.bind`` of the file, else the default. Raises ConfigError."""
    bind = (
        environment.variables.get("HERMES_BIND", "").strip()
        or _bind_in_file(environment, config)
        or DEFAULT_BIND
    )
    host, _, port = bind.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise NoAnswer(
            "gateway.bind (or HERMES_BIND) names no port; `hermes check` says what is wrong with it"
        )
    plain = host.strip("[]")
    return EVERYWHERE.get(plain, plain), int(port)


def _bind_in_file(environment: Environment, config: Path | None) -> str | None:
    if config is None and not (environment.home / "config.yaml").exists():
        return None
    from hermes.config.document import Unreadable, parse
    from hermes.config.expand import expand
    from hermes.config.source import read_source

    try:
        source = read_source(config, environment.home / "config.yaml")
        if source is None:
            return None
        text, name = source
        root, _ = parse(text, name)
    except Unreadable as error:
        raise ConfigError(error.problems) from None
    section = expand(root, name, environment.variables, Path(name).absolute().parent).values.get("gateway")
    bind = section.get("bind") if isinstance(section, dict) else None
    return str(bind) if bind else None


def _get(host: str, port: int, path: str) -> tuple[int, dict[str, Any]]:
    where = f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
    try:
        with socket.create_connection((host, port), SECONDS) as connection:
            request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
            connection.sendall(request.encode("ascii", "replace"))
            answer = b""
            while len(answer) < MAX_ANSWER and (piece := connection.recv(65536)):
                answer += piece
    except TimeoutError:
        raise NoAnswer(f"{where} has not answered for {SECONDS:.0f} s") from None
    except OSError as error:
        raise NoAnswer(f"nobody answers at {where}: {error.strerror or error}") from None
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise NoAnswer(f"what answers at {where} does not speak HTTP")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "ready" not in found:
        raise NoAnswer(f"what answers at {where} is no gateway of ours (status {int(words[1])})")
    return int(words[1]), found
