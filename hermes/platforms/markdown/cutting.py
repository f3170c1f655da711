"""Cuts leaves into parts that hold what a platform's message holds: between leaves, else within one.

Within a leaf: after a line, a sentence, a word; never within what is seen as one character, and never within a link,
an address or a span of code that would fit a part. What a leaf weighs is what its own platform writes for it, so no
part is ever too long, and each part's marks are opened and closed in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hermes.platforms.markdown.document import is_blank
from hermes.platforms.markdown.tree import Kind, Leaf, Run, Style
from hermes.policy.chunking import is_border

Weight = tuple[int, ...]
_WORTH_IT = 0.4  # a border is only preferred if the part that it ends is at least so full
_LEADING = 3  # headings and bare items that go with what follows them
_LOOK_BACK = 512  # code points of one character at most; longer ones are cut
_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]»”’]*\s|(?<=[。！？])")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Measure:
    """``limits``: what a part holds, the first counts at least one for each character. ``weigh``: of a leaf alone;
    ``gap``: of one line break between two."""

    limits: Weight
    weigh: Callable[[Leaf], Weight]
    gap: Weight


def cut(leaves: Sequence[Leaf], measure: Measure) -> list[list[Leaf]]:
    """The parts, in order; none is blank, each is within the limits."""
    packer = _Packer(measure, deque(leaves))
    while packer.waiting:
        packer.step()
    packer.close()
    return [
        part for part in packer.parts if not all(is_blank(leaf.text) and not leaf.marker for leaf in part)
    ]


class _Packer:
    def __init__(self, measure: Measure, waiting: deque[Leaf]) -> None:
        self.measure = measure
        self.waiting = waiting
        self.parts: list[list[Leaf]] = []
        self.part: list[Leaf] = []
        self.used: Weight = (0,) * len(measure.limits)

    def step(self) -> None:
        leaf = self.waiting.popleft()
        leaf = replace(leaf, gap=max(1, leaf.gap) if self.part else 0)
        room = self._room(leaf.gap)
        weight = self._weight(leaf, room[0])
        if weight is not None and _fits(weight, room):
            self._put(leaf, weight)
            return
        limit = self.measure.limits[0]
        worth = room[0] >= limit * (1 - _WORTH_IT) or self._is_long(leaf)
        if self.part and (not worth or room[0] < limit // 5):
            self.waiting.appendleft(leaf)
            self.close()
            return
        end = _end(leaf, room, self.measure, fresh=not self.part)
        if end == 0 and self.part:
            self.waiting.appendleft(leaf)
            self.close()
            return
        head, tail = split(leaf, end or _first_character(leaf))
        self._put(head, self.measure.weigh(head))
        if tail is not None:
            self.waiting.appendleft(tail)
        self.close()

    def close(self) -> None:
        """Ends the part; a heading, or an item's bare beginning, goes with what follows it."""
        kept = self.part
        for _ in range(_LEADING):
            if self.waiting and len(kept) > 1 and (kept[-1].kind is Kind.HEADING or not kept[-1].runs):
                self.waiting.appendleft(kept.pop())
        if kept:
            self.parts.append(kept)
        self.part, self.used = [], (0,) * len(self.used)

    def _put(self, leaf: Leaf, weight: Weight) -> None:
        self.part.append(leaf)
        self.used = tuple(
            u + w + leaf.gap * g for u, w, g in zip(self.used, weight, self.measure.gap, strict=True)
        )

    def _room(self, gap: int) -> Weight:
        return tuple(
            limit - u - gap * g
            for limit, u, g in zip(self.measure.limits, self.used, self.measure.gap, strict=True)
        )

    def _weight(self, leaf: Leaf, room: int) -> Weight | None:
        """What the leaf weighs; None when it has more characters than there is room for."""
        return None if _longer(leaf, room) else self.measure.weigh(leaf)

    def _is_long(self, leaf: Leaf) -> bool:
        weight = self._weight(leaf, self.measure.limits[0])
        return weight is None or not _fits(weight, self.measure.limits)


def _fits(weight: Weight, room: Weight) -> bool:
    return all(w <= r for w, r in zip(weight, room, strict=True))


def _longer(leaf: Leaf, limit: int) -> bool:
    total = 0
    for run in leaf.runs:
        total += len(run.text)
        if total > limit:
            return True
    return False


