"""Where long text is cut (FIELD_REPORTS 12). Each part stands alone: within the limit, fences balanced.

Cuts are made, in this order of preference, between paragraphs, lines, sentences, words, graphemes. A code
fence that is cut is closed in one part and opened again, with its info string, in the next.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

MIN_LIMIT = 4
"""No smaller limit is accepted: one code point may take four bytes."""
_WORTH_IT = 0.4  # a border is only preferred if the part it ends is at least so full
_LOOK_BACK = 512  # code points of one grapheme at most; longer ones are cut
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]»”’]*\s|(?<=[。！？])")


class Units(StrEnum):
    """How a platform counts: Telegram in UTF-16 code units, Discord in characters, others in UTF-8 bytes."""

    UTF16 = "utf16"
    CHARS = "chars"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Part:
    """One part; ``text`` is ``source[start:end]``, between a reopened and a closing fence where cut."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Fence:
    marker: str
    line: str  # as in the source: marker and info string
    at: int  # where its line begins in the source; -1 in a later part

    def closed_by(self, marker: str, rest: str) -> bool:
        return marker[0] == self.marker[0] and len(marker) >= len(self.marker) and not rest.strip()


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def size_of(text: str, units: Units) -> int:
    """Length as the platform counts it."""
    if units is Units.CHARS or text.isascii():
        return len(text)
    return utf16_len(text) if units is Units.UTF16 else len(text.encode("utf-8", "surrogatepass"))


def chunk(text: str, limit: int, *, units: Units = Units.UTF16) -> list[str]:
    """The parts of a text, in order, each non-blank and at most `limit` units.

    A text that fits is returned as it is; a blank one gives no part. Raises ValueError for a limit below 4.
    """
    return [part.text for part in split(text, limit, units=units)]


def split(text: str, limit: int, *, units: Units = Units.UTF16) -> list[Part]:
    """As `chunk`, with the source span of each part.

    Spans are in order and do not overlap. What lies between them is white space and closing fences only, so
    no other character of the source is lost or doubled.
    """
    if limit < MIN_LIMIT:
        raise ValueError(f"chunk: limit is {limit}, must be at least {MIN_LIMIT}")
    if not text.strip():
        return []
    if size_of(text, units) <= limit:
        return [Part(text, 0, len(text))]
    parts: list[Part] = []
    at, fence = 0, None
    while at < len(text):
        part, at, fence = _next_part(text, at, fence, limit, units)
        if part is not None:
            parts.append(part)
    return parts


def _next_part(
    text: str, at: int, fence: _Fence | None, limit: int, units: Units
) -> tuple[Part | None, int, _Fence | None]:
    """The part that begins at `at`, where the next one begins, and the fence that is open there."""
    opening = f"{fence.line}\n" if fence else ""
    if 2 * size_of(opening, units) + 8 > limit:
        opening, fence = "", None  # no room for balance: plain pieces
    budget = limit - size_of(opening, units)
    reserve = 0
    while True:
        room = budget - reserve
        end = _furthest(text, at, room, units)
        if end < len(text):
            end = _best_cut(text, at, end, fence)
        open_at_end = _fence_at(text, at, end, fence)
        closing = _closing(text[at:end], open_at_end)
        needed = size_of(closing, units)
        if needed > reserve and size_of(text[at:end], units) + needed > budget:
            if needed + MIN_LIMIT > budget:
                closing, open_at_end = "", None
                break
            reserve = needed
            continue
        break
    body = text[at:end] if open_at_end else text[at:end].rstrip()
    part = Part(opening + body + closing, at, at + len(body)) if body.strip() else None
    after, still_open = _resume(text, end, open_at_end)
    return part, after, still_open


def _closing(body: str, fence: _Fence | None) -> str:
    if fence is None:
        return ""
    return fence.marker if body.endswith("\n") else f"\n{fence.marker}"


def _resume(text: str, end: int, fence: _Fence | None) -> tuple[int, _Fence | None]:
    """Where the next part begins: behind white space, and behind the fence's own end if that is next."""
    if fence is None:
        while end < len(text) and text[end].isspace():
            end += 1
        return end, None
    begin = end + 2 if text.startswith("\r\n", end) else end + text.startswith("\n", end)
    at_line_start = begin == 0 or text[begin - 1 : begin] == "\n"
    found = _FENCE.match(text, begin) if at_line_start else None
    if found and fence.closed_by(*found.groups()):
        return _resume(text, found.end(), None)
    return begin, _Fence(fence.marker, fence.line, -1)


