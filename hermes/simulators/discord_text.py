"""How Discord's client reads a message: its rules, one expression each, the first that matches wins.

The rules are simple-markdown's with Discord's own expressions (as published in its open-source parsers): code before
escapes, escapes before links, ``em`` and ``strong`` by the longer match. Read strictly, a mark that is not escaped
and yet begins nothing is an error, for a writer that means what it says leaves none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["Node", "TextError", "read_text", "shown"]

LIMIT = 2000
_CODE_BLOCK = re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)
_CODE = re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)")
_ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
_AUTOLINK = re.compile(r"<(https?://\S+?)>")
_URL = re.compile(r"(?:https?|steam)://[^\s<]+[^<.,:;\"'\]\s]")
_LINK = re.compile(r"\[((?:\[[^\]]*\]|[^\[\]])*)\]\(\s*<?((?:\([^)]*\)|[^\s\\()])*?)>?\s*\)")
_EM = re.compile(
    r"_((?:__|\\[\s\S]|[^\\_])+?)_(?![A-Za-z0-9_])"
    r"|\*(?=\S)((?:\*\*|\s+(?:[^*\s]|\*\*)|[^\s*])+?)\*(?!\*)"
)
_STRONG = re.compile(r"\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)")
_UNDERLINE = re.compile(r"__((?:\\[\s\S]|[^\\])+?)__(?!_)")
_STRIKE = re.compile(r"~~([\s\S]+?)~~(?!_)")
_SPOILER = re.compile(r"\|\|([\s\S]+?)\|\|")
_MENTION = re.compile(r"<(?:@[!&]?\d+|#\d+|a?:\w+:\d+|t:-?\d+(?::\w)?|/[^>]+:\d+|id:\w+)>|@everyone|@here")
_QUOTE = re.compile(r"(?: *> [^\n]*(?:\n|$))+")
_HEADING = re.compile(r"(#{1,3}) +([^\n]+)(?:\n|$)")
_SMALL = re.compile(r"-# +([^\n]+)(?:\n|$)")
_ITEM = re.compile(r"( *)([*-]|\d+\.) +([^\n]*)(?:\n|$)")
_BARE_ITEM = re.compile(r"( *)([*-]|\d+\.)(?:\n|$)")
_LONG_QUOTE = re.compile(r" *>>> ")


class TextError(Exception):
    """What a strict reader refuses, with the place in the message."""


@dataclass(slots=True)
class Node:
    """``kind``: text, code, pre, bold, italic, underline, strike, spoiler, link, quote, heading, small, item.
    ``text`` of the leaves; ``extra``: an address, a language, a heading's level, an item's marker; ``depth`` of
    an item."""

    kind: str
    text: str = ""
    extra: str = ""
    children: list[Node] = field(default_factory=list)
    depth: int = 0


def read_text(source: str) -> list[Node]:
    """The message as it is shown. Raises TextError for what is too long, empty or not meant to be read so."""
    if len(source.encode("utf-16-le", "surrogatepass")) // 2 > LIMIT:
        raise TextError("Must be 2000 or fewer in length.")
    if not source.strip():
        raise TextError("Cannot send an empty message")
    return list(_Reader(source, quoted=False).blocks())


def shown(nodes: Sequence[Node]) -> str:
    """The text that a reader sees, marks gone; each block on a line of its own."""
    pieces = []
    for node in nodes:
        inner = node.text or shown(node.children)
        match node.kind:
            case "item":
                pieces.append(f"\n{'•' if node.extra in '-*' else node.extra} {inner}\n")
            case "pre" | "quote" | "heading" | "small":
                pieces.append(f"\n{inner}\n")
            case _:
                pieces.append(inner)
    return "".join(pieces)


class _Reader:
    def __init__(self, source: str, *, quoted: bool) -> None:
        self.source = source
        self.quoted = quoted

    def blocks(self) -> Iterator[Node]:
        at = 0
        while at < len(self.source):
            found = self._block(at)
            if found is not None:
                node, at = found
                yield node
                continue
            end = self._line_end(at)
            yield from _Inline(self.source[at:end]).nodes(frozenset())
            at = end

    def _line_end(self, at: int) -> int:
        """Where the line ends, with its break; code that begins in it and goes on is a part of it."""
        end = self.source.find("\n", at)
        end = len(self.source) if end < 0 else end + 1
        fence = self.source.find("```", at, end)
        while fence >= 0 and self.source[fence - 1 : fence] == "\\":
            fence = self.source.find("```", fence + 3, end)
        if fence < 0 or (found := _CODE_BLOCK.match(self.source, fence)) is None:
            return end
        after = found.end()
        return after + 1 if self.source[after : after + 1] == "\n" else after

    def _block(self, at: int) -> tuple[Node, int] | None:
        if _LONG_QUOTE.match(self.source, at):
            raise TextError(f"a quote without an end at {at}")
        if found := _QUOTE.match(self.source, at):
            if self.quoted:
                raise TextError("a quote within a quote")
            inner = re.sub(r"^ *> ", "", found[0], flags=re.MULTILINE)
            return Node("quote", children=list(_Reader(inner, quoted=True).blocks())), found.end()
        if found := _HEADING.match(self.source, at):
            inside = list(_Inline(found[2]).nodes(frozenset()))
            return Node("heading", extra=str(len(found[1])), children=inside), found.end()
        if found := _SMALL.match(self.source, at):
            return Node("small", children=list(_Inline(found[1]).nodes(frozenset()))), found.end()
        found = _ITEM.match(self.source, at) or _BARE_ITEM.match(self.source, at)
        if found is None:
            return None
        inside = list(_Inline(found[3] if len(found.groups()) > 2 else "").nodes(frozenset()))
        return Node("item", extra=found[2], depth=len(found[1]) // 2, children=inside), found.end()


class _Inline:
    """One stretch of text; ``within`` are the marks that hold around it."""

    def __init__(self, source: str) -> None:
        self.source = source

    def nodes(self, within: frozenset[str]) -> Iterator[Node]:
        at, text = 0, ""
        while at < len(self.source):
            found = self._mark(at, within)
            if found is None:
                self._literal(at)
                text += self.source[at]
                at += 1
                continue
            node, at = found
            if node.kind == "text":
                text += node.text
                continue
            if text:
                yield Node("text", text)
                text = ""
            yield node
        if text:
            yield Node("text", text)

    def _mark(self, at: int, within: frozenset[str]) -> tuple[Node, int] | None:
        source = self.source
        if found := _CODE_BLOCK.match(source, at):
            return Node("pre", found[2], found[1] or ""), found.end()
        if found := _CODE.match(source, at):
            return Node("code", re.sub(r"^ (?= *`)|(?<=`) $", "", found[2])), found.end()
        if found := _ESCAPE.match(source, at):
            return Node("text", found[1]), found.end()
        if found := _AUTOLINK.match(source, at):
            return Node("link", found[1], found[1]), found.end()
        if _MENTION.match(source, at) and source[at] == "<":
            raise TextError(f"a mention: {source[at : at + 30]!r}")
        if "link" not in within:
            if found := _URL.match(source, at):
                return Node("link", found[0], found[0]), found.end()
            if (found := _LINK.match(source, at)) and re.match(r"https?://", found[2]):
                return self._inside("link", found[1], within, found[2]), found.end()
        return self._styled(at, within)

    def _styled(self, at: int, within: frozenset[str]) -> tuple[Node, int] | None:
        em, strong = _EM.match(self.source, at), _STRONG.match(self.source, at)
        under = _UNDERLINE.match(self.source, at)
        length = [len(one[0]) if one else 0 for one in (em, strong, under)]
        best = max(length)
        if best and em and length[0] == best:
            return self._inside("italic", em[1] or em[2], within), em.end()
        if best and strong and length[1] == best:
            return self._inside("bold", strong[1], within), strong.end()
        if best and under:
            return self._inside("underline", under[1], within), under.end()
        if found := _STRIKE.match(self.source, at):
            return self._inside("strike", found[1], within), found.end()
        if found := _SPOILER.match(self.source, at):
            return self._inside("spoiler", found[1], within), found.end()
        return None

    @staticmethod
    def _inside(kind: str, inner: str, within: frozenset[str], extra: str = "") -> Node:
        if kind in within:
            raise TextError(f"{kind} within {kind}: {inner!r}")
        return Node(kind, extra=extra, children=list(_Inline(inner).nodes(within | {kind})))

    def _literal(self, at: int) -> None:
        """A character that stands for itself, unless it is a mark that ought to have been escaped."""
        here, source = self.source[at], self.source
        if here in "*_`\\" or source.startswith(("~~", "||", "]("), at):
            raise TextError(f"a mark that begins nothing at {at}: {source[max(0, at - 20) : at + 20]!r}")
