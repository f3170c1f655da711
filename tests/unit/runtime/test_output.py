"""A sink that nobody reads, and one that breaks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from hermes.runtime.output import CHUNK, LineSink


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_lines_come_out_whole_and_in_order(pipe: tuple[int, int]) -> None:
    sink = LineSink(pipe[1])
    for number in range(50):
        sink.write_line(f"line {number} ü\udc80")
    assert sink.flush(5.0)
    assert sink.close()
    text = os.read(pipe[0], 65536).decode()
    assert text.splitlines() == [f"line {number} ü\\udc80" for number in range(50)]
    assert sink.lost == 0
    assert sink.written_bytes == len(text.encode())


def test_a_full_pipe_that_nobody_reads_holds_up_neither_the_writer_nor_the_end(pipe: tuple[int, int]) -> None:
    sink = LineSink(pipe[1], max_bytes=50_000)
    began = time.monotonic()
    for number in range(3000):
        sink.write_line(f"{number:05d}" + "x" * 94)
    assert time.monotonic() - began < 2.0
    assert sink.waiting_bytes <= 50_000
    assert sink.close(timeout=0.2)
    assert time.monotonic() - began < 4.0
    assert sink.lost > 0
    assert sink.written_bytes + sink.lost_bytes == 3000 * 100


def test_the_oldest_lines_are_dropped_first(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    while True:
        try:
            os.write(pipe[1], b"\0" * CHUNK)
        except BlockingIOError:
            break
    os.set_blocking(pipe[1], True)
    sink = LineSink(pipe[1], max_bytes=1000)
    for number in range(2000):
        sink.write_line(f"{number:09d}")
    os.set_blocking(pipe[0], False)
    read = b""
    while not read.endswith(b"000001999\n"):
        try:
            read += os.read(pipe[0], 1 << 20)
        except BlockingIOError:
            assert sink.flush(5.0)
    assert sink.close()
    lines = [line for line in read.replace(b"\0", b"").split(b"\n") if line]
    assert lines == sorted(lines)
    assert len(lines) + sink.lost == 2000
    assert sink.lost >= 1800
    # All but what the thread had in hand already is the newest.
    assert lines[-100:] == [b"%09d" % number for number in range(1900, 2000)]


def test_a_line_longer_than_one_write_comes_out_whole(pipe: tuple[int, int]) -> None:
    sink = LineSink(pipe[1])
    sink.write_line("y" * (3 * CHUNK))
    assert sink.flush(5.0)
    assert sink.close()
    assert os.read(pipe[0], 65536) == b"y" * (3 * CHUNK) + b"\n"


def test_a_line_above_the_bound_is_counted_as_lost(pipe: tuple[int, int]) -> None:
    sink = LineSink(pipe[1], max_bytes=10)
    sink.write_line("a" * 10)
    assert (sink.lost, sink.waiting_bytes) == (1, 0)
    assert sink.close()


@pytest.mark.parametrize("end", [0, 1], ids=["EPIPE", "EBADF"])
def test_a_broken_descriptor_is_counted_and_never_raises(pipe: tuple[int, int], end: int) -> None:
    os.close(pipe[end])
    sink = LineSink(pipe[1])
    sink.write_line("one")
    assert sink.flush(5.0)
    sink.write_line("two")
    assert sink.flush(5.0)
    assert sink.lost == 2
    assert sink.close()
    sink.write_line("three")
    assert sink.lost == 3
    assert sink.close()
