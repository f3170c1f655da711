"""A reply's Markdown as Telegram messages: plain text plus entities, cut to what one message holds.

Entities are used and not ``parse_mode``: nothing needs escaping, so no text can be refused for its
markup. Each part is cut from the *rendered* text, and entities are clipped to their part, so a code
block that spans two parts is a code block in both (FIELD_REPORTS 12). Lengths and offsets are UTF-16
code units, as the Bot API counts (https://core.telegram.org/bots/api#messageentity).

What the text becomes, in words (the property tests hold it to this):
emphasis marks, link addresses, fence lines and cell borders go; a line break within a paragraph stays
a line break; blocks are one blank line apart, list items one line break; ``- `` becomes ``• ``; runs of
three and more line breaks become one blank line; blanks at line ends go.

The payload is JSON: ``text``, ``entities`` (absent when there are none), ``plain`` (absent when it is
the text itself): what is sent when the platform refuses the formatted one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from hermes.core.errors import Poison
from hermes.core.records import OutgoingPart
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.telegram.markdown import Flow, Span, flow_of

LIMIT = 4096  # UTF-16 units of one message
MARK_ROOM = 64  # kept free in each part for the repeat mark (R18)
MAX_ENTITIES = 100  # Telegram ignores what exceeds this
MAX_MARKDOWN = 24_000  # characters; a longer text is sent as it is, for parsing it would hold the loop
MAX_BRACKETS = 2_000  # likewise: the parser's time grows with the square of unmatched ones

_MARKUP = re.compile(r"[*_`~\[\]<>|&\\#\t\r\0]|^ |^(?:[-+=]|\d{1,9}[.)])", re.MULTILINE)
_LINE_ENDS = re.compile(r" +$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_ATOMS = frozenset({"code", "pre"})  # hold no other entity and are part of none but a quote
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cn"})


def render(text: str) -> tuple[OutgoingPart, ...]:
    """The parts of ``text``, in order. Raises Poison when there is nothing to see in it."""
    text = without_lone_surrogates(text)
    if _is_blank(text):
        raise Poison("the reply has no visible text")
    flow = flow_of_text(text)
    if _is_blank(flow.text):
        flow = Flow(text.strip())
    return tuple(OutgoingPart(_payload(part)) for part in cut(flow, LIMIT - MARK_ROOM))


def flow_of_text(text: str) -> Flow:
    """``text`` rendered; what holds no markup is not parsed at all."""
    if len(text) > MAX_MARKDOWN or text.count("[") > MAX_BRACKETS:
        return Flow(text.strip())
    if _MARKUP.search(text) is not None:
        return flow_of(text)
    if "\n" in text:
        text = _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("", text))
    return Flow(text.strip())


def cut(flow: Flow, limit: int) -> list[Flow]:
    """``flow`` in parts of at most ``limit`` UTF-16 units, spans clipped; no part is blank."""
    text = flow.text
    if len(text) <= limit and (text.isascii() or units(text) <= limit):
        return [_clip(flow, 0, len(text))]
    spans = sorted(flow.spans, key=lambda s: s.start)
    parts: list[Flow] = []
    start = 0
    while start < len(text):
        end = _part_end(text, start, limit)
        part = _clip(Flow(text, tuple(s for s in spans if s.start < end and s.end > start)), start, end)
        if not _is_blank(part.text):
            parts.append(part)
        start = end
        while start < len(text) and text[start] == "\n":
            start += 1
    return parts


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _part_end(text: str, start: int, limit: int) -> int:
    """Where a part that begins at ``start`` ends: paragraph, line, word, and only then anywhere."""
    end = _reach(text, start, limit)
    if end >= len(text):
        return len(text)
    least = start + (end - start) // 2
    for separator in ("\n\n", "\n", " "):
        found = text.rfind(separator, least, end + 1)
        if found > start:
            return found + (separator == " ")
    return _whole_character(text, least, end)


def _reach(text: str, start: int, limit: int) -> int:
    """The furthest end so that ``text[start:end]`` holds at most ``limit`` units."""
    end = min(len(text), start + limit)
    window = text[start:end]
    excess = units(window) - limit
    while excess > 0:  # each astral character given back frees two units
        end -= (excess + 1) // 2
        excess = units(text[start:end]) - limit
    return end


def _whole_character(text: str, least: int, end: int) -> int:
    """The last position up to ``end`` that is not inside an emoji sequence or a combined character."""
    position = end
    while position > least and _continues(text, position):
        position -= 1
    return position if position > least else end


def _continues(text: str, position: int) -> bool:
    """True when the character at ``position`` belongs to the one before it."""
    here, before = text[position], text[position - 1]
    return (
        before == "\u200d"
        or here == "\u200d"
        or unicodedata.category(here) in {"Mn", "Me", "Mc", "Cf"}
        or "\U0001f3fb" <= here <= "\U0001f3ff"
        or (_is_flag_half(here) and _flag_halves_before(text, position) % 2 == 1)
    )


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_halves_before(text: str, position: int) -> int:
    first = position
    while first > 0 and _is_flag_half(text[first - 1]):
        first -= 1
    return position - first


def _clip(flow: Flow, start: int, end: int) -> Flow:
    """The part of ``flow`` between two positions, without blanks at its end."""
    text = flow.text[start:end].rstrip()
    size = len(text)
    spans = (Span(max(s.start - start, 0), min(s.end - start, size), s.kind, s.extra) for s in flow.spans)
    return Flow(text, tuple(s for s in spans if s.start < s.end))


def _payload(part: Flow) -> str:
    body: dict[str, Any] = {"text": part.text}
    if part.spans:
        entities = _entities(part)
        if entities:
            body["entities"] = entities
        plain = _plain(part)
        if plain != part.text:
            body["plain"] = plain
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _entities(part: Flow) -> list[dict[str, Any]]:
    """Entities as the Bot API takes them: properly nested, inside the text, none blank."""
    atoms = [s for s in part.spans if s.kind in _ATOMS]
    spans = [s for span in part.spans for s in _around(span, atoms) if part.text[s.start : s.end].strip()]
    spans.sort(key=lambda s: (s.start, -s.end, s.kind != "blockquote"))  # a quote is always outermost
    offset = _offsets(part.text)
    entities: list[dict[str, Any]] = []
    reached: dict[str, int] = {}  # bold within bold is one bold
    for span in spans:
        if span.end <= reached.get(span.kind, 0) or len(entities) == MAX_ENTITIES:
            continue
        reached[span.kind] = span.end
        at = offset(span.start)
        entity: dict[str, Any] = {"type": span.kind, "offset": at, "length": offset(span.end) - at}
        if span.extra is not None:
            entity["url" if span.kind == "text_link" else "language"] = span.extra
        entities.append(entity)
    return entities


def _around(span: Span, atoms: Sequence[Span]) -> Iterable[Span]:
    """``span`` without the code in it: code holds no other entity and only a quote may hold code."""
    if span.kind in _ATOMS or span.kind == "blockquote" or not atoms:
        return (span,)
    pieces, start = [], span.start
    for atom in sorted(atoms, key=lambda s: s.start):
        if atom.end <= start or atom.start >= span.end:
            continue
        if atom.start > start:
            pieces.append(Span(start, atom.start, span.kind, span.extra))
        start = atom.end
    if start < span.end:
        pieces.append(Span(start, span.end, span.kind, span.extra))
    return pieces


def _offsets(text: str) -> Any:
    """A function from code point position to UTF-16 position in ``text``."""
    if text.isascii() or max(text) <= "\uffff":
        return int
    table = [0]
    for character in text:
        table.append(table[-1] + (2 if character > "\uffff" else 1))
    return table.__getitem__


def _plain(part: Flow) -> str:
    """The text with the addresses that formatting would have hidden, where there is room for them."""
    pieces, position = [], 0
    for link in sorted((s for s in part.spans if s.kind == "text_link"), key=lambda s: s.start):
        pieces += [part.text[position : link.end], f" ({link.extra})"]
        position = link.end
    plain = "".join(pieces) + part.text[position:]
    return plain if units(plain) <= LIMIT - MARK_ROOM else part.text


def _is_blank(text: str) -> bool:
    return not text.strip() or all(unicodedata.category(c) in _INVISIBLE for c in text)
