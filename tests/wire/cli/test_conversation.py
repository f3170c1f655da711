"""`hermes chat` in a terminal: a real pseudo-terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.waiting import until
from tests.wire.cli.home import HERMES, ROOT, Home

pytestmark = pytest.mark.wire


class Screen:
    """What a person types and sees."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*HERMES, *arguments], cwd=ROOT, env={**home.environ(), "TERM": "xterm-256color"},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""
        self._looked = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def wait(self, text: str, within: float = 30.0) -> None:
        """Until ``text`` shows, beyond what was waited for before."""
        until(lambda: self._find(text), within=within, why=f"{text!r} on the screen: {self.seen!r}")

    def end(self) -> int:
        code = self.process.wait(30)
        self._read()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        os.close(self._master)

    def _find(self, text: str) -> bool:
        self._read()
        place = self.seen.find(text, self._looked)
        if place >= 0:
            self._looked = place + len(text)
        return place >= 0

    def _read(self) -> None:
        while select.select([self._master], [], [], 0)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the other end is closed
                return
            self.seen += data.decode("utf-8", "replace")


@contextmanager
def _screen(home: Home, *arguments: str) -> Iterator[Screen]:
    screen = Screen(home, *arguments)
    try:
        yield screen
    finally:
        screen.close()


def test_a_conversation_streams_retries_and_ends_with_ctrl_d(served: Home) -> None:
    with _screen(served, "chat") as screen:
        screen.wait("> ")
        screen.type("hello\n")
        screen.wait("“hello”")
        screen.wait("\n> ")
        screen.type("/rehearse 429\n")
        screen.wait("trying again in")
        screen.wait("\n> ")
        screen.type("\x04")
        assert screen.end() == 0
        assert screen.seen.count("“hello”") == 1, "what was streamed is not printed again"
        assert "Traceback" not in screen.seen


def test_ctrl_c_stops_an_answer_and_leaves_at_the_prompt(served: Home) -> None:
    with _screen(served, "chat") as screen:
        screen.wait("> ")
        screen.type("/rehearse slow\n")
        screen.wait("This answer takes its time")
        screen.interrupt()
        screen.wait("Stopped")
        screen.wait("\n> ")
        screen.interrupt()
        assert screen.end() == 0
        assert "Traceback" not in screen.seen


def test_a_conversation_without_a_gateway_works_alike(home: Home) -> None:
    with _screen(home, "chat") as screen:
        screen.wait("> ")
        screen.type("hello\n")
        screen.wait("“hello”")
        screen.wait("\n> ")
        screen.type("/quit\n")
        assert screen.end() == 0


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colours_unless_it_wants_none(served: Home, no_color: str, coloured: bool) -> None:
    asking = Home(served.path, {"NO_COLOR": no_color} if no_color else {}, served.port)
    with _screen(asking, "status") as screen:
        assert screen.end() == 0
        assert ("\x1b[32m" in screen.seen) is coloured
        assert max(len(line) for line in screen.seen.splitlines()) <= 90
