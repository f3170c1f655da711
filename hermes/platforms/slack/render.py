"""A reply's Markdown as Slack messages: mrkdwn, cut to what one message should hold.

Slack recommends 4,000 characters a message and cuts at 40,000; what is counted are the characters of the mrkdwn,
entities written out. Blocks are never cut if they fit a message; a longer one is cut between lines, words, and only
then anywhere, each piece with its own marks; a code block that is cut is closed and opened again.

The payload is JSON: ``text`` (mrkdwn), and ``plain`` (absent when it is the same): what is sent when Slack refuses
the markup.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence

from hermes.core.errors import Poison
from hermes.core.records import OutgoingPart
from hermes.core.transcript import without_lone_surrogates
from hermes.platforms.slack.mrkdwn import UNFENCED, Block, Run, blocks_of, escaped, mrkdwn

__all__ = ["LIMIT", "escaped", "render"]

LIMIT = 3_900
MARK_ROOM = 64  # kept free in each part for the repeat mark (R18)
MAX_MARKDOWN = 24_000  # characters; a longer text is sent as it is, for parsing it would hold the loop
MAX_BRACKETS = 2_000  # likewise: the parser's time grows with the square of unmatched ones
_ROOM = LIMIT - MARK_ROOM
_FENCES = len("```\n\n```")
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cn"})


def render(text: str) -> tuple[OutgoingPart, ...]:
    """The parts of ``text``, in order. Raises Poison when there is nothing to see in it."""
    text = without_lone_surrogates(text).replace("\0", "")
    if _is_blank(text):
        raise Poison("the reply has no visible text")
    pieces = list(_pieces(_blocks(text)))
    if all(_is_blank(plain) for _, plain, _ in pieces):
        pieces = list(_pieces([Block([Run(text.strip())])]))
    return tuple(OutgoingPart(_payload(shown, plain)) for shown, plain in _packed(pieces))


def _blocks(text: str) -> list[Block]:
    if len(text) > MAX_MARKDOWN or text.count("[") > MAX_BRACKETS:
        return [Block([Run(text.strip())])]
    return blocks_of(text)


def _pieces(blocks: Sequence[Block]) -> Iterator[tuple[str, str, bool]]:
    """Each block as (mrkdwn, plain, tight), cut to what fits a message."""
    for block in blocks:
        tight = block.tight
        cut = _code(block) if block.code is not None else _lines(block)
        for shown, plain in cut:
            yield shown, plain, tight
            tight = True


def _code(block: Block) -> Iterator[tuple[str, str]]:
    lines: list[str] = []
    size = 0
    for line in _cut_lines((block.code or "").replace("```", UNFENCED).split("\n"), _ROOM - _FENCES):
        length = len(escaped(line)) + 1
        if lines and size + length > _ROOM - _FENCES:
            yield _fenced(lines), "\n".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += length
    yield _fenced(lines), "\n".join(lines)


def _fenced(lines: Sequence[str]) -> str:
    return "```\n" + escaped("\n".join(lines)) + "\n```"


def _cut_lines(lines: Sequence[str], limit: int) -> Iterator[str]:
    for line in lines:
        while len(escaped(line)) > limit:
            end = _fitting(line, limit)
            yield line[:end]
            line = line[end:]
        yield line


def _fitting(text: str, limit: int) -> int:
    """The longest head that is at most ``limit`` when written out, not cut inside a combined character."""
    end = min(len(text), limit)
    while len(escaped(text[:end])) > limit:
        end -= max(1, (len(escaped(text[:end])) - limit) // 5)
    least = end // 2
    while end > least and end < len(text) and (
        unicodedata.category(text[end]) in {"Mn", "Me", "Mc", "Cf"} or text[end - 1] == "\u200d"
    ):
        end -= 1
    return max(1, end)


def _lines(block: Block) -> Iterator[tuple[str, str]]:
    """A block of runs: whole if it fits, else in pieces of whole lines, words or characters."""
    whole = _led(block, mrkdwn(block.runs))
    if len(whole) <= _ROOM:
        yield whole, _led(block, "".join(run.text for run in block.runs))
        return
    room = _ROOM - 200
    taken: list[Run] = []
    size = 0
    for run in _words(block.runs, room):
        length = len(mrkdwn([run])) + len(block.rest) * run.text.count("\n")
        if taken and size + length > room:
            yield _led(block, mrkdwn(_joined(taken))), _led(block, "".join(one.text for one in taken))
            taken, size = [], 0
        taken.append(run)
        size += length
    yield _led(block, mrkdwn(_joined(taken))), _led(block, "".join(one.text for one in taken))


def _words(runs: Sequence[Run], limit: int) -> Iterator[Run]:
    """Runs of one word with the blank after it; a word that is too long is cut."""
    for run in runs:
        if run.url is not None and len(mrkdwn([run])) <= limit:
            yield run
            continue
        url = run.url if run.url is not None and len(run.url) < limit // 2 else None
        for word in run.text.replace("\n", "\n\x00").replace(" ", " \x00").split("\x00"):
            rest = word
            while len(escaped(rest)) > limit // 3:
                end = _fitting(rest, limit // 3)
                yield Run(rest[:end], run.styles, url)
                rest = rest[end:]
            if rest:
                yield Run(rest, run.styles, url)


def _joined(runs: Sequence[Run]) -> list[Run]:
    """Neighbours of one style are one run again."""
    found: list[Run] = []
    for run in runs:
        if found and found[-1].styles == run.styles and found[-1].url == run.url and "\n" not in found[-1].text:
            found[-1] = Run(found[-1].text + run.text, run.styles, run.url)
        else:
            found.append(run)
    return found


def _led(block: Block, text: str) -> str:
    first, *others = text.strip("\n").split("\n")
    return "\n".join([block.lead + first, *(block.rest + line for line in others)]).rstrip()


def _packed(pieces: Sequence[tuple[str, str, bool]]) -> Iterator[tuple[str, str]]:
    """Pieces put together as long as a message holds them."""
    shown, plain = "", ""
    for text, bare, tight in pieces:
        gap = "\n" if tight else "\n\n"
        if shown and len(shown) + len(gap) + len(text) > _ROOM:
            yield shown, plain
            shown, plain = "", ""
        shown = f"{shown}{gap}{text}" if shown else text
        plain = f"{plain}{gap}{bare}" if plain else bare
    if shown:
        yield shown, plain


def _payload(shown: str, plain: str) -> str:
    body = {"text": shown}
    if plain != shown:
        body["plain"] = plain
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _is_blank(text: str) -> bool:
    return not text.strip() or all(unicodedata.category(c) in _INVISIBLE for c in text)
