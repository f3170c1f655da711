"""A reply's Markdown as Slack messages: blocks of rich text, cut to what one message should hold.

A part has at most 2,936 characters, so that it also fits one section when buttons stand under a plain one, and its
blocks at most 9,000 characters of JSON: Slack refuses somewhat above 12,000 (``msg_blocks_too_long``), and names no
limit. What the text becomes, in words: docs/rendering.md.

The payload is JSON: ``text`` (for notifications, and all there is of a part without styles; mrkdwn, escaped),
``blocks`` (absent without styles) and ``plain`` (absent when it is the text itself): what is sent when Slack refuses
the blocks.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hermes.core.records import OutgoingPart
from hermes.platforms.markdown.cutting import Measure, cut
from hermes.platforms.markdown.document import document, plain_leaf, plain_of
from hermes.platforms.markdown.tree import Kind, Leaf, Style
from hermes.platforms.slack.blocks import blocks_of, is_linkable

__all__ = ["BLOCKS", "BLOCKS_SIZE", "LIMIT", "escaped", "render"]

LIMIT = 3_000
"""Characters of a section's text."""
MARK_ROOM = 64  # kept free in each part for the repeat mark (R18)
BLOCKS = 44
"""Of the 50 that a message may have: some are kept for the mark and for buttons."""
BLOCKS_SIZE = 9_000
_MARKS = re.compile(r"[*_~`<>&|]")


def render(text: str) -> tuple[OutgoingPart, ...]:
    """The parts of ``text``, in order. Raises Poison when there is nothing to see in it."""
    leaves = document(text, is_linkable)
    return tuple(OutgoingPart(_payload(part)) for part in cut(leaves, _MEASURE))


def escaped(text: str) -> str:
    """``text`` as Slack wants it written: three characters have a meaning everywhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _weigh(leaf: Leaf) -> tuple[int, ...]:
    size = len(json.dumps(blocks_of((leaf,)), ensure_ascii=False))
    return max(len(plain_leaf(leaf)), len(leaf.text)), size, 2 if leaf.kind is Kind.RULE else 0


_MEASURE = Measure((LIMIT - MARK_ROOM, BLOCKS_SIZE, BLOCKS), _weigh, (3, 60, 0))


def _payload(part: list[Leaf]) -> str:
    plain = plain_of(part)
    body: dict[str, Any] = {"text": escaped(plain)}
    if not all(map(_is_simple, part)):
        body["blocks"] = blocks_of(part)
    if plain != body["text"]:
        body["plain"] = plain
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _is_simple(leaf: Leaf) -> bool:
    """Whether mrkdwn can only be read as what is meant."""
    styled = leaf.depth or leaf.quote or any(run.style is not Style.PLAIN or run.url for run in leaf.runs)
    return leaf.kind is Kind.TEXT and not styled and not _MARKS.search(leaf.text)
