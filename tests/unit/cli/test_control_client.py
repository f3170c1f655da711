"""Both clients of the control socket against a gateway that answers, refuses, goes away or stays silent."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from hermes.cli.control_client import ControlClient, Event, NoGateway, Refused
from hermes.cli.dialogue import MAX_REQUEST_BYTES, Dialogue
from hermes.cli.shows import Quiet

NOTICE = b'{"event": "notice", "text": "trying again", "detail": "retry"}\n'


@contextmanager
def _gateway(home: Path, answer: bytes, *, silent: bool = False) -> Iterator[list[Event]]:
    """Answers one request with these bytes and hangs up; collects what was asked."""
    asked: list[Event] = []
    heard = threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "control.sock"))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as lines:
                if line := lines.readline():
                    asked.append(json.loads(line))
                connection.sendall(answer)
                if silent:
                    heard.wait(30)

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        heard.set()
        thread.join(30)


def test_the_result_comes_back_and_events_on_the_way(tmp_path: Path) -> None:
    events: list[Event] = []
    with (
        _gateway(tmp_path, NOTICE + b'{"result": [1, "two"]}\n') as asked,
        ControlClient(tmp_path) as client,
    ):
        assert client.ask("send", {"target": "web:1", "text": "é\n"}, on_event=events.append) == [1, "two"]
    assert asked == [{"op": "send", "target": "web:1", "text": "é\n"}]
    assert [event["text"] for event in events] == ["trying again"]


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (b'{"error": "no such chat"}\n', Refused, "no such chat"),
        (b"", NoGateway, "went away before it answered"),
        (b"nonsense\n", NoGateway, "ended the conversation"),
    ],
)
def test_anything_else_is_a_sentence(
    tmp_path: Path, answer: bytes, error: type[Exception], says: str
) -> None:
    with _gateway(tmp_path, answer), ControlClient(tmp_path) as client, pytest.raises(error, match=says):
        client.ask("status")


def test_a_gateway_that_stays_silent_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with (
        _gateway(tmp_path, b"", silent=True),
        ControlClient(tmp_path) as client,
        pytest.raises(NoGateway, match="has not answered for"),
    ):
        client.ask("status", seconds=0.05)


def test_no_socket_and_a_socket_left_behind_both_mean_that_no_gateway_runs(tmp_path: Path) -> None:
    with pytest.raises(NoGateway, match="start it with `hermes run`") as none:
        ControlClient(tmp_path)
    assert none.value.absent
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "control.sock"))
    with pytest.raises(NoGateway) as left:
        ControlClient(tmp_path)
    assert left.value.absent


@asynccontextmanager
async def _answering(home: Path, answer: bytes) -> AsyncIterator[None]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_unix_server(serve, home / "control.sock")
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


async def test_an_answer_larger_than_a_line_of_asyncio_arrives_whole(tmp_path: Path) -> None:
    text = "long " * 100_000
    show = Quiet()
    async with _answering(tmp_path, NOTICE + json.dumps({"result": {"text": text}}).encode() + b"\n"):
        assert await Dialogue(tmp_path).ask("hi", show) == text
    assert show.notices == ["trying again"]


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (b'{"result": {"text": ""}}\n', NoGateway, "is shutting down: your line is on disk"),
        (b'{"error": "the gateway is shutting down"}\n', Refused, "is shutting down"),
        (b"", NoGateway, "went away"),
    ],
)
async def test_an_answer_that_does_not_come_says_what_becomes_of_the_line(
    tmp_path: Path, answer: bytes, error: type[Exception], says: str
) -> None:
    async with _answering(tmp_path, answer):
        with pytest.raises(error, match=says):
            await Dialogue(tmp_path).ask("hi", Quiet())


async def test_a_text_that_no_gateway_takes_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the text is too long"):
        await Dialogue(tmp_path).ask("x" * MAX_REQUEST_BYTES, Quiet())


async def test_nothing_is_interrupted_while_nothing_is_asked(tmp_path: Path) -> None:
    assert not Dialogue(tmp_path).interrupt()