def _fence_at(text: str, start: int, end: int, fence: _Fence | None) -> _Fence | None:
    """The fence that is open at `end`, given the one that is open at `start`."""
    for found in _FENCE.finditer(text, start, end):
        if found.start() and text[found.start() - 1] != "\n":
            continue  # `start` lies inside a line
        marker, rest = found.groups()
        if fence is None:
            if marker[0] == "~" or "`" not in rest:
                fence = _Fence(marker, found.group().strip(), found.start())
        elif fence.closed_by(marker, rest):
            fence = None
    return fence


def _furthest(text: str, at: int, room: int, units: Units) -> int:
    """The largest end with ``text[at:end]`` within `room` units; at least one code point further."""
    window = text[at : at + room]
    if size_of(window, units) > room:
        weigh: Callable[[str], int] = _utf16_weight if units is Units.UTF16 else _utf8_weight
        count = sum(1 for total in accumulate(map(weigh, window)) if total <= room)
        window = window[:count]
    return min(len(text), at + max(1, len(window)))


def _utf16_weight(char: str) -> int:
    return 2 if char > "\uffff" else 1


def _utf8_weight(char: str) -> int:
    return 1 if char < "\x80" else 2 if char < "\u0800" else 3 if char <= "\uffff" else 4


def _best_cut(text: str, at: int, end: int, fence: _Fence | None) -> int:
    """The best place to cut in (at, end]."""
    cut = _border(text, at, end, in_code=_fence_at(text, at, end, fence) is not None)
    line = text.rfind("\n", at, cut) + 1 or (at if at == 0 or text[at - 1] == "\n" else -1)
    found = _FENCE.match(text, line) if line >= at else None
    if found and line < cut < found.end() and line > at:
        cut = line  # never inside a line that opens or closes a fence
    opened = _fence_at(text, at, cut, fence)
    if opened and opened.at > at and not text[opened.at : cut].strip().removeprefix(opened.line):
        cut = opened.at  # an opening with nothing behind it belongs to the next part
    return cut if cut > at else end


def _border(text: str, at: int, end: int, *, in_code: bool) -> int:
    least = at + max(1, int((end - at) * _WORTH_IT))
    if not in_code:
        paragraph = text.rfind("\n\n", least, end + 2)
        if paragraph >= least:
            return min(paragraph, end)
    line = text.rfind("\n", at + 1 if in_code else least, end + 1)
    if line > at + 1 and text[line - 1] == "\r":
        line -= 1
    if line > at:
        return line
    if not in_code:
        sentences = [m.end() for m in _SENTENCE.finditer(text, least, end + 1) if m.end() <= end + 1]
        if sentences:
            return min(sentences[-1], end)
    for index in range(end, at, -1):
        if text[index].isspace() and text[at:index].strip():
            return index
        if end - index > 2 * _LOOK_BACK:
            break
    return _grapheme_border(text, at, end)


def _grapheme_border(text: str, at: int, end: int) -> int:
    """The last border between graphemes in (at, end]; `end` where there is none near."""
    for index in range(end, max(at, end - _LOOK_BACK), -1):
        if is_border(text, index, at):
            return index
    return end


def is_border(text: str, index: int, start: int = 0) -> bool:
    """Whether a reader sees two characters at `index`: no combining mark, ZWJ sequence, flag or pair is cut.

    After UAX #29 (GB3, GB6–GB9a, GB11–GB13), simplified: nothing is ever cut on either side of a joiner.
    `start` is a border already known: nothing before it is looked at.
    """
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before.isascii() and after.isascii():
        return not (before == "\r" and after == "\n")
    if before == "\u200d" or _extends(after):
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        run = 0
        while run < index - start and _is_flag_letter(text[index - 1 - run]):
            run += 1
        return run % 2 == 0
    return not _is_syllable(before, after)


def _extends(char: str) -> bool:
    return (
        char == "\u200d"
        or char == "\u200c"
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_syllable(before: str, after: str) -> bool:
    """Hangul: a leading consonant and what follows it, a vowel, a trailing consonant."""
    leading = "\u1100" <= before <= "\u115f"
    if leading and ("\u1100" <= after <= "\u11a7" or "\uac00" <= after <= "\ud7a3"):
        return True
    vowel = "\u1160" <= before <= "\u11a7" or "\uac00" <= before <= "\ud7a3"
    if vowel and "\u11a8" <= after <= "\u11ff":
        return True
    open_syllable = "\uac00" <= before <= "\ud7a3" and (ord(before) - 0xAC00) % 28 == 0
    return (open_syllable or "\u1160" <= before <= "\u11a7") and "\u1160" <= after <= "\u11a7"
