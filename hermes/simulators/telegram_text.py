"""How Telegram reads a message's text: markup into entities, limits in UTF-16 units, refusals in its words.

Wording and order of the checks follow TDLib's MessageEntity.cpp as the Bot API passes it on.
"""

from __future__ import annotations

import html
import re
from typing import Any

__all__ = ["TextError", "read_text", "utf16"]

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_TAGS = {
    "b": "Bold",
    "strong": "Bold",
    "i": "Italic",
    "em": "Italic",
    "u": "Underline",
    "ins": "Underline",
    "s": "Strikethrough",
    "strike": "Strikethrough",
    "del": "Strikethrough",
    "span": "Spoiler",
    "tg-spoiler": "Spoiler",
    "tg-emoji": "CustomEmoji",
    "a": "TextUrl",
    "code": "Code",
    "pre": "Pre",
    "blockquote": "BlockQuote",
}
_WIRE = {
    "Bold": "bold",
    "Italic": "italic",
    "Underline": "underline",
    "Strikethrough": "strikethrough",
    "Spoiler": "spoiler",
    "Code": "code",
    "Pre": "pre",
    "PreCode": "pre",
    "TextUrl": "text_link",
    "CustomEmoji": "custom_emoji",
    "BlockQuote": "blockquote",
}
_GIVEN = frozenset(
    {
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
        "date_time",
    }
)
_CANNOT = "can't parse entities: "


class TextError(Exception):
    """Telegram's refusal of a text; the message is what follows `Bad Request: `."""


