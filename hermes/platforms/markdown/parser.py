"""markdown-it-py as the platforms use it: CommonMark, tables, ``~~strike~~`` and, where wanted, ``||spoilers||``.

Two additions keep it total for hostile text: what is nested deeper than ``NESTING`` stands there as it was written
(the library would leave it out), and what would take longer than its length warrants is not parsed at all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.rules_inline.state_inline import Delimiter
    from markdown_it.token import Token

MAX_MARKDOWN = 128_000
"""Characters; a longer text is sent as it was written."""
MAX_OPEN_BRACKETS = 60
"""Brackets without an end; the parser looks for it from each of them to the end of the paragraph."""
MAX_MARKS = 16_000
"""Characters that begin or end something, line breaks among them: each costs as much as ten that do not."""
MAX_PIPES = 200
"""Cells of one row of a table; short rows are filled up to that."""
NESTING = 24
_MARKS = "*_~`[<|&\\\n"
_PIPE = ord("|")
_LONG_ROW = re.compile(rf"^[^\n|]*(?:\|[^\n|]*){{{MAX_PIPES}}}", re.MULTILINE)


def parse(source: str, *, spoilers: bool) -> list[Token] | None:
    """The tokens of ``source``; None for what is not worth its time (a longer text, or one made to take long)."""
    if len(source) > MAX_MARKDOWN or _is_hostile(source):
        return None
    return _parser(spoilers).parse(source)


def _is_hostile(source: str) -> bool:
    opened = source.count("[") - source.count("]")
    if opened > MAX_OPEN_BRACKETS or sum(map(source.count, _MARKS)) > MAX_MARKS:
        return True
    return "|" in source and _LONG_ROW.search(source) is not None


@cache
def _parser(spoilers: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    options = {"html": False, "maxNesting": 2 * NESTING}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.block.ruler.before("table", "deep", _deep)
    if spoilers:
        parser.inline.add_terminator_char("|")
        parser.inline.ruler.before("emphasis", "spoiler", _spoiler)
        parser.inline.ruler2.before("emphasis", "spoiler", _pair_spoilers)
    return parser


def _deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rest of a block that is nested too deeply, as one paragraph that is not parsed further."""
    if state.level < NESTING or silent:
        return False
    state.push("paragraph_open", "p", 1)
    token = state.push("verbatim", "", 0)
    token.content = state.getLines(start, end, state.blkIndent, False).strip()
    state.push("paragraph_close", "p", -1)
    state.line = end
    return True


def _spoiler(state: StateInline, silent: bool) -> bool:
    """``||``, as the library does with ``~~``: opening or closing is settled when all is read."""
    from markdown_it.rules_inline.state_inline import Delimiter

    if silent or not state.src.startswith("||", state.pos):
        return False
    scanned = state.scanDelims(state.pos, True)
    for _ in range(scanned.length // 2):
        state.push("text", "", 0).content = "||"
        state.delimiters.append(
            Delimiter(_PIPE, 0, len(state.tokens) - 1, -1, scanned.can_open, scanned.can_close)
        )
    if scanned.length % 2:
        state.push("text", "", 0).content = "|"
    state.pos += scanned.length
    return True


def _pair_spoilers(state: StateInline) -> None:
    _mark_pairs(state, state.delimiters)
    for meta in state.tokens_meta:
        if meta and "delimiters" in meta:
            _mark_pairs(state, meta["delimiters"])


def _mark_pairs(state: StateInline, delimiters: list[Delimiter]) -> None:
    for opening in delimiters:
        if opening.marker != _PIPE or opening.end == -1:
            continue
        closing = delimiters[opening.end]
        for end, kind, nesting in ((opening, "spoiler_open", 1), (closing, "spoiler_close", -1)):
            token = state.tokens[end.token]
            token.type, token.content = kind, ""
            token.nesting = 1 if nesting == 1 else -1
