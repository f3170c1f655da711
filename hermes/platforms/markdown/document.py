"""From a reply's text to leaves: what every platform does the same way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from hermes.core.errors import Poison
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.markdown.tree import Kind, Leaf, Run, leaves_of

INDENT = "  "
_MARKUP = re.compile(r"[*_`~\[\]<>|&\\#\t\r]|^ |^(?:[-+=]|\d{1,9}[.)])", re.MULTILINE)
_LINE_ENDS = re.compile(r"[ \t]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{2,}")
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cn"})


def document(text: str, linkable: Callable[[str], bool], *, spoilers: bool = False) -> list[Leaf]:
    """The leaves of ``text``, at least one that can be seen. Raises Poison when there is nothing to see in it.

    NUL goes, lone surrogates become U+FFFD. What holds no markup is not parsed at all; what is too long or would
    take too long to parse (see ``parser``) stands as it was written.
    """
    text = without_lone_surrogates(text).replace("\0", "")
    if is_blank(text):
        raise Poison("the reply has no visible text")
    leaves = leaves_of(text, linkable, spoilers=spoilers) if _MARKUP.search(text) else None
    if leaves is None or all(leaf.marker is None and is_blank(leaf.text) for leaf in leaves):
        return as_written(text)
    return leaves


def as_written(text: str) -> list[Leaf]:
    """``text`` without any reading of marks: its paragraphs."""
    tidy = _LINE_ENDS.sub("", text.replace("\r\n", "\n")).strip("\n")
    found = [paragraph for paragraph in _BLANK_LINES.split(tidy) if paragraph]
    return [Leaf(Kind.TEXT, (Run(one),), 2 if at else 0) for at, one in enumerate(found)]


def plain_of(leaves: Sequence[Leaf]) -> str:
    """A part without any marks: what is sent when the platform refuses the formatted one."""
    return "".join("\n" * (leaf.gap if at else 0) + plain_leaf(leaf) for at, leaf in enumerate(leaves))


def plain_leaf(leaf: Leaf) -> str:
    """One leaf without marks, the addresses of its links written behind them."""
    pieces: list[str] = []
    for at, run in enumerate(leaf.runs):
        pieces.append(run.text)
        ends = at + 1 == len(leaf.runs) or leaf.runs[at + 1].link != run.link
        if run.url is not None and ends and run.url != run.text:
            pieces.append(f" ({run.url})")
    return led(leaf, "".join(pieces), quote="> ")


def led(leaf: Leaf, text: str, *, quote: str = "", bullet: str | None = None) -> str:
    """``text`` behind the leaf's marker, its lines under each other, within its quote; verbatim is not moved."""
    outer = quote if leaf.quote else ""
    if leaf.verbatim:
        return outer + text.replace("\n", "\n" + outer) if outer else text
    marker = bullet if bullet is not None else leaf.marker
    first = outer + (
        INDENT * (leaf.depth - 1) + f"{marker} " if leaf.marker is not None else INDENT * leaf.depth
    )
    if "\n" in text:
        text = text.replace("\n", "\n" + outer + INDENT * leaf.depth)
    return first + text if text else first.rstrip()


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing of it."""
    return not text.strip() or all(unicodedata.category(c) in _INVISIBLE for c in text)
