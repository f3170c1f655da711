"""A reply's Markdown as Telegram messages: plain text plus entities, cut to what one message holds.

Entities are used and not ``parse_mode``: nothing needs escaping, so no text can be refused for its
markup. The tree is cut and not the text, so a code block that spans two parts is a code block in both
(FIELD_REPORTS 12). Lengths and offsets are UTF-16 code units, as the Bot API counts
(https://core.telegram.org/bots/api#messageentity). What the text becomes, in words: docs/rendering.md.

The payload is JSON: ``text``, ``entities`` (absent when there are none), ``plain`` (absent when it is
the text itself): what is sent when the platform refuses the formatted one.
"""

from __future__ import annotations

import json
from typing import Any

from hermes.core.records import OutgoingPart
from hermes.platforms.markdown.cutting import Measure, cut
from hermes.platforms.markdown.document import document, plain_leaf, plain_of
from hermes.platforms.markdown.tree import Leaf
from hermes.platforms.telegram.markdown import is_linkable, page_of, units

__all__ = ["LIMIT", "MARK_ROOM", "MAX_ENTITIES", "render", "units"]

LIMIT = 4096  # UTF-16 units of one message
MARK_ROOM = 64  # kept free in each part for the repeat mark (R18)
MAX_ENTITIES = 100  # Telegram ignores what exceeds this


def render(text: str) -> tuple[OutgoingPart, ...]:
    """The parts of ``text``, in order. Raises Poison when there is nothing to see in it."""
    leaves = document(text, is_linkable, spoilers=True)
    return tuple(OutgoingPart(_payload(part)) for part in cut(leaves, _MEASURE))


def _weigh(leaf: Leaf) -> tuple[int, ...]:
    page = page_of((leaf,))
    return page.at, len(page.entities), units(plain_leaf(leaf))


_MEASURE = Measure((LIMIT - MARK_ROOM, MAX_ENTITIES, LIMIT - MARK_ROOM), _weigh, (1, 0, 1))


def _payload(part: list[Leaf]) -> str:
    page = page_of(part)
    text = page.text
    body: dict[str, Any] = {"text": text}
    if page.entities:
        body["entities"] = page.entities
    if page.entities or any(leaf.quote for leaf in part):
        plain = plain_of(part)
        if plain != text:
            body["plain"] = plain
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
