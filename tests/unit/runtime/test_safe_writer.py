"""Streams that break in every known way, and a writer that does not."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from typing import TextIO

import pytest

from hermes.runtime.safe_writer import SafeWriter


class Broken(io.StringIO):
    """Raises `error` from everything."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def isatty(self) -> bool:
        raise self.error

    def fileno(self) -> int:
        raise self.error

    def close(self) -> None:
        return


def closed() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "stream",
    [
        Broken(OSError(errno.EPIPE, "broken pipe")),
        Broken(OSError(errno.EIO, "terminal gone")),
        Broken(ValueError("I/O operation on closed file")),
        closed(),
        None,
    ],
    ids=["EPIPE", "EIO", "ValueError", "closed", "absent"],
)
def test_a_broken_stream_raises_nothing_and_is_counted(stream: TextIO | None) -> None:
    writer = SafeWriter(stream)
    assert writer.write("abc") == 3
    writer.writelines(["a", "b"])
    writer.flush()
    assert writer.isatty() is False
    assert writer.fileno() == -1
    assert writer.lost >= 3


def test_an_ascii_stream_gets_the_whole_line_with_escapes() -> None:
    raw = io.BytesIO()
    writer = SafeWriter(io.TextIOWrapper(raw, encoding="ascii"))
    writer.write("grüße 🙂 end\n")
    writer.flush()
    assert raw.getvalue() == b"gr\\xfc\\xdfe \\U0001f642 end\n"
    assert writer.lost == 0


def test_a_lone_surrogate_does_not_lose_the_line() -> None:
    raw = io.BytesIO()
    writer = SafeWriter(io.TextIOWrapper(raw, encoding="utf-8"))
    writer.write("before \udc80 after\n")
    writer.flush()
    assert raw.getvalue() == b"before \\udc80 after\n"


def test_all_else_is_the_streams_own() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", write_through=True)
    writer = SafeWriter(stream)
    assert writer.buffer is stream.buffer
    assert writer.encoding == "latin-1"
    with pytest.raises(AttributeError):
        _ = writer.no_such_thing


CODE = """
import sys
{before}
known = set(sys.modules)
from hermes.runtime.safe_writer import SafeWriter, install
install(); first = sys.stdout; install()
assert sys.stdout is first and isinstance(first, SafeWriter) and isinstance(sys.stderr, SafeWriter)
print("x" * 100000); sys.stdout.flush()
extra = {{name for name in set(sys.modules) - known if not name.startswith("hermes")}} - {{"__future__"}}
assert not extra, extra
import os
os.write(int(sys.argv[1]), str(first.lost).encode())
os._exit(0)
"""


@pytest.mark.parametrize(
    ("before", "loses"),
    [
        ("", False),
        ("sys.stdout = None", True),
        ("import os; os.close(1)", True),
        ("sys.stdout.close()", True),
    ],
)
def test_install_wraps_once_imports_nothing_and_survives(before: str, loses: bool) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as answers:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(before=before), str(writer)],
            pass_fds=[writer],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert done.returncode == 0, done.stderr
        assert (int(answers.read()) > 0) is loses
