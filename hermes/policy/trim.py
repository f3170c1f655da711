"""A rough token estimate and the deterministic trim: the oldest goes first, pairs stay whole. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hermes.core.transcript import AssistantItem, Item, ToolResultItem, UserItem
from hermes.policy.images import images_tokens

_ITEM_OVERHEAD = 4


def text_tokens(text: str) -> int:
    """About four ASCII characters a token, about one token for each other letter (Chinese, Japanese, …)."""
    if text.isascii():
        return len(text) // 4 + 1
    plain = sum(1 for c in text if c < "\x80")
    return plain // 4 + (len(text) - plain) + 1


def item_tokens(item: Item) -> int:
    """An item's share of a prompt, its calls and results included."""
    match item:
        case UserItem() | ToolResultItem():
            return text_tokens(item.text) + images_tokens(item.images) + _ITEM_OVERHEAD
        case AssistantItem():
            calls = sum(text_tokens(c.arguments) + text_tokens(c.name) + _ITEM_OVERHEAD for c in item.tool_calls)
            return text_tokens(item.text) + calls + _ITEM_OVERHEAD
        case _:
            assert_never(item)


def estimate_tokens(items: Sequence[Item]) -> int:
    """The sum over items."""
    return sum(map(item_tokens, items))


def trim_to(items: tuple[Item, ...], room: int) -> tuple[Item, ...]:
    """The newest items that fit into ``room`` tokens, beginning with a person's words.

    The last person's message and what follows it is always kept, even where it does not fit: cutting
    that would change the question. The result is legal if ``items`` was.
    """
    starts = [i for i, item in enumerate(items) if isinstance(item, UserItem) and not item.note]
    if not starts:
        return items
    kept = starts[-1]
    size = estimate_tokens(items[kept:])
    for start in reversed(starts[:-1]):
        size += estimate_tokens(items[start:kept])
        if size > room:
            break
        kept = start
    return items[kept:]
