"""Tables in a fixed-width font, for platforms that know none."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

COLUMN = 40
"""Cells wider than this are not padded to: one long cell must not blow up its column."""


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """The rows in columns of equal width, the first above a line; wide East Asian characters count two columns."""
    count = max((len(row) for row in rows), default=0)
    widths = [
        min(COLUMN, max((columns(row[at]) for row in rows if at < len(row)), default=0))
        for at in range(count)
    ]
    lines = [_line(row, widths, right) for row in rows]
    lines.insert(1, "─┼─".join("─" * max(1, width) for width in widths))
    return "\n".join(lines)


def columns(text: str) -> int:
    """Columns on a screen: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for at, width in enumerate(widths):
        cell = row[at] if at < len(row) else ""
        padding = " " * (width - columns(cell))
        cells.append(padding + cell if at < len(right) and right[at] else cell + padding)
    return " │ ".join(cells).rstrip()
