"""stdout and stderr that never raise. Installed as the first act of the process, hence imports only `sys`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO


class SafeWriter:
    """A text stream around `stream` whose failures are counted in `lost` (calls) instead of raised.

    Guards against a broken pipe, a dead terminal, a closed or absent stream and a codec that cannot express
    a character (the character is written as an escape, the line stays). All else is the stream's own.
    It does not guard against a reader that never reads: see `hermes.runtime.output`.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream
        self.lost = 0

    def write(self, text: str) -> int:
        """Writes, or counts as lost. Always answers `len(text)`, so that no caller tries again."""
        if self.stream is None:
            self.lost += 1
            return len(text)
        try:
            self.stream.write(text)
        except UnicodeError:
            self._write_escaped(text)
        except (OSError, ValueError):
            self.lost += 1
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As `write` for each: a line that is lost does not lose the next."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flushes, or counts one loss."""
        if self.stream is None:
            return
        try:
            self.stream.flush()
        except (OSError, ValueError):
            self.lost += 1

    def isatty(self) -> bool:
        """False as well for a stream that is closed or absent."""
        if self.stream is None:
            return False
        try:
            return bool(self.stream.isatty())
        except (OSError, ValueError):
            return False

    def fileno(self) -> int:
        """The descriptor, or -1 (which every system call refuses) where there is none."""
        if self.stream is None:
            return -1
        try:
            return self.stream.fileno()
        except (OSError, ValueError):
            return -1

    @property
    def encoding(self) -> str:
        """The stream's encoding; UTF-8 where it names none."""
        return getattr(self.stream, "encoding", None) or "utf-8"

    def _write_escaped(self, text: str) -> None:
        encoding = self.encoding
        try:
            plain = text.encode(encoding, "backslashreplace").decode(encoding)
            if self.stream is not None:
                self.stream.write(plain)
        except (OSError, ValueError, LookupError):
            self.lost += 1

    def __getattr__(self, name: str) -> Any:
        if name == "stream":  # asked for while unpickling or copying, before __init__
            raise AttributeError(name)
        return getattr(self.stream, name)


def install() -> None:
    """Wraps sys.stdout and sys.stderr, each once; absent ones (no console) as well."""
    if not isinstance(sys.stdout, SafeWriter):
        sys.stdout = SafeWriter(sys.stdout)
    if not isinstance(sys.stderr, SafeWriter):
        sys.stderr = SafeWriter(sys.stderr)
