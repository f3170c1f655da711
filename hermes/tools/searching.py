"""Walking and matching for ``search_files``, run as a program of its own where an expression may never end.

    stdin   {"roots": […], "forbidden": […], "glob": "*.md", "pattern": "…", "max_files": n, "max_bytes": n}
    stdout  the matching lines

A backtracking expression holds the interpreter for as long as it likes, and a thread cannot be killed; a
child can (R24). This file needs nothing but the standard library: the child starts without our packages.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence

MAX_MATCHES = 100
MAX_LINE_CHARS = 300
LONGEST_LINE = 10_000
"""Characters of a line that an expression is tried on."""


def allows(path: str, roots: Sequence[str], forbidden: Sequence[str]) -> bool:
    """Whether a real path may be read: inside a root and not inside a forbidden folder nearer than it."""
    inside = [len(r) for r in roots if _within(path, r)]
    return bool(inside) and not any(_within(path, f) and len(f) >= max(inside) for f in forbidden)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read_regular(path: str, limit: int) -> tuple[bytes, bool]:
    """At most ``limit`` bytes of a regular file, and whether there is more.

    Raises OSError; also for a pipe or a device, which could keep its reader waiting for ever.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "it is not a file")
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(fd)
    return data[:limit], len(data) > limit


def search(
    roots: Sequence[str],
    forbidden: Sequence[str],
    glob: str,
    pattern: str,
    max_files: int,
    max_bytes: int,
) -> str:
    """Paths whose name matches ``glob``, or ``path:line: text`` where ``pattern`` matches. Raises re.error."""
    expression = re.compile(pattern) if pattern else None
    matches: list[str] = []
    for looked_at, path in enumerate(_walk(roots, forbidden)):
        if looked_at >= max_files or len(matches) >= MAX_MATCHES:
            matches = [*matches[:MAX_MATCHES], "[stopped: too many]"]
            break
        if not fnmatch.fnmatch(os.path.basename(path), glob):
            continue
        real = os.path.realpath(path)
        if not allows(real, roots, forbidden):
            continue
        matches += [path] if expression is None else _lines(path, real, expression, max_bytes)
    return "\n".join(matches[: MAX_MATCHES + 1])


def _walk(roots: Sequence[str], forbidden: Sequence[str]) -> Iterator[str]:
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(
                f for f in folders if allows(os.path.realpath(os.path.join(folder, f)), roots, forbidden)
            )
            yield from (os.path.join(folder, f) for f in sorted(files))


def _lines(path: str, real: str, expression: re.Pattern[str], max_bytes: int) -> list[str]:
    try:
        data, _ = read_regular(real, max_bytes)
    except OSError:
        return []
    if b"\0" in data:
        return []
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if expression.search(line[:LONGEST_LINE]):
            found.append(f"{path}:{number}: {line[:MAX_LINE_CHARS]}")
            if len(found) >= MAX_MATCHES:
                break
    return found


def main() -> None:
    """The child: one request, one answer."""
    request = json.load(sys.stdin)
    sys.stdout.buffer.write(search(**request).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
