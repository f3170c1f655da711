"""A reply's Markdown as Discord messages: its dialect, cut to what one message holds.

Discord's dialect is close to Markdown; what differs is rewritten, outside of code only: ``__bold__`` (underline
there) becomes ``**bold**``, headings below the third level become bold lines, images become links, ``~~~`` fences
become backticks, and tables, which Discord does not know, become code blocks. Lengths are counted in UTF-16 units,
which is never less than Discord counts.

The payload is JSON: ``text``, and ``buttons`` where there are some.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from hermes.core.errors import Poison
from hermes.core.records import OutgoingPart
from hermes.core.transcript import without_lone_surrogates
from hermes.policy.chunking import Units, chunk

LIMIT = 2000
MARK_ROOM = 40  # kept free in each part for the repeat mark (R18)
_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")
_CODE = re.compile(r"(`+)(?:.+?)\1", re.DOTALL)
_STRONG = re.compile(r"(?<![\w_\\])__(?=\S)([^_\n]+?)(?<=\S)__(?![\w_])")
_HEADING = re.compile(r"^#{4,6}[ \t]+(.+?)[ \t]*#*$")
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\((<?)([^)\s>]+)(>?)(?:[ \t]+\"[^\"\n]*\")?\)")
_DELIMITER = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cn"})


def render(text: str) -> tuple[OutgoingPart, ...]:
    """The parts of ``text``, in order. Raises Poison when there is nothing to see in it."""
    text = without_lone_surrogates(text)
    if _is_blank(text):
        raise Poison("the reply has no visible text")
    found = "\n".join(_lines(text.replace("\r\n", "\n").strip("\n")))
    parts = [part for part in chunk(found, LIMIT - MARK_ROOM, units=Units.UTF16) if not _is_blank(part)]
    if not parts:
        raise Poison("the reply has no visible text")
    return tuple(OutgoingPart(json.dumps({"text": part}, ensure_ascii=False)) for part in parts)


def _lines(text: str) -> Iterator[str]:
    lines, at, fence = text.split("\n"), 0, ""
    while at < len(lines):
        line = lines[at]
        found = _FENCE.match(line)
        if fence:
            if found and found[2][0] == fence[0] and len(found[2]) >= len(fence) and not found[3].strip():
                fence, line = "", _backticks(line, found)
            yield line
        elif found and not (found[2][0] == "`" and "`" in found[3]):
            fence = found[2]
            yield _backticks(line, found)
        elif end := _table_end(lines, at):
            yield from _table(lines[at:end])
            at = end
            continue
        else:
            yield _outside_code(line)
        at += 1


def _backticks(line: str, found: re.Match[str]) -> str:
    return f"{found[1]}{'`' * len(found[2])}{found[3]}" if found[2][0] == "~" else line


def _outside_code(line: str) -> str:
    """One line in Discord's dialect; code spans stay as they are."""
    pieces, at = [], 0
    for span in _CODE.finditer(line):
        pieces += [_dialect(line[at : span.start()]), span[0]]
        at = span.end()
    whole = "".join([*pieces, _dialect(line[at:])])
    heading = _HEADING.match(whole)
    return f"**{heading[1]}**" if heading and "**" not in heading[1] else heading[1] if heading else whole


def _dialect(text: str) -> str:
    return _STRONG.sub(r"**\1**", _IMAGE.sub(lambda m: f"[{m[1] or 'image'}]({m[3]})", text))


def _table_end(lines: list[str], at: int) -> int:
    """Where the table that begins at this line ends; 0 when none does."""
    if at + 1 >= len(lines) or "|" not in lines[at] or "|" not in lines[at + 1]:
        return 0
    if not _DELIMITER.match(lines[at + 1]) or len(_cells(lines[at])) != len(_cells(lines[at + 1])):
        return 0
    end = at + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        end += 1
    return end


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|")
    inside = inside[:-1] if inside.endswith("|") and not inside.endswith("\\|") else inside
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def _table(lines: list[str]) -> Iterator[str]:
    """The table in columns of equal width, as code."""
    rows = [_cells(lines[0]), *(_cells(line) for line in lines[2:])]
    count = len(rows[0])
    rows = [[cell.replace("```", "'''") for cell in (*row, *[""] * count)][:count] for row in rows]
    widths = [max(_width(row[column]) for row in rows) for column in range(count)]
    yield "```"
    for number, row in enumerate(rows):
        cells = [cell + " " * (widths[column] - _width(cell)) for column, cell in enumerate(row)]
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "  ".join("-" * max(1, width) for width in widths)
    yield "```"


def _width(text: str) -> int:
    """Columns on a screen: wide characters take two, marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _is_blank(text: str) -> bool:
    return not text.strip() or all(unicodedata.category(c) in _INVISIBLE for c in text)