def split(leaf: Leaf, at: int) -> tuple[Leaf, Leaf | None]:
    """The leaf up to a position of its text, and the rest; blanks at the cut go, of code one line break."""
    head, index, left = _head(leaf, at)
    tail = list(leaf.runs[index:])
    if left:
        tail[0] = replace(tail[0], text=tail[0].text[left:])
    if leaf.verbatim:
        first, last = _text(head), tail[0].text if tail else ""
        head = [Run(first.removesuffix("\n"))]
        tail = [Run(last[1:] if last.startswith("\n") and not first.endswith("\n") else last)]
    else:
        head, tail = _stripped_end(head), _stripped_start(tail)
    rest = replace(leaf, runs=tuple(tail), marker=None, gap=1) if tail and tail[0].text else None
    return replace(leaf, runs=tuple(head)), rest


def _head(leaf: Leaf, at: int) -> tuple[list[Run], int, int]:
    """The runs up to a position, the first run behind it, and how much of that is before it."""
    head: list[Run] = []
    for index, run in enumerate(leaf.runs):
        if at < len(run.text):
            if at:
                head.append(replace(run, text=run.text[:at]))
            return head, index, at
        head.append(run)
        at -= len(run.text)
    return head, len(leaf.runs), 0


def _text(runs: Sequence[Run]) -> str:
    return "".join(run.text for run in runs)


def _stripped_end(runs: list[Run]) -> list[Run]:
    while runs and not (kept := runs[-1].text.rstrip()):
        runs.pop()
    if runs and Style.CODE not in runs[-1].style:
        runs[-1] = replace(runs[-1], text=kept)
    return runs


def _stripped_start(runs: list[Run]) -> list[Run]:
    blank = 0
    while blank < len(runs) and not runs[blank].text.strip():
        blank += 1
    runs = runs[blank:]
    if runs and Style.CODE not in runs[0].style:
        runs[0] = replace(runs[0], text=runs[0].text.lstrip())
    return runs


def _end(leaf: Leaf, room: Weight, measure: Measure, *, fresh: bool) -> int:
    """Where to cut so that what comes before is within ``room``; 0 where nothing is."""
    window = _window(leaf, max(0, room[0]))
    end = _border(leaf, window, min(len(window), max(0, room[0])), fresh=fresh)
    while end:
        weight = measure.weigh(replace(leaf, runs=tuple(_head(leaf, end)[0])))
        if _fits(weight, room):
            return end
        share = min((r / w for w, r in zip(weight, room, strict=True) if w), default=0.0)
        end = _border(leaf, window, min(end - 1, int(end * share)), fresh=fresh)
    return 0


def _window(leaf: Leaf, size: int) -> str:
    pieces: list[str] = []
    for run in leaf.runs:
        pieces.append(run.text[: size + 1])
        size -= len(run.text)
        if size < 0:
            break
    return "".join(pieces)


def _border(leaf: Leaf, text: str, end: int, *, fresh: bool) -> int:
    """The best place to cut at or before ``end``, which is within the leaf; 0: not in this part, unless ``fresh``."""
    if end <= 0:
        return 0
    least = 1 if leaf.verbatim else max(1, int(end * _WORTH_IT))
    line = text.rfind("\n", least, end + 1)
    if line > 0:
        return line
    atoms = _Atoms(leaf, text, end)
    if not leaf.verbatim:
        sentences = [found.end() for found in _SENTENCE.finditer(text, least, end) if found.end() <= end]
        for at in reversed(sentences):
            if atoms.before(at) == at:
                return at
    at = end
    while at >= least:
        if text[at : at + 1].isspace() and text[:at].strip():
            whole = atoms.before(at)
            if whole == at:
                return at
            at = whole
        else:
            at -= 1
    at = end if leaf.verbatim else atoms.before(end)
    return 0 if at == 0 and not fresh else _whole_character(text, at or end)


class _Atoms:
    """What is not to be cut: links, addresses, code."""

    def __init__(self, leaf: Leaf, text: str, end: int) -> None:
        self._text = text
        self._starts: list[int] = []
        self._ends: list[int] = []
        start = link = 0
        for run in leaf.runs:
            stop = start + len(run.text)
            if run.link and run.link == link:
                self._ends[-1] = stop
            elif run.link or Style.CODE in run.style:
                self._starts.append(start)
                self._ends.append(stop)
            link = run.link
            start = stop
            if start > end and not run.link:
                break

    def before(self, at: int) -> int:
        """``at``, or where the atom begins that it lies within."""
        index = bisect_left(self._starts, at) - 1
        if index >= 0 and at < self._ends[index]:
            return self._starts[index]
        text = self._text
        word = max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1
        if word < at < len(text) and not text[at].isspace() and _ADDRESS.match(text, word):
            return word
        return at


def _whole_character(text: str, end: int) -> int:
    for at in range(end, max(0, end - _LOOK_BACK), -1):
        if is_border(text, at):
            return at
    return end


def _first_character(leaf: Leaf) -> int:
    text = _window(leaf, _LOOK_BACK)
    return next((at for at in range(1, len(text)) if is_border(text, at)), max(1, len(text)))
