"""Markdown as one plain text with spans over it; ``render`` cuts that into messages.

markdown-it-py parses (CommonMark, tables, strikethrough); this module walks its tokens once, in order.
Positions are code points here and become UTF-16 units at the very end, part by part.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RULE = "———"
BULLET = "• "
_INDENT = "  "
_STYLES = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_TASK = re.compile(r"\[([ xX])\] ")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.\-]{1,32}")
_COLUMN = 40  # cells wider than this are not padded to: one long cell must not blow up its column


@dataclass(frozen=True, slots=True)
class Span:
    """``kind`` is a Bot API entity type over ``text[start:end]``; ``extra`` is its url or language."""

    start: int
    end: int
    kind: str
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A rendered text and its spans, in the order in which they close."""

    text: str
    spans: tuple[Span, ...] = ()


def flow_of(source: str) -> Flow:
    """Parses and renders ``source``; total for any text."""
    writer = _Writer()
    writer.blocks(_parser().parse(source))
    return writer.done()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(slots=True)
class _Writer:
    """Collects text; ``gap`` is how many line breaks the next block is to be apart."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    gap: int = 0
    spans: list[Span] = field(default_factory=list)
    lists: list[int | None] = field(default_factory=list)  # None: bullets; else the next number
    marks: list[tuple[int, int]] = field(
        default_factory=list
    )  # open headings and quotes: start, spans before

    def write(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def begin(self, *, marker: bool = False) -> int:
        """Makes the gap before a block (or before a list's marker); returns where the block starts."""
        if self.gap and self.length:
            self.write("\n" * self.gap + _INDENT * (len(self.lists) - marker))
        self.gap = 0
        return self.length

    def end(self, gap: int) -> None:
        self.gap = max(self.gap, gap)

    def span(self, start: int, kind: str, extra: str | None = None) -> None:
        if start < self.length:
            self.spans.append(Span(start, self.length, kind, extra))

    def done(self) -> Flow:
        text = "".join(self.pieces)
        end = len(text.rstrip())
        return Flow(
            text[:end], tuple(s if s.end <= end else Span(s.start, end, s.kind, s.extra) for s in self.spans)
        )

    def blocks(self, tokens: Sequence[Token]) -> None:
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "table_open":
                position = self._table(tokens, position)
                continue
            self._block(token, tokens[position + 1] if position + 1 < len(tokens) else None)
            position += 1

    def _block(self, token: Token, following: Token | None) -> None:
        match token.type:
            case "inline":
                self.inline(token.children or ())
            case "paragraph_open":
                self.begin()
            case "paragraph_close":
                self.end(1 if token.hidden else 2)
            case "heading_open":
                self.marks.append((self.begin(), len(self.spans)))
            case "heading_close":
                self._heading(*self.marks.pop())
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self.begin()
                self.write(RULE)
                self.end(2)
            case "blockquote_open":
                self.marks.append((self.begin(), len(self.spans)))
            case "blockquote_close":
                self._quote(self.marks.pop()[0])
            case _:
                self._list(token, following)

    def _list(self, token: Token, following: Token | None) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                if self.lists:
                    self.gap = min(self.gap, 1)
                number = token.attrGet("start")
                first = int(number) if number is not None else 1
                self.lists.append(None if token.type == "bullet_list_open" else first)
            case "list_item_open":
                self.begin(marker=True)
                self._marker()
                empty = following is not None and following.type == "list_item_close"
                self.gap = 1 if empty else 0
            case "list_item_close":
                self.gap = 1
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.gap = 1 if self.lists else 2
            case _:
                pass  # openings and closings that leave no mark of their own

    def _marker(self) -> None:
        number = self.lists[-1]
        if number is None:
            self.write(BULLET)
        else:
            self.write(f"{number}. ")
            self.lists[-1] = number + 1

    def _heading(self, start: int, before: int) -> None:
        self.spans[before:] = [s for s in self.spans[before:] if s.kind != "bold"]
        self.span(start, "bold")
        self.end(2)

    def _quote(self, start: int) -> None:
        if not self.marks:  # quotes cannot be nested: the outermost one is shown
            self.span(start, "blockquote")
        self.end(2)

    def _code(self, token: Token) -> None:
        start = self.begin()
        language = token.info.split(None, 1)[0] if token.info.strip() else ""
        self.write(token.content.rstrip("\n"))
        self.span(start, "pre", language if _LANGUAGE.fullmatch(language) else None)
        self.end(2)

    def _table(self, tokens: Sequence[Token], position: int) -> int:
        rows: list[list[str]] = []
        right: list[bool] = []
        while tokens[position].type != "table_close":
            token = tokens[position]
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open" | "td_open":
                    if len(rows) == 1:
                        right.append("right" in str(token.attrGet("style") or ""))
                case "inline":
                    inner = _Writer()
                    inner.inline(token.children or ())
                    rows[-1].append(inner.done().text.replace("\n", " "))
                case _:
                    pass
            position += 1
        start = self.begin()
        self.write(_aligned(rows, right))
        self.span(start, "pre")
        self.end(2)
        return position + 1

    def inline(self, tokens: Iterable[Token]) -> None:
        opened: list[tuple[int, int, str]] = []
        for token in tokens:
            match token.type:
                case "softbreak" | "hardbreak":
                    self.write("\n" + _INDENT * len(self.lists))
                case "code_inline":
                    start = self.length
                    self.write(token.content)
                    self.span(start, "code")
                case "image":
                    self._image(token)
                case _ if token.nesting == 1:
                    opened.append((self.length, len(self.pieces), str(token.attrGet("href") or "")))
                case _ if token.nesting == -1 and opened:
                    start, piece, address = opened.pop()
                    if token.type == "link_close":
                        self._link(start, "".join(self.pieces[piece:]), address)
                    else:
                        self.span(start, _STYLES[token.type.removesuffix("_close")])
                case _:
                    self.write(self._words(token.content))

    def _words(self, text: str) -> str:
        """A list item's leading ``[ ]`` is a box."""
        task = _TASK.match(text) if self.pieces and self.pieces[-1] == BULLET else None
        if task is None:
            return text
        return ("☐ " if task[1] == " " else "☑ ") + text[task.end() :]

    def _link(self, start: int, shown: str, address: str) -> None:
        if not shown.strip():
            self.write(address)
        elif shown == address or address == f"mailto:{shown}":
            return
        elif is_linkable(address):
            self.span(start, "text_link", address)
        elif address:
            self.write(f" ({address})")

    def _image(self, token: Token) -> None:
        start = self.length
        self.write(token.content or "🖼")
        address = str(token.attrGet("src") or "")
        if is_linkable(address):
            self.span(start, "text_link", address)
        elif address:
            self.write(f" ({address})")


def is_linkable(address: str) -> bool:
    """True for what Telegram accepts behind a text: an absolute http(s), tg, mailto or tel address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    if parts.scheme in {"http", "https"}:
        return bool(parts.hostname) and "." in (parts.hostname or "") and len(address) <= 2048
    return parts.scheme in {"tg", "mailto", "tel"} and len(address) <= 2048


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """A table in a fixed-width font; wide East Asian characters count two columns."""
    widths = [
        min(_COLUMN, max((_columns(row[i]) for row in rows if i < len(row)), default=0))
        for i in range(max((len(row) for row in rows), default=0))
    ]
    lines = [_line(row, widths, right) for row in rows]
    if len(lines) > 1:
        lines.insert(1, "─┼─".join("─" * width for width in widths))
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for index, width in enumerate(widths):
        cell = row[index] if index < len(row) else ""
        padding = " " * (width - _columns(cell))
        cells.append(padding + cell if index < len(right) and right[index] else cell + padding)
    return " │ ".join(cells).rstrip()


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
