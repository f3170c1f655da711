"""How Slack reads a message's text and its blocks: control sequences and marks of mrkdwn, the shapes of rich text.

Read strictly: what is no control sequence must be escaped, a mark must mean something, and a block holds the fields of
Slack's reference and no others. Limits: 50 blocks, 12,000 characters in all, 3,000 in a section.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["BlockError", "TextError", "read_blocks", "read_mrkdwn"]

TEXT, TOTAL, MANY, SECTION = 40_000, 12_000, 50, 3_000
_ENTITY = re.compile(r"&(?:amp|lt|gt);")
_CONTROL = re.compile(r"<((?:https?://|mailto:)[^|<>\s]+)(?:\|([^<>\n]+))?>")
_MARK = re.compile(r"(?<![A-Za-z0-9])([*_~])(?=\S)([^\n]*?)(?<=\S)\1(?![A-Za-z0-9])")
_STYLES = {"bold", "italic", "strike", "code"}
_FIELDS: Mapping[str, set[str]] = {
    "rich_text": {"type", "elements", "block_id"},
    "rich_text_section": {"type", "elements"},
    "rich_text_list": {"type", "elements", "style", "indent", "offset", "border"},
    "rich_text_preformatted": {"type", "elements", "border"},
    "rich_text_quote": {"type", "elements", "border"},
    "text": {"type", "text", "style"},
    "link": {"type", "url", "text", "style", "unsafe"},
    "divider": {"type", "block_id"},
}


class TextError(Exception):
    """What a strict reader of mrkdwn refuses."""


class BlockError(Exception):
    """Slack's `invalid_blocks` or `msg_blocks_too_long`; the message says which field."""

    def __init__(self, told: str, error: str = "invalid_blocks") -> None:
        super().__init__(told)
        self.error = error


def read_mrkdwn(text: str) -> str:
    """The text as it is shown, if all that it holds is text and links. Raises TextError for anything else."""
    if not text.strip():
        raise TextError("no_text")
    if len(text) > TEXT:
        raise TextError("msg_too_long")
    shown = _CONTROL.sub(lambda found: found[2] or found[1], text)
    if left := re.search(r"[<>]|&(?!(?:amp|lt|gt);)", shown):
        raise TextError(f"not escaped: {shown[max(0, left.start() - 20) : left.end() + 20]!r}")
    if "`" in shown or (found := _MARK.search(shown)):
        raise TextError(f"a mark that was not meant: {found[0] if '`' not in shown and found else '`'}")
    return undone(shown)


def undone(text: str) -> str:
    """``text`` with its entities read."""
    names = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
    return _ENTITY.sub(lambda found: names[found[0]], text)


def read_blocks(blocks: Sequence[Mapping[str, Any]]) -> str:
    """The text that a reader of the blocks sees, each element on a line of its own. Raises BlockError."""
    if len(blocks) > MANY:
        raise BlockError(f"no more than {MANY} items allowed")
    shown = "\n".join(_block(block) for block in blocks)
    if len(shown) > TOTAL:
        raise BlockError("too long", "msg_blocks_too_long")
    return shown


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "rich_text":
            _known(block)
            return "\n".join(_element(one) for one in _elements(block))
        case "divider":
            _known(block)
            return "———"
        case "section":
            text = block.get("text")
            if not isinstance(text, Mapping) or not 1 <= len(str(text.get("text") or "")) <= SECTION:
                raise BlockError("text of a section: 1 to 3000")
            return undone(str(text["text"]))
        case _:
            return ""  # buttons and the like show no text of the answer


def _element(element: Mapping[str, Any]) -> str:
    _known(element)
    match element.get("type"):
        case "rich_text_section" | "rich_text_quote" | "rich_text_preformatted":
            _whole(element, "border", 1)
            inner = _elements(element)
            if element["type"] == "rich_text_preformatted" and any("style" in one for one in inner):
                raise BlockError("preformatted text has no style")
            return "".join(map(_inline, inner))
        case "rich_text_list":
            return _list(element)
        case other:
            raise BlockError(f"unsupported element: {other}")


def _list(element: Mapping[str, Any]) -> str:
    if element.get("style") not in ("bullet", "ordered"):
        raise BlockError(f"style of a list: {element.get('style')!r}")
    _whole(element, "indent", 8)
    _whole(element, "border", 1)
    _whole(element, "offset", 10**10)
    number = int(element.get("offset", 0))
    lines = []
    for item in _elements(element):
        if item.get("type") != "rich_text_section":
            raise BlockError(f"item of a list: {item.get('type')!r}")
        number += 1
        marker = "•" if element["style"] == "bullet" else f"{number}."
        lines.append(f"{marker} {_element(item)}")
    return "\n".join(lines)


def _inline(element: Mapping[str, Any]) -> str:
    _known(element)
    style = element.get("style", {})
    if (
        not isinstance(style, Mapping)
        or not set(style) <= _STYLES
        or not all(v is True for v in style.values())
    ):
        raise BlockError(f"style: {style!r}")
    text = element.get("text")
    match element.get("type"):
        case "text" if isinstance(text, str) and text:
            return text
        case "link" if (
            re.match(r"(?:https?://[^\s]+|mailto:[^\s]+)$", str(element.get("url"))) and text != ""
        ):
            return str(text or element["url"])
        case _:
            raise BlockError(f"element: {dict(element)!r}"[:300])


def _elements(holder: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = holder.get("elements")
    if not isinstance(found, list) or not found or not all(isinstance(one, Mapping) for one in found):
        raise BlockError(f"elements of {holder.get('type')}: at least one")
    return found


def _known(thing: Mapping[str, Any]) -> None:
    fields = _FIELDS.get(str(thing.get("type")))
    if fields is None or not set(thing) <= fields:
        raise BlockError(f"unsupported type or field: {dict(thing)!r}"[:300])


def _whole(thing: Mapping[str, Any], name: str, most: int) -> None:
    value = thing.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise BlockError(f"{name}: 0 to {most}")
