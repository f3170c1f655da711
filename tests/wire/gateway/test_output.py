"""Whatever becomes of standard output, the daemon answers on and still ends on SIGTERM (R27)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.wire.gateway.harness import Lab, lab

pytestmark = pytest.mark.wire
CHATTY = {"output": {"level": "debug", "max_bytes": 4096}}


def check_it_answers_and_ends(it: Lab) -> None:
    """Enough messages that log lines fill whatever they are written to."""
    for number in range(12):
        it.telegram.say(10, f"«{number}»")
        it.telegram.wait(10, f"«{number}»")
    assert it.gateway.stop() == 0
    assert len(it.telegram.texts(10)) == 12


def close_output() -> None:
    """Runs in the child before it becomes the gateway."""
    os.close(1)


def close_all() -> None:
    for fd in (0, 1, 2):
        os.close(fd)


@pytest.mark.parametrize("before", [close_output, close_all])
def test_closed_at_the_start(tmp_path: Path, before: Callable[[], None]) -> None:
    with lab(tmp_path, settings=CHATTY) as it:
        it.gateway.start(before=before)
        check_it_answers_and_ends(it)


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    try:
        yield reader, writer
    finally:
        for fd in (reader, writer):
            try:
                os.close(fd)
            except OSError:
                continue  # the test closed it


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    with lab(tmp_path, settings=CHATTY) as it, pipe() as (reader, writer):
        it.gateway.start(stdout=writer)
        os.close(writer)
        os.close(reader)
        check_it_answers_and_ends(it)


def test_a_full_pipe_that_nobody_reads(tmp_path: Path) -> None:
    with lab(tmp_path, settings=CHATTY) as it, pipe() as (reader, writer):
        os.write(writer, b"x" * fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ))
        it.gateway.start(stdout=writer)
        check_it_answers_and_ends(it)
        assert os.read(reader, 100) == b"x" * 100


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "POSIX"}],
    ids=["ascii", "posix"],
)
def test_an_ascii_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    with lab(tmp_path, settings=CHATTY) as it:
        it.gateway.start(env=locale)
        it.telegram.say(11, "«Grüße, 世界 🙂»")
        assert it.telegram.wait(11, "«Grüße, 世界 🙂»") == ["You said: «Grüße, 世界 🙂»"]
        check_it_answers_and_ends(it)