def utf16(text: str) -> int:
    """Length in UTF-16 units, the measure of all limits and offsets of Telegram."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def read_text(
    text: str, *, parse_mode: str = "", entities: list[dict[str, Any]] | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """The text that the user sees and its entities. Raises TextError as Telegram refuses it."""
    mode = parse_mode.lower()
    if mode == "markdownv2":
        text, entities = _MarkdownV2(text).read()
    elif mode == "html":
        text, entities = _read_html(text)
    elif mode == "markdown":
        text, entities = _read_markdown(text)
    elif mode:
        raise TextError("unsupported parse_mode")
    else:
        entities = list(entities or [])
        _check(text, entities)
    return _trim(text, entities)


def _trim(text: str, entities: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    text = text.rstrip()
    lead = len(text) - len(text.lstrip())
    if lead:
        cut = utf16(text[:lead])
        text = text[lead:]
        entities = [{**entity, "offset": max(0, entity["offset"] - cut)} for entity in entities]
    end = utf16(text)
    kept = []
    for entity in entities:
        length = min(entity["length"], end - entity["offset"])
        if length > 0:
            kept.append({**entity, "length": length})
    return text, kept


def _check(text: str, entities: list[dict[str, Any]]) -> None:
    end = utf16(text)
    starts = set()
    at = 0
    for character in text:
        starts.add(at)
        at += utf16(character)
    starts.add(end)
    for entity in entities:
        if not isinstance(entity, dict) or not isinstance(entity.get("type"), str):
            raise TextError("can't parse MessageEntity: Can't find field \"type\"")
        if entity["type"] not in _GIVEN:
            raise TextError("can't parse MessageEntity: Unsupported type specified")
        offset, length = entity.get("offset"), entity.get("length")
        if not isinstance(offset, int) or not isinstance(length, int):
            raise TextError("can't parse MessageEntity: Can't find field \"offset\"")
        if offset < 0 or offset > end:
            raise TextError(f"entity begins after the end of the text at UTF-16 offset {offset}")
        if length < 0 or offset + length > end:
            raise TextError(
                f"entity beginning at UTF-16 offset {offset} ends after the end of the text "
                f"at UTF-16 offset {offset + length}"
            )
        if offset not in starts:
            raise TextError(f"entity begins in a middle of a UTF-16 symbol at byte offset {offset}")
        if offset + length not in starts:
            raise TextError(f"entity ends in a middle of a UTF-16 symbol at byte offset {offset + length}")


class _Open:
    """An entity whose end was not reached yet."""

    __slots__ = ("at", "extra", "mark", "name", "offset")

    def __init__(self, name: str, mark: str, at: int, offset: int, **extra: str) -> None:
        self.name, self.mark, self.at, self.offset, self.extra = name, mark, at, offset, extra

    def entity(self, end: int) -> dict[str, Any]:
        return {"type": _WIRE[self.name], "offset": self.offset, "length": end - self.offset, **self.extra}


class _MarkdownV2:
    """One pass over the source, with the open entities on a stack."""

    _MARKS = (
        ("```", "Pre"),
        ("__", "Underline"),
        ("||", "Spoiler"),
        ("*", "Bold"),
        ("_", "Italic"),
        ("~", "Strikethrough"),
        ("`", "Code"),
    )

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.out: list[str] = []
        self.units = 0
        self.stack: list[_Open] = []
        self.entities: list[dict[str, Any]] = []

    def read(self) -> tuple[str, list[dict[str, Any]]]:
        while self.at < len(self.source):
            self._step()
        if self.stack and self.stack[-1].name == "BlockQuote":
            self._close(self.stack.pop())
        if self.stack:
            left = self.stack[-1]
            raise TextError(
                f"{_CANNOT}Can't find end of {left.name} entity at byte offset {self._bytes(left.at)}"
            )
        self.entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))
        return "".join(self.out), self.entities

    def _bytes(self, at: int) -> int:
        return len(self.source[:at].encode("utf-8", "surrogatepass"))

    def _put(self, text: str) -> None:
        self.out.append(text)
        self.units += utf16(text)

    def _close(self, opened: _Open) -> None:
        if self.units > opened.offset:
            self.entities.append(opened.entity(self.units))

    def _step(self) -> None:
        here = self.source[self.at]
        following = self.source[self.at + 1 : self.at + 2]
        if here == "\\" and following and ord(following) <= 126:
            self._put(following)
            self.at += 2
        elif self.stack and self.stack[-1].name in ("Code", "Pre", "PreCode"):
            self._inside_code()
        elif here == "\n" and self.stack and self.stack[-1].name == "BlockQuote":
            self._quote_line()
        elif here in _RESERVED:
            self._mark()
        else:
            self._put(here)
            self.at += 1

    def _inside_code(self) -> None:
        opened = self.stack[-1]
        if self.source.startswith(opened.mark, self.at):
            self._close(self.stack.pop())
            self.at += len(opened.mark)
        else:
            self._put(self.source[self.at])
            self.at += 1

    def _quote_line(self) -> None:
        self.at += 1
        if self.source.startswith(">", self.at):
            self._put("\n")
            self.at += 1
        else:
            self._close(self.stack.pop())
            self._put("\n")

    def _mark(self) -> None:
        here = self.source[self.at]
        if self.stack and self.stack[-1].mark == "]" and here == "]":
            self._link()
            return
        for mark, name in self._MARKS:
            if self.source.startswith(mark, self.at):
                self._toggle(mark, name)
                return
        if here == ">" and (self.at == 0 or self.source[self.at - 1] == "\n"):
            self.stack.append(_Open("BlockQuote", ">", self.at, self.units))
            self.at += 1
        elif here == "[":
            self.stack.append(_Open("TextUrl", "]", self.at, self.units))
            self.at += 1
        elif here == "!" and self.source.startswith("[", self.at + 1):
            self.stack.append(_Open("CustomEmoji", "]", self.at, self.units))
            self.at += 2
        else:
            raise TextError(
                f"{_CANNOT}Character '{here}' is reserved and must be escaped with the preceding '\\'"
            )

    def _toggle(self, mark: str, name: str) -> None:
        if self.stack and self.stack[-1].mark == mark:
            self._close(self.stack.pop())
            self.at += len(mark)
            return
        opened = _Open(name, mark, self.at, self.units)
        self.at += len(mark)
        if name == "Pre" and (found := re.match(r"([^\s`]*)\n", self.source[self.at :])):
            if found[1]:
                opened.name, opened.extra = "PreCode", {"language": found[1]}
            self.at += found.end()
        self.stack.append(opened)

    def _link(self) -> None:
        opened = self.stack.pop()
        self.at += 1
        if not self.source.startswith("(", self.at):
            if opened.name == "CustomEmoji":
                raise TextError(f"{_CANNOT}Custom emoji entity must contain a tg://emoji URL")
            return  # TDLib takes the text itself for the address, which is rarely one: no entity then
        start, self.at = self.at, self.at + 1
        target = []
        while self.at < len(self.source) and self.source[self.at] != ")":
            if self.source[self.at] == "\\" and self.at + 1 < len(self.source):
                self.at += 1
            target.append(self.source[self.at])
            self.at += 1
        if self.at >= len(self.source):
            raise TextError(f"{_CANNOT}Can't find end of a URL at byte offset {self._bytes(start)}")
        self.at += 1
        key = "url" if opened.name == "TextUrl" else "custom_emoji_id"
        opened.extra = {key: "".join(target).rpartition("id=")[2] if key != "url" else "".join(target)}
        self._close(opened)


_TOKEN = re.compile(
    r"</?([^\s>]*)((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>|&(?:#\d+|#x[0-9a-fA-F]+|lt|gt|amp|quot);", re.DOTALL
)


def _read_html(source: str) -> tuple[str, list[dict[str, Any]]]:
    out: list[str] = []
    units, at = 0, 0
    stack: list[_Open] = []
    entities: list[dict[str, Any]] = []
    while at < len(source):
        if source[at] not in "<&":
            out.append(source[at])
            units += utf16(source[at])
            at += 1
            continue
        found = _TOKEN.match(source, at)
        offset = len(source[:at].encode("utf-8", "surrogatepass"))
        if found is None:
            if source[at] == "<":
                raise TextError(f"{_CANNOT}Unclosed start tag at byte offset {offset}")
            out.append("&")
            units += 1
            at += 1
            continue
        at = found.end()
        if found[0].startswith("&"):
            plain = html.unescape(found[0])
            out.append(plain)
            units += utf16(plain)
        elif found[0].startswith("</"):
            entities += _end_tag(stack, found[1].lower(), units, offset)
        else:
            stack.append(_start_tag(found[1].lower(), found[2], offset, units))
    if stack:
        raise TextError(f'{_CANNOT}Can\'t find end tag corresponding to start tag "{stack[-1].mark}"')
    entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))
    return "".join(out), entities


def _start_tag(tag: str, attributes: str, offset: int, units: int) -> _Open:
    if tag not in _TAGS:
        raise TextError(f'{_CANNOT}Unsupported start tag "{tag}" at byte offset {offset}')
    if tag == "span" and "tg-spoiler" not in attributes:
        raise TextError(f'{_CANNOT}Tag "span" must have class "tg-spoiler" at byte offset {offset}')
    opened = _Open(_TAGS[tag], tag, offset, units)
    if tag == "a" and (found := re.search(r"href\s*=\s*[\"']?([^\"'\s>]+)", attributes)):
        opened.extra = {"url": html.unescape(found[1])}
    return opened


def _end_tag(stack: list[_Open], tag: str, units: int, offset: int) -> list[dict[str, Any]]:
    if not stack:
        raise TextError(f"{_CANNOT}Unexpected end tag at byte offset {offset}")
    opened = stack.pop()
    if tag not in ("", opened.mark):
        raise TextError(
            f"{_CANNOT}Unmatched end tag at byte offset {offset}, "
            f'expected "</{opened.mark}>", found "</{tag}>"'
        )
    no_target = opened.name == "TextUrl" and not opened.extra
    return [] if units == opened.offset or no_target else [opened.entity(units)]


def _read_markdown(source: str) -> tuple[str, list[dict[str, Any]]]:
    """The legacy mode: marks do not nest, and an unclosed one is refused."""
    out: list[str] = []
    entities: list[dict[str, Any]] = []
    at = 0
    names = {"*": "Bold", "_": "Italic", "`": "Code", "```": "Pre", "[": "TextUrl"}
    while at < len(source):
        here = source[at]
        if here == "\\" and source[at + 1 : at + 2] in ("_", "*", "`", "["):
            out.append(source[at + 1])
            at += 2
            continue
        mark = "```" if source.startswith("```", at) else here
        if mark not in names:
            out.append(here)
            at += 1
            continue
        end = source.find("]" if mark == "[" else mark, at + len(mark))
        if end < 0:
            offset = len(source[:at].encode("utf-8", "surrogatepass"))
            raise TextError(f"{_CANNOT}Can't find end of the entity starting at byte offset {offset}")
        start = utf16("".join(out))
        inner = source[at + len(mark) : end]
        out.append(inner)
        at = end + (1 if mark == "[" else len(mark))
        entity = {"type": _WIRE[names[mark]], "offset": start, "length": utf16(inner)}
        if mark == "[":
            link = re.match(r"\(([^)]*)\)", source[at:])
            if link is None:
                continue
            at += link.end()
            entity["url"] = link[1]
        if inner:
            entities.append(entity)
    return "".join(out), entities
