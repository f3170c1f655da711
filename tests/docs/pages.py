"""Reads the project's own pages: fenced blocks, inline code, tables."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")

_FENCE = re.compile(r"^([ \t]*)```(\w*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``line`` is where it begins, its indentation is taken off."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@functools.cache
def pages() -> tuple[Path, ...]:
    """Every page, in order of name."""
    return tuple(ROOT / name for name in NAMES) + tuple(sorted((ROOT / "docs").rglob("*.md")))


def name_of(page: Path) -> str:
    """Its path from the repository's root."""
    return page.relative_to(ROOT).as_posix()


def blocks(language: str) -> list[Block]:
    """The fenced blocks of one language, of all pages."""
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            indent, kind, body = match.groups()
            if kind == language:
                lines = [line.removeprefix(indent) for line in body.splitlines()]
                line = text.count("\n", 0, match.start()) + 1
                found.append(Block(name_of(page), line, kind, "\n".join(lines) + "\n"))
    return found


def inline_code(page: Path) -> list[str]:
    """What stands between single backticks, fenced blocks aside."""
    return _INLINE.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))


def section(page: str, heading: str) -> str:
    """The text below a heading up to the next of the same or a higher level. Raises ValueError."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"{page} has no heading {heading!r}")
    return found.group(2)
