"""Leaves as Slack's blocks: rich text, where styles stand beside the text and nothing needs escaping.

Source: Slack's reference, "Rich text block" and "Divider block". A list's items, and what belongs to them, are one
element; a rule is a block of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from hermes.core.delivery import MARK_PREFIX
from hermes.platforms.markdown.tree import BULLET, RULE, Kind, Leaf, Run, Style

MAX_ADDRESS = 1000
MAX_INDENT = 8
_NAMES = {Style.BOLD: "bold", Style.ITALIC: "italic", Style.STRIKE: "strike", Style.CODE: "code"}
_ADDRESS = re.compile(r"https?://[^\s<>\"]+")
_TRAILING = ".,:;!?'*_~`|"
Element = dict[str, Any]


def blocks_of(leaves: Sequence[Leaf]) -> list[Element]:
    """The blocks of a part."""
    writer = _Writer()
    for leaf in leaves:
        writer.leaf(leaf)
    return writer.blocks


def with_mark(blocks: Sequence[Element]) -> list[Element]:
    """The blocks with the repeat mark above them (R18)."""
    mark = _section([{"type": "text", "text": MARK_PREFIX.strip()}])
    return [{"type": "rich_text", "elements": [mark]}, *blocks]


class _Writer:
    """Writes leaves one below the other; ``last`` is the leaf before, in the same block."""

    def __init__(self) -> None:
        self.blocks: list[Element] = []
        self.last: Leaf | None = None

    def leaf(self, leaf: Leaf) -> None:
        border = {"border": 1} if leaf.quote else {}
        if leaf.kind is Kind.RULE and not leaf.quote and not leaf.depth:
            self.blocks.append({"type": "divider"})
            self.last = None
            return
        if leaf.verbatim:
            code = [{"type": "text", "text": leaf.text}]
            self._element({"type": "rich_text_preformatted", "elements": code, **border})
        elif leaf.marker is not None and leaf.marker.split()[0] != "0.":
            self._item(leaf, border)
        elif leaf.depth and self.last is not None and self.last.depth and self._open() == "rich_text_list":
            self._elements()[-1]["elements"][-1]["elements"] += [
                _text("\n" * min(leaf.gap, 2)),
                *_inline(leaf),
            ]
        else:
            self._text(leaf)
        self.last = leaf

    def _text(self, leaf: Leaf) -> None:
        kind = "rich_text_quote" if leaf.quote else "rich_text_section"
        together = self.last is not None and self.last.quote == leaf.quote and self._open() == kind
        if together:
            self._elements()[-1]["elements"] += [_text("\n" * leaf.gap), *_inline(leaf)]
        else:
            self._element({"type": kind, "elements": list(_inline(leaf))})

    def _item(self, leaf: Leaf, border: dict[str, int]) -> None:
        mark, _, box = (leaf.marker or BULLET).partition(" ")
        number = None if mark == BULLET else int(mark[:-1])
        inside = [*([_text(f"{box} ")] if box else []), *_inline(leaf)] or [_text(" ")]
        item = _section(inside)
        shape: Element = {
            "type": "rich_text_list",
            "style": "bullet" if number is None else "ordered",
            "indent": min(leaf.depth - 1, MAX_INDENT),
            **border,
        }
        if self._open() == "rich_text_list" and self._continues(shape, number, leaf):
            self._elements()[-1]["elements"].append(item)
            return
        if number is not None and number != 1:
            shape["offset"] = number - 1
        self._element({**shape, "elements": [item]})

    def _continues(self, shape: Element, number: int | None, leaf: Leaf) -> bool:
        last = self._elements()[-1]
        due = last.get("offset", 0) + len(last["elements"]) + 1
        same = all(last.get(key) == shape.get(key) for key in ("style", "indent", "border"))
        return (
            same
            and (number is None or number == due)
            and self.last is not None
            and self.last.quote == leaf.quote
        )

    def _elements(self) -> list[Element]:
        if self.last is None or not self.blocks:
            self.blocks.append({"type": "rich_text", "elements": []})
        found: list[Element] = self.blocks[-1]["elements"]
        return found

    def _open(self) -> str:
        return "" if self.last is None else str(self._elements()[-1]["type"])

    def _element(self, element: Element) -> None:
        self._elements().append(element)


def _section(elements: Sequence[Element]) -> Element:
    return {"type": "rich_text_section", "elements": list(elements)}


def _text(text: str, style: Element | None = None) -> Element:
    return {"type": "text", "text": text, **({"style": style} if style else {})}


def _inline(leaf: Leaf) -> Iterator[Element]:
    """The runs as elements; Slack's lists begin at 1, so the number 0 is text."""
    if leaf.marker is not None and leaf.marker.startswith("0."):
        yield _text(f"{leaf.marker} ")
    if leaf.kind is Kind.RULE:
        yield _text(RULE)
        return
    bold = Style.BOLD if leaf.kind is Kind.HEADING else Style.PLAIN
    for run in _merged(leaf.runs):
        style = {name: True for one, name in _NAMES.items() if one in run.style | bold}
        if run.url is not None:
            yield {"type": "link", "url": run.url, "text": run.text, **({"style": style} if style else {})}
        elif Style.CODE in run.style:
            yield _text(run.text, style)
        else:
            yield from _with_addresses(run.text, style)


def _merged(runs: Sequence[Run]) -> list[Run]:
    """Neighbours in one style, and of one link, are one run."""
    found: list[Run] = []
    for run in runs:
        last = found[-1] if found else None
        if last is not None and (last.style, last.link) == (run.style, run.link):
            found[-1] = Run(last.text + run.text, run.style, run.url, run.link)
        else:
            found.append(run)
    return found


def _with_addresses(text: str, style: Element) -> Iterator[Element]:
    """Rich text makes no links by itself: an address in the text is an element of its own."""
    at = 0
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(_TRAILING)
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(_TRAILING)
        if not is_linkable(address):
            continue
        if found.start() > at:
            yield _text(text[at : found.start()], style)
        yield {"type": "link", "url": address, **({"style": style} if style else {})}
        at = found.start() + len(address)
    if at < len(text):
        yield _text(text[at:], style)


def is_linkable(address: str) -> bool:
    """True for an address that Slack links to."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    known = (parts.scheme in ("http", "https") and parts.hostname) or (
        parts.scheme == "mailto" and parts.path
    )
    return bool(known) and len(address) <= MAX_ADDRESS
