"""Markdown as blocks of styled runs, and those as Slack's mrkdwn.

markdown-it-py parses (CommonMark, tables, strikethrough). A run is a text with its styles; a block is what stands
apart: a paragraph, an item, a heading, code. mrkdwn knows no escape for its marks, only for ``& < >``, and sees a
mark only where a word begins or ends: where a style cannot be shown, the text stands without it.
Source: Slack's documentation, "Formatting text for app surfaces".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RULE = "———"
UNFENCED = "``\u200b`"
"""Three back-ticks that are no fence."""
INDENT = "    "
_MARKS = {"strong": "*", "em": "_", "s": "~", "code": "`"}
_ORDER = ("strong", "em", "s", "code")
_TASK = re.compile(r"\[([ xX])\] ")
_COLUMN = 40


@dataclass(frozen=True, slots=True)
class Run:
    """A text in one style; ``url``: what it links to."""

    text: str
    styles: frozenset[str] = frozenset()
    url: str | None = None


@dataclass(slots=True)
class Block:
    """``lead`` stands before its first line, ``rest`` before the others; ``tight``: no blank line before it."""

    runs: list[Run] = field(default_factory=list)
    lead: str = ""
    rest: str = ""
    code: str | None = None
    tight: bool = False


def escaped(text: str) -> str:
    """``text`` as Slack wants it written: three characters have a meaning everywhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def blocks_of(source: str) -> list[Block]:
    """The blocks of a Markdown text; total for any text."""
    writer = _Writer()
    writer.walk(_parser().parse(source))
    return [block for block in writer.blocks if block.code is not None or any(run.text for run in block.runs)]


def mrkdwn(runs: Sequence[Run]) -> str:
    """Runs as mrkdwn."""
    pieces: list[str] = []
    for at, run in enumerate(runs):
        before = runs[at - 1].text[-1:] if at else ""
        after = runs[at + 1].text[:1] if at + 1 < len(runs) else ""
        pieces.append(_shown(run, before, after))
    return "".join(pieces)


def _shown(run: Run, before: str, after: str) -> str:
    if run.url is not None:
        label = _literal(" ".join(run.text.split())) or escaped(run.url)
        styles = [s for s in _ORDER if s in run.styles and s != "code"]
        return _wrapped(f"<{_address(run.url)}|{label}>", styles, before, after)
    head = run.text[: len(run.text) - len(run.text.lstrip())]
    tail = run.text[len(run.text.rstrip()) :] if run.text.strip() else ""
    core = run.text.strip()
    if not core:
        return run.text
    styles = [s for s in _ORDER if s in run.styles]
    if "code" in styles and "`" in core:
        styles.remove("code")
    if "\n" in core and styles:
        lines = [_wrapped(_literal(line), styles, "", "") if line.strip() else line for line in core.split("\n")]
        return head + "\n".join(lines) + tail
    return head + _wrapped(_literal(core), styles, head or before, tail or after) + tail


def _literal(text: str) -> str:
    """A fence that was written as text must not open a code block."""
    return escaped(text).replace("```", UNFENCED)


def _wrapped(text: str, styles: Sequence[str], before: str, after: str) -> str:
    if not styles or before.isalnum() or after.isalnum():
        return text
    marks = "".join(_MARKS[s] for s in styles)
    return f"{marks}{text}{marks[::-1]}"


def _address(url: str) -> str:
    return escaped(url).replace("|", "%7C").replace(" ", "%20").replace("\n", "")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(slots=True)
class _Writer:
    """Walks the tokens once, in order."""

    blocks: list[Block] = field(default_factory=list)
    lists: list[int | None] = field(default_factory=list)  # None: bullets; else the next number
    quotes: int = 0
    marker: str | None = None  # of the item whose first block is still to come
    loose: bool = False

    def walk(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.type == "table_open":
                end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close")
                self._add(Block(code=_table(tokens[at:end])))
                at = end
            else:
                self._token(token, bold=at > 0 and tokens[at - 1].type == "heading_open")
            at += 1

    def _token(self, token: Token, *, bold: bool) -> None:
        match token.type:
            case "inline":
                base = frozenset({"strong"}) if bold else frozenset[str]()
                self._add(Block(list(_runs(token.children or (), base))))
            case "fence" | "code_block":
                self._add(Block(code=token.content.rstrip("\n")))
            case "html_block":
                self._add(Block([Run(token.content.rstrip("\n"))]))
            case "hr":
                self._add(Block([Run(RULE)]))
            case "blockquote_open":
                self.quotes += 1
            case "blockquote_close":
                self.quotes -= 1
            case "bullet_list_open":
                self.lists.append(None)
            case "ordered_list_open":
                self.lists.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
            case "list_item_open":
                self._item()
            case "list_item_close" if self.marker is not None:
                self._add(Block([Run(" ")]))

    def _item(self) -> None:
        number = self.lists[-1]
        self.marker = "• " if number is None else f"{number}. "
        if number is not None:
            self.lists[-1] = number + 1

    def _add(self, block: Block) -> None:
        quote, depth = "> " * min(self.quotes, 1), max(0, len(self.lists) - 1)
        marker, self.marker = self.marker, None
        block.lead = f"{quote}{INDENT * depth}"
        block.rest = block.lead + ("  " if self.lists else "")
        if marker is not None:
            task = _TASK.match(block.runs[0].text) if block.runs else None
            if task is not None:
                marker = "☐ " if task[1] == " " else "☑ "
                block.runs[0] = Run(block.runs[0].text[task.end() :], block.runs[0].styles, block.runs[0].url)
            block.lead += marker
            block.tight = bool(self.blocks) and self.blocks[-1].lead.lstrip("> ")[:1] != ""
        elif self.lists:
            block.lead = block.rest
        self.blocks.append(block)


def _runs(children: Sequence[Token], base: frozenset[str]) -> Iterator[Run]:
    styles: list[str] = []
    urls: list[str | None] = []
    for token in children:
        now, url = base | frozenset(styles), urls[-1] if urls else None
        match token.type:
            case "text" | "html_inline" | "text_special":
                yield Run(token.content, now, url)
            case "code_inline":
                yield Run(token.content, now | {"code"}, url)
            case "softbreak" | "hardbreak":
                yield Run("\n")
            case "image":
                yield Run(token.content or "image", now, url or _linked(str(token.attrs.get("src", ""))))
            case "link_open":
                urls.append(_linked(str(token.attrs.get("href", ""))))
            case "link_close":
                urls.pop()
            case "strong_open" | "em_open" | "s_open":
                styles.append(token.tag if token.tag in _MARKS else token.type.removesuffix("_open"))
            case "strong_close" | "em_close" | "s_close":
                styles.pop()


def _linked(url: str) -> str | None:
    """An address that Slack links to; None for any other."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    known = (parts.scheme in ("http", "https") and parts.netloc) or (parts.scheme == "mailto" and parts.path)
    return url if known else None


def _table(tokens: Sequence[Token]) -> str:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append("".join(run.text for run in _runs(token.children or (), frozenset())).replace("\n", " "))
    widths = [
        max((min(len(row[at]), _COLUMN) for row in rows if at < len(row)), default=0)
        for at in range(max(map(len, rows), default=0))
    ]
    lines = [" | ".join(cell.ljust(widths[at]) for at, cell in enumerate(row)).rstrip() for row in rows]
    if len(lines) > 1:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)
