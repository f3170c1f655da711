"""Where `hermes health` asks, and what it makes of the answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.cli.probe import DEFAULT_BIND, NoAnswer, address, ask
from hermes.config.environment import Environment
from hermes.config.errors import ConfigError


@pytest.mark.parametrize(
    ("bind", "file", "where"),
    [
        ("", None, ("127.0.0.1", int(DEFAULT_BIND.rpartition(":")[2]))),
        ("0.0.0.0:9000", None, ("127.0.0.1", 9000)),
        ("[::]:9000", None, ("::1", 9000)),
        (":9000", None, ("127.0.0.1", 9000)),
        ("10.1.2.3:9000", None, ("10.1.2.3", 9000)),
        ("", 'gateway: {bind: "10.1.2.3:9001"}', ("10.1.2.3", 9001)),
        ("", 'gateway: {bind: "${WHERE:-127.0.0.1}:9002"}', ("127.0.0.1", 9002)),
        ("127.0.0.1:1", 'gateway: {bind: "10.1.2.3:9001"}', ("127.0.0.1", 1)),
        ("", "model: {provider: x}", ("127.0.0.1", 8642)),
    ],
)
def test_the_address_comes_from_the_variable_then_the_file_then_the_default(
    tmp_path: Path, bind: str, file: str | None, where: tuple[str, int]
) -> None:
    if file is not None:
        (tmp_path / "config.yaml").write_text(file, "utf-8")
    environment = Environment.of({"HERMES_HOME": str(tmp_path), "HERMES_BIND": bind})
    assert address(environment, None) == where


@pytest.mark.parametrize("bind", ["nonsense", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x"])
def test_an_address_without_a_port_is_refused(tmp_path: Path, bind: str) -> None:
    with pytest.raises(NoAnswer, match="hermes check"):
        address(Environment.of({"HERMES_HOME": str(tmp_path), "HERMES_BIND": bind}), None)


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        address(Environment.of({"HERMES_HOME": str(tmp_path)}), tmp_path / "nope.yaml")


@contextmanager
def _server(answer: bytes) -> Iterator[int]:
    """Answers one connection with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"ready": true, "reasons": []}', (True, [])),
        (
            b'HTTP/1.1 503 X\r\n\r\n{"ready": false, "reasons": ["disk", "draining"]}',
            (False, ["disk", "draining"]),
        ),
    ],
)
def test_ready_is_the_status_and_the_reasons_are_the_gateways(
    answer: bytes, found: tuple[bool, list[str]]
) -> None:
    with _server(answer) as port:
        assert ask("127.0.0.1", port) == found


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "is no gateway of ours"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "is no gateway of ours"),
    ],
)
def test_another_program_on_the_port_is_not_taken_for_the_gateway(answer: bytes, says: str) -> None:
    with _server(answer) as port, pytest.raises(NoAnswer, match=says):
        ask("127.0.0.1", port)
