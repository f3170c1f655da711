"""Markdown as a sequence of leaves, each with all that stands around it.

A leaf is what a reader sees as one thing: a paragraph, a heading, an item's first paragraph, a code block, a table, a
rule. It knows its list, its depth, its quote and how far it is from the one before: so a document can be cut between
any two leaves, or within one, and each part still says what it is part of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING

from hermes.platforms.markdown.parser import parse
from hermes.platforms.markdown.tables import aligned

if TYPE_CHECKING:
    from markdown_it.token import Token

RULE = "———"
IMAGE = "🖼"
BULLET, OPEN_BOX, DONE_BOX = "•", "☐", "☑"
_TASK = re.compile(r"\[([ xX])\](?: |$)")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.\-]{1,32}")


class Style(Flag):
    """How a run of text looks."""

    PLAIN = 0
    BOLD = auto()
    ITALIC = auto()
    STRIKE = auto()
    CODE = auto()
    SPOILER = auto()


_STYLES = {"strong": Style.BOLD, "em": Style.ITALIC, "s": Style.STRIKE, "spoiler": Style.SPOILER}


class Kind(Enum):
    """What a leaf is."""

    TEXT = auto()
    HEADING = auto()
    CODE = auto()
    TABLE = auto()
    RULE = auto()


@dataclass(frozen=True, slots=True)
class Run:
    """A text in one style; ``url``: what it links to; ``link``: runs of one link share the number."""

    text: str
    style: Style = Style.PLAIN
    url: str | None = None
    link: int = 0


@dataclass(frozen=True, slots=True)
class Leaf:
    """``gap``: line breaks before it (2: a blank line). ``marker``: what an item begins with (``•``, ``3.``, a box
    behind either), None for what is no item's beginning. ``depth``: lists around it. ``quote``: the number of the
    outermost quote around it, 0 for none. ``level``: of a heading. Code and tables are one run."""

    kind: Kind
    runs: tuple[Run, ...] = ()
    gap: int = 0
    marker: str | None = None
    depth: int = 0
    quote: int = 0
    level: int = 0
    language: str | None = None

    @property
    def text(self) -> str:
        """What is read, without marker and marks."""
        return "".join(run.text for run in self.runs)

    @property
    def verbatim(self) -> bool:
        """Shown in a fixed-width font, as it is."""
        return self.kind in (Kind.CODE, Kind.TABLE)


def leaves_of(source: str, linkable: Callable[[str], bool], *, spoilers: bool) -> list[Leaf] | None:
    """The leaves of a Markdown text; None when it is not to be parsed. Total for any text.

    ``linkable``: whether the platform can hide this address behind a text; another is written behind it.
    """
    tokens = parse(source, spoilers=spoilers)
    if tokens is None:
        return None
    writer = _Writer(linkable)
    writer.walk(tokens)
    return writer.leaves


@dataclass(slots=True)
class _Item:
    number: int | None  # None: bullets


@dataclass(slots=True)
class _Writer:
    """Walks the tokens once, in order; ``gap`` is how far the next leaf is to be from the last."""

    linkable: Callable[[str], bool]
    leaves: list[Leaf] = field(default_factory=list)
    lists: list[_Item] = field(default_factory=list)
    gap: int = 0
    quotes: int = 0
    quote: int = 0
    marker: str | None = None  # of the item whose first leaf is still to come
    marked: int = 0  # how many lists were open when it was set
    heading: int = 0
    links: int = 0

    def walk(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            if tokens[at].type == "table_open":
                at = self._table(tokens, at)
            else:
                self._block(tokens[at])
                at += 1

    def _block(self, token: Token) -> None:
        match token.type:
            case "inline":
                runs = tuple(self.runs(token.children or (), Style.PLAIN))
                self._text(runs)
            case "verbatim":
                self._text((Run(token.content),))
            case "paragraph_close":
                self.gap = max(self.gap, 1 if token.hidden else 2)
            case "heading_open":
                self.heading = int(token.tag[1:])
            case "heading_close":
                self.heading, self.gap = 0, 2
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self._add(Kind.RULE, (Run(RULE),))
                self.gap = 2
            case "blockquote_open":
                self.quotes += self.quote == 0
                self.quote += 1
            case "blockquote_close":
                self.quote -= 1
                self.gap = 2
            case _:
                self._list(token)

    def _list(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                if self.lists:
                    self.gap = min(self.gap, 1)
                start = token.attrGet("start")
                first = int(start) if start is not None else 1
                self.lists.append(_Item(None if token.type == "bullet_list_open" else first))
            case "list_item_open":
                self._pending()
                self.marker, self.marked = self._marker(), len(self.lists)
            case "list_item_close":
                self._pending()
                self.gap = 1
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.gap = 1 if self.lists else 2
            case _:
                pass  # openings and closings that leave no mark of their own

    def _marker(self) -> str:
        item = self.lists[-1]
        if item.number is None:
            return BULLET
        item.number += 1
        return f"{item.number - 1}."

    def _pending(self) -> None:
        """An item that began and has no text of its own (yet) is a leaf of its marker alone."""
        if self.marker is not None:
            self._leaf(Leaf(Kind.TEXT, (), self.gap, self.marker, self.marked, self._quoted()))
            self.marker, self.gap = None, 1

    def _quoted(self) -> int:
        return self.quotes if self.quote else 0

    def _text(self, runs: tuple[Run, ...]) -> None:
        if self.heading:
            self._add(Kind.HEADING, tuple(_on_one_line(run) for run in runs), level=self.heading)
            return
        if self.marker is not None and runs and (task := _TASK.match(runs[0].text)):
            self.marker += f" {OPEN_BOX if task[1] == ' ' else DONE_BOX}"
            first = Run(runs[0].text[task.end() :], runs[0].style, runs[0].url, runs[0].link)
            runs = (first, *runs[1:])
        self._add(Kind.TEXT, runs)

    def _code(self, token: Token) -> None:
        language = token.info.split(None, 1)[0] if token.info.strip() else ""
        code = token.content.rstrip("\n")
        if code.strip():
            known = language if _LANGUAGE.fullmatch(language) else None
            self._add(Kind.CODE, (Run(code),), language=known)
            self.gap = 2

    def _table(self, tokens: Sequence[Token], at: int) -> int:
        rows: list[list[str]] = []
        right: list[bool] = []
        while tokens[at].type != "table_close":
            token = tokens[at]
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open" if len(rows) == 1:
                    right.append("right" in str(token.attrGet("style") or ""))
                case "inline":
                    cell = "".join(run.text for run in self.runs(token.children or (), Style.PLAIN))
                    rows[-1].append(" ".join(cell.split()))
                case _:
                    pass
            at += 1
        self._add(Kind.TABLE, (Run(aligned(rows, right)),))
        self.gap = 2
        return at + 1

    def _add(self, kind: Kind, runs: tuple[Run, ...], *, level: int = 0, language: str | None = None) -> None:
        runs = tuple(run for run in runs if run.text)
        if kind not in (Kind.TEXT, Kind.HEADING):
            self._pending()
        marker, self.marker = self.marker, None
        if not runs and marker is None:
            return
        depth = self.marked if marker is not None else len(self.lists)
        self._leaf(Leaf(kind, runs, self.gap, marker, depth, self._quoted(), level, language))
        self.gap = 0

    def _leaf(self, leaf: Leaf) -> None:
        self.leaves.append(leaf if self.leaves else replace(leaf, gap=0))

    def runs(self, children: Sequence[Token], base: Style) -> Iterator[Run]:
        """Inline tokens as runs; a line break is one in the text."""
        styles: list[Style] = [base]
        links: list[_Link] = []
        for token in children:
            link = links[-1] if links else None
            match token.type:
                case "softbreak" | "hardbreak":
                    yield self._run("\n", styles[-1], link)
                case "code_inline":
                    yield self._run(token.content, styles[-1] | Style.CODE, link)
                case "image":
                    yield from self._image(token, styles[-1], link)
                case "link_open":
                    self.links += 1
                    links.append(
                        _Link(str(token.attrGet("href") or ""), self.links, token.markup == "autolink")
                    )
                case "link_close":
                    yield from self._behind(links.pop(), styles[-1])
                case _ if token.nesting == 1:
                    styles.append(styles[-1] | _STYLES[token.type.removesuffix("_open")])
                case _ if token.nesting == -1:
                    styles.pop()
                case _:
                    yield self._run(token.content, styles[-1], link)

    def _run(self, text: str, style: Style, link: _Link | None) -> Run:
        if link is None:
            return Run(text, style)
        link.shown += text
        if link.auto or not self.linkable(link.address):
            return Run(text, style)
        return Run(text, style, link.address, link.number)

    def _image(self, token: Token, style: Style, link: _Link | None) -> Iterator[Run]:
        shown = "".join(run.text for run in self.runs(token.children or (), Style.PLAIN)) or IMAGE
        if link is not None:
            yield self._run(shown, style, link)
            return
        self.links += 1
        image = _Link(str(token.attrGet("src") or ""), self.links, False)
        yield self._run(shown, style, image)
        yield from self._behind(image, style)

    def _behind(self, link: _Link, style: Style) -> Iterator[Run]:
        """The address, where it is not behind the text."""
        if link.auto or not link.address:
            return
        if not link.shown.strip():
            yield Run(link.address, style)
        elif not self.linkable(link.address) and link.address not in (link.shown, f"mailto:{link.shown}"):
            yield Run(f" ({link.address})", style)


@dataclass(slots=True)
class _Link:
    address: str
    number: int
    auto: bool  # written as <address>: the text is the address
    shown: str = ""


def _on_one_line(run: Run) -> Run:
    return Run(run.text.replace("\n", " "), run.style, run.url, run.link)
