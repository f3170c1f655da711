"""``read_file`` and ``search_files``: reading only, inside the configured folders, never the gateway's home (R38)."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.core.errors import ToolError
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolSpec
from hermes.runtime.children import ChildTimeout
from hermes.runtime.offload import Offload, OffloadTimeout
from hermes.tools import searching


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
        try:
            path = Path(os.path.realpath(base / Path(name).expanduser()))
        except (RuntimeError, OSError, ValueError) as error:  # ~nobody, or no name of a file at all
            raise ToolError(f"{name[:200]!r} names no file: {error}") from error
        if self.allows(path):
            return path
        listed = ", ".join(map(str, self.roots))
        raise ToolError(f"{name!r} is outside of what may be read ({listed}).")

    def allows(self, path: Path) -> bool:
        """Whether a real path may be read: inside a root and not inside a forbidden folder nearer than it."""
        return searching.allows(str(path), list(map(str, self.roots)), list(map(str, self.forbidden)))


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
        try:
            data, more = searching.read_regular(str(path), self._access.max_read_bytes)
        except OSError as error:
            raise ToolError(f"{path.name} cannot be read: {error.strerror}.") from error
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

    def __init__(self, access: FileAccess, offload: Offload, *, timeout: float = 20.0) -> None:
        self._access = access
        self._offload = offload
        self.timeout = timeout

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        pattern = str(arguments.get("pattern") or "")
        glob = str(arguments.get("glob") or "*")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"The pattern is not a regular expression: {error}") from error
        found = await (self._in_child(pattern, glob) if _may_run_for_ever(pattern) else self._here(pattern, glob))
        return found or "Nothing matches."

    async def _here(self, pattern: str, glob: str) -> str:
        request = self._request(pattern, glob)
        try:
            return await self._offload.run("files", lambda: searching.search(**request), timeout=self.timeout)
        except OffloadTimeout as error:
            raise ToolError(self._too_long()) from error

    async def _in_child(self, pattern: str, glob: str) -> str:
        request = json.dumps(self._request(pattern, glob)).encode()
        program = [sys.executable, "-I", "-S", "-X", "utf8", searching.__file__]
        try:
            result = await self._offload.run_process(program, input=request, timeout=self.timeout)
        except ChildTimeout as error:
            raise ToolError(self._too_long()) from error
        if result.code:
            last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise ToolError(f"The search ended with an error: {' '.join(last) or result.code}")
        return result.stdout.decode("utf-8", "replace")

    def _request(self, pattern: str, glob: str) -> dict[str, Any]:
        access = self._access
        return {
            "roots": list(map(str, access.roots)), "forbidden": list(map(str, access.forbidden)), "glob": glob,
            "pattern": pattern, "max_files": access.max_search_files, "max_bytes": access.max_read_bytes,
        }  # fmt: skip

    def _too_long(self) -> str:
        spent = f"The search took longer than {self.timeout:g} s and was stopped"
        return f"{spent}: use a simpler pattern or a narrower glob."


def _may_run_for_ever(pattern: str) -> bool:
    """Only repetition and alternation backtrack; a plain word is looked for without a child."""
    return any(c in pattern for c in "*+{|?(")


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ToolError(f"The argument {name!r} is missing or is not a text.")
    return value


def _number(arguments: Mapping[str, object], name: str, default: int) -> int:
    value = arguments.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
