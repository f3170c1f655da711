"""``read_file`` and ``search_files``: reading only, inside the configured folders, never the gateway's home (R38)."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes.core.errors import ToolError
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolSpec
from hermes.runtime.offload import Offload

MAX_MATCHES = 100
MAX_LINE_CHARS = 300


@dataclass(frozen=True, slots=True)
class FileAccess:
    """``roots`` may be read; ``forbidden`` never, even where it lies inside a root. Sizes in bytes."""

    roots: tuple[Path, ...]
    forbidden: tuple[Path, ...]
    max_read_bytes: int = 256 * 1024
    max_search_files: int = 20_000

    def resolve(self, name: str) -> Path:
        """The real path behind a name, links followed. Raises ToolError outside the roots."""
        base = self.roots[0]
        path = Path(os.path.realpath(base / Path(name).expanduser()))
        if self.allows(path):
            return path
        listed = ", ".join(map(str, self.roots))
        raise ToolError(f"{name!r} is outside of what may be read ({listed}).")

    def allows(self, path: Path) -> bool:
        """Whether a real path may be read: inside a root and not inside a forbidden folder nearer than it."""
        inside = [r for r in self.roots if path == r or r in path.parents]
        if not inside:
            return False
        nearest = max(len(r.parts) for r in inside)
        return not any(
            (path == f or f in path.parents) and len(f.parts) >= nearest for f in self.forbidden
        )


class ReadFile:
    """Reads a text file, whole or from a line on."""

    effect = ToolEffect.PURE
    spec = ToolSpec(
        "read_file",
        "Read a text file.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "first_line": {"type": "integer", "description": "from 1"},
                "lines": {"type": "integer"},
            },
            "required": ["path"],
        },
    )

    def __init__(self, access: FileAccess, offload: Offload) -> None:
        self._access = access
        self._offload = offload

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        path = self._access.resolve(_text(arguments, "path"))
        first = max(1, _number(arguments, "first_line", 1))
        count = max(1, _number(arguments, "lines", 100_000))
        return await self._offload.run("files", self._read, path, first, count)

    def _read(self, path: Path, first: int, count: int) -> str:
        data, more = _read_regular(path, self._access.max_read_bytes)
        if b"\0" in data:
            raise ToolError(f"{path.name} is not a text file.")
        lines = data.decode("utf-8", "replace").splitlines()
        chosen = lines[first - 1 : first - 1 + count]
        text = "\n".join(chosen)
        if more:
            text += f"\n[cut after {self._access.max_read_bytes} bytes]"
        return text or "(empty)"


class SearchFiles:
    """Finds files by name and lines by content."""

    effect = ToolEffect.PURE
    spec = ToolSpec(
        "search_files",
        "Find files whose name matches a glob, and lines in them that match a regular expression.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "regular expression; empty: names only"},
                "glob": {"type": "string", "description": "e.g. *.md"},
            },
        },
    )

    def __init__(self, access: FileAccess, offload: Offload) -> None:
        self._access = access
        self._offload = offload

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        pattern = str(arguments.get("pattern") or "")
        glob = str(arguments.get("glob") or "*")
        try:
            expression = re.compile(pattern) if pattern else None
        except re.error as error:
            raise ToolError(f"The pattern is not a regular expression: {error}") from error
        found = await self._offload.run("files", self._search, expression, glob, timeout=30.0)
        return found or "Nothing matches."

    def _search(self, expression: re.Pattern[str] | None, glob: str) -> str:
        matches: list[str] = []
        for looked_at, path in enumerate(self._walk()):
            if looked_at >= self._access.max_search_files or len(matches) >= MAX_MATCHES:
                matches.append("[stopped: too many]")
                break
            if not fnmatch.fnmatch(path.name, glob):
                continue
            if expression is None:
                matches.append(str(path))
            else:
                matches += self._lines(path, expression)
        return "\n".join(matches[: MAX_MATCHES + 1])

    def _walk(self) -> Iterator[Path]:
        for root in self._access.roots:
            for folder, folders, files in os.walk(root):
                here = Path(folder)
                folders[:] = [f for f in folders if self._access.allows(Path(os.path.realpath(here / f)))]
                yield from (here / f for f in sorted(files))

    def _lines(self, path: Path, expression: re.Pattern[str]) -> list[str]:
        real = Path(os.path.realpath(path))
        if not self._access.allows(real):
            return []
        try:
            data, _ = _read_regular(real, self._access.max_read_bytes)
        except ToolError:
            return []
        if b"\0" in data:
            return []
        lines = data.decode("utf-8", "replace").splitlines()
        return [
            f"{path}:{n}: {line[:MAX_LINE_CHARS]}"
            for n, line in enumerate(lines, start=1)
            if expression.search(line[:10_000])
        ][:MAX_MATCHES]


def _read_regular(path: Path, limit: int) -> tuple[bytes, bool]:
    """At most ``limit`` bytes of a regular file (a pipe or device would hang), and whether there is more."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {error.strerror}.") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ToolError(f"{path.name} is not a file.")
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {error.strerror}.") from error
    finally:
        os.close(fd)
    return data[:limit], len(data) > limit


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ToolError(f"The argument {name!r} is missing or is not a text.")
    return value


def _number(arguments: Mapping[str, object], name: str, default: int) -> int:
    value = arguments.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
