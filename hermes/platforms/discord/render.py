"""A reply's Markdown as Discord messages: its dialect, cut to what one message holds.

The tree is cut and each part is written by itself, so its marks, fences and quotes begin and end in it. Lengths are
counted in UTF-16 units, which is never less than Discord counts. What the text becomes, in words: docs/rendering.md.

The payload is JSON: ``text``, ``plain`` (absent when it is the same), and ``buttons`` where there are some.
"""

from __future__ import annotations

import json

from hermes.core.records import OutgoingPart
from hermes.platforms.discord.markdown import dialect, is_linkable
from hermes.platforms.markdown.cutting import Measure, cut
from hermes.platforms.markdown.document import document, plain_leaf, plain_of
from hermes.platforms.markdown.tree import Leaf
from hermes.policy.chunking import utf16_len

__all__ = ["LIMIT", "MARK_ROOM", "render"]

LIMIT = 2000
MARK_ROOM = 40  # kept free in each part for the repeat mark (R18)


def render(text: str) -> tuple[OutgoingPart, ...]:
    """The parts of ``text``, in order. Raises Poison when there is nothing to see in it."""
    leaves = document(text, is_linkable, spoilers=True)
    return tuple(OutgoingPart(_payload(part)) for part in cut(leaves, _MEASURE))


def _weigh(leaf: Leaf) -> tuple[int, ...]:
    return utf16_len(dialect(leaf)), utf16_len(plain_leaf(leaf))


_MEASURE = Measure((LIMIT - MARK_ROOM, LIMIT - MARK_ROOM), _weigh, (3, 3))


def _payload(part: list[Leaf]) -> str:
    text = "".join(_gap(part, at) + dialect(leaf) for at, leaf in enumerate(part))
    body = {"text": text}
    plain = plain_of(part)
    if plain != text:
        body["plain"] = plain
    return json.dumps(body, ensure_ascii=False)


def _gap(part: list[Leaf], at: int) -> str:
    """Line breaks before a leaf; within one quote they belong to it."""
    if at == 0:
        return ""
    if part[at].quote and part[at].quote == part[at - 1].quote:
        return "\n> " * (part[at].gap - 1) + "\n"
    return "\n" * part[at].gap
