"""Leaves as text with entities over it. Positions are UTF-16 code units, as the Bot API counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hermes.platforms.markdown.document import INDENT, led
from hermes.platforms.markdown.tree import Kind, Leaf, Run, Style

MAX_ADDRESS = 2048
_NAMES = {
    Style.SPOILER: "spoiler",
    Style.BOLD: "bold",
    Style.ITALIC: "italic",
    Style.STRIKE: "strikethrough",
    Style.CODE: "code",
}
Mark = tuple[str, str | None]
"""An entity's type, and its address or language."""


@dataclass(slots=True)
class Page:
    """Text and entities, written from the start to the end; entities are properly nested by the way they are made."""

    pieces: list[str] = field(default_factory=list)
    entities: list[dict[str, Any]] = field(default_factory=list)
    at: int = 0
    _open: list[tuple[Mark, int, int]] = field(default_factory=list)  # mark, from where, before which entity

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def write(self, text: str) -> None:
        self.pieces.append(text)
        self.at += units(text)

    def style(self, marks: Sequence[Mark]) -> None:
        """From here on these marks hold; what is open and stays is not closed, unless something below it ends."""
        kept = 0
        while kept < len(self._open) and self._open[kept][0] in marks:
            kept += 1
        while len(self._open) > kept:
            self._close()
        there = [mark for mark, _, _ in self._open]
        for mark in marks:
            if mark not in there:
                self._open.append((mark, self.at, len(self.entities)))

    def held(self, marks: Sequence[Mark]) -> list[Mark]:
        """Those of the marks that hold already: none begins with a blank."""
        return [mark for mark, _, _ in self._open if mark in marks]

    def _close(self) -> None:
        (kind, extra), start, place = self._open.pop()
        if self.at == start:
            return
        entity: dict[str, Any] = {"type": kind, "offset": start, "length": self.at - start}
        if extra is not None:
            entity["url" if kind == "text_link" else "language"] = extra
        self.entities.insert(place, entity)


def page_of(leaves: Sequence[Leaf]) -> Page:
    """The leaves one below the other; a quote's leaves, though several, are one quote."""
    page = Page()
    quote = 0
    for index, leaf in enumerate(leaves):
        if leaf.quote != quote:
            page.style(())
            quote = leaf.quote
        if index:
            page.write("\n" * leaf.gap)
        _leaf(page, leaf)
    page.style(())
    return page


def _leaf(page: Page, leaf: Leaf) -> None:
    outer: list[Mark] = [("blockquote", None)] if leaf.quote else []
    page.style(outer)
    page.write(led(leaf, "\0").removesuffix("\0") if leaf.runs else led(leaf, ""))
    if leaf.verbatim:
        page.style([*outer, ("pre", leaf.language)])
        page.write(leaf.text)
    for run in () if leaf.verbatim else leaf.runs:
        marks = [*outer, *_marks(run, heading=leaf.kind is Kind.HEADING)]
        page.style(marks if run.text.strip() else page.held(marks))
        page.write(run.text.replace("\n", "\n" + INDENT * leaf.depth))
    page.style(outer)


def _marks(run: Run, *, heading: bool) -> list[Mark]:
    """What Telegram may show at once: code is part of nothing but a quote; what hides goes before it, a link too."""
    style = run.style | Style.BOLD if heading else run.style
    if run.url is None and Style.SPOILER not in style and Style.CODE in style:
        return [("code", None)]
    marks: list[Mark] = [("text_link", run.url)] if run.url is not None else []
    return [*marks, *((name, None) for one, name in _NAMES.items() if one in style and one is not Style.CODE)]


def is_linkable(address: str) -> bool:
    """True for what Telegram accepts behind a text: an absolute http(s), tg, mailto or tel address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    if parts.scheme in {"http", "https"}:
        return bool(parts.hostname) and "." in (parts.hostname or "") and len(address) <= MAX_ADDRESS
    return parts.scheme in {"tg", "mailto", "tel"} and len(address) <= MAX_ADDRESS


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
