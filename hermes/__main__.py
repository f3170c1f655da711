"""``hermes`` and ``python -m hermes``: guard the output, do what is asked, leave by the one way out (R31)."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import NoReturn

from hermes.runtime import safe_writer


def main() -> NoReturn:
    """Never returns; the exit codes are CONTRACT's."""
    _occupy_standard_descriptors()
    safe_writer.install()
    if "--debug" not in sys.argv:
        sys.excepthook = _apologise
    from hermes.cli.entry import answer

    leave(answer(sys.argv[1:]))


def _occupy_standard_descriptors() -> None:
    """Where 0, 1 or 2 were closed by whoever started us, the next file would get their number, and what is
    written to "standard output" would go into it; libuv even aborts when it is to close such a one."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one


def _apologise(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A fault of ours that nothing expected: its kind and place, for its text might hold a secret (R40)."""
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(os.path.dirname(__file__)):
            place = f" in {code.co_qualname}, line {trace.tb_lineno}"
        trace = trace.tb_next
    sys.stderr.write(f"hermes: internal error: {kind.__name__}{place}; --debug shows the traceback\n")
    leave(130 if kind is KeyboardInterrupt else 1)


def leave(code: int) -> NoReturn:
    """Whatever thread a library left behind cannot keep a dead process alive.

    Output that could not be written (a full disk, a closed pipe) makes a success a failure.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or int(getattr(sys.stdout, "lost", 0) > 0))


if __name__ == "__main__":
    main()
