"""Leaves in Discord's dialect.

Its marks are Markdown's, its parser is not: an expression for each mark, the first that matches wins, and there is no
way to say where a mark begins but a backslash before each that is none. So: every line opens and closes its own marks,
each run for itself; within code and addresses nothing is escaped, for nothing is there; and where two marks would run
into one, a zero-width space stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from urllib.parse import urlsplit

from hermes.platforms.markdown.document import INDENT
from hermes.platforms.markdown.tree import Kind, Leaf, Run, Style

MAX_ADDRESS = 512
"""A longer address is written behind its text: it would fill a message."""
APART = "\u200b"
HEADINGS = 3
_ESCAPED = re.compile(
    r"[\\*_`\[\]]|~(?=~|$)|(?<=~)~|^~|\|(?=\||$)|(?<=\|)\||^\||<(?=[@#:/A-Za-z])", re.MULTILINE
)
_STARTS = re.compile(r"^([ \t]*)(?:(-#? |#{1,3} |>(?:>>)? )|(\d+)(\. ))", re.MULTILINE)
_ADDRESS = re.compile(r"(?:https?|steam)://[^\s<>]+")
_IN_ADDRESS = frozenset("*`|\\()<>")
_IN_BARE = re.compile(r"[*`|\\]|(?<=[_~])[_~]")
_CODES = {c: f"%{ord(c):02X}" for c in "*`|\\_~()<>"}


def dialect(leaf: Leaf) -> str:
    """One leaf; all its lines carry its quote."""
    match leaf.kind:
        case Kind.CODE | Kind.TABLE:
            code = re.sub("`(?=``)", f"`{APART}", leaf.text)
            text = f"```{leaf.language or ''}\n{code}\n```"
        case Kind.HEADING if leaf.level <= HEADINGS and not leaf.depth:
            text = f"{'#' * leaf.level} {_line(leaf.runs)}"
        case Kind.HEADING:
            bold = tuple(replace(run, style=run.style | Style.BOLD) for run in leaf.runs)
            text = _led(leaf, _line(bold))
        case _:
            text = _led(leaf, _prose(leaf.runs))
    return "> " + text.replace("\n", "\n> ") if leaf.quote else text


def _led(leaf: Leaf, text: str) -> str:
    if leaf.marker is None:
        first = INDENT * leaf.depth
    else:
        first = INDENT * (leaf.depth - 1) + leaf.marker.replace("•", "-") + " "
    return (first + text.replace("\n", "\n" + INDENT * leaf.depth)).rstrip(" ")


def _guarded(found: re.Match[str]) -> str:
    """A line of text must not begin as a list, a heading or a quote does."""
    return f"{found[1]}\\{found[2]}" if found[2] else f"{found[1]}{found[3]}\\{found[4]}"


def _prose(runs: Sequence[Run]) -> str:
    """The lines of a paragraph; one without any style is escaped as a whole."""
    if all(run.style is Style.PLAIN and not run.link for run in runs):
        text = "".join(run.text for run in runs)
        if "://" not in text:
            return _STARTS.sub(_guarded, _ESCAPED.sub(r"\\\g<0>", text))
    return "\n".join(_STARTS.sub(_guarded, _line(line)) for line in _lines(runs))


def _lines(runs: Sequence[Run]) -> Iterator[list[Run]]:
    line: list[Run] = []
    for run in runs:
        first, *others = run.text.split("\n")
        line.append(replace(run, text=first))
        for other in others:
            yield line
            line = [replace(run, text=other)]
    yield line


@dataclass(frozen=True, slots=True)
class _Piece:
    """``mark``: the character of the marks that it begins and ends with, "" for plain text; ``address``: a bare one."""

    text: str
    mark: str = ""
    address: bool = False


def _line(runs: Sequence[Run]) -> str:
    """The runs of one line."""
    pieces: list[_Piece] = []
    for hidden, group in groupby(runs, key=lambda run: Style.SPOILER in run.style):
        inner = list(_pieces([run for run in group if run.text]))
        if hidden and _joined(inner).strip():
            inner = _hidden(_joined(inner))
        pieces += inner
    return _joined(pieces)


def _hidden(text: str) -> list[_Piece]:
    core = text.strip()
    start = text.index(core)
    return [_Piece(text[:start]), _Piece(f"||{core}||", "|"), _Piece(text[start + len(core) :])]


def _pieces(runs: Sequence[Run]) -> Iterator[_Piece]:
    for number, group in groupby(_merged(runs), key=lambda run: run.link):
        if number:
            yield _link(list(group))
        else:
            for run in group:
                yield from _run(run)


def _merged(runs: Sequence[Run]) -> list[Run]:
    """Neighbours in one style are one run."""
    found: list[Run] = []
    for run in runs:
        last = found[-1] if found else None
        if last is not None and (last.style, last.link) == (run.style, run.link):
            found[-1] = replace(last, text=last.text + run.text)
        else:
            found.append(run)
    return found


def _joined(pieces: Sequence[_Piece]) -> str:
    """Pieces in a row, kept apart where their marks would run into each other or an address into what follows."""
    found = [piece for piece in pieces if piece.text]
    text = ""
    for at, piece in enumerate(found):
        following = found[at + 1] if at + 1 < len(found) else None
        if at and _run_into(found[at - 1], piece):
            text += APART
        closed = piece.address and following is not None and not following.text[0].isspace()
        text += f"<{piece.text}>" if closed else piece.text
    return text


def _run_into(left: _Piece, right: _Piece) -> bool:
    if left.mark and right.mark:
        return True
    return (left.mark == "_" and _is_word(right.text[0])) or (right.mark == "_" and _is_word(left.text[-1]))


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _run(run: Run) -> Iterator[_Piece]:
    if Style.CODE in run.style:
        hidden = Style.SPOILER in run.style
        yield _Piece(_code(run.text.replace("||", f"|{APART}|") if hidden else run.text), "`")
        return
    at = 0
    for found in _ADDRESS.finditer(run.text):
        yield from _styled(run.text[at : found.start()], run.style)
        yield _Piece(_IN_BARE.sub(lambda mark: _CODES[mark[0]], found[0]), address=True)
        at = found.end()
    yield from _styled(run.text[at:], run.style)


def _code(text: str) -> str:
    runs = {len(found) for found in re.findall("`+", text)}
    if runs and (max(runs) > 2 or {1, 2} <= runs):
        text, runs = re.sub("`(?=`)", f"`{APART}", text), {1}
    mark = "``" if 1 in runs else "`"
    padded = f" {text} " if text[:1] == "`" or text[-1:] == "`" else text
    return f"{mark}{padded}{mark}"


def _styled(text: str, style: Style) -> Iterator[_Piece]:
    core = text.strip()
    start = text.index(core)
    yield _Piece(text[:start])
    shown = _ESCAPED.sub(r"\\\g<0>", core)
    mark = ""
    if core and style & ~Style.SPOILER:
        if Style.STRIKE in style:
            shown, mark = f"~~{shown}~~", "~"
        if Style.BOLD in style:
            shown, mark = f"**{shown}**", "*"
        if Style.ITALIC in style:
            shown, mark = f"_{shown}_", "_"
    yield _Piece(shown, mark)
    yield _Piece(text[start + len(core) :])


def _link(runs: list[Run]) -> _Piece:
    label = _joined([piece for run in runs for piece in _run(replace(run, url=None, link=0))])
    shown = "".join(run.text for run in runs)
    address = "".join(_CODES.get(c, c) if c in _IN_ADDRESS else c for c in runs[0].url or "")
    if shown == runs[0].url:
        return _Piece(f"<{address}>")
    if "[" in shown or "]" in shown or "://" in shown or not shown.strip():
        return _Piece(f"{label} (<{address}>)")
    return _Piece(f"[{label}]({address})")


def is_linkable(address: str) -> bool:
    """True for what Discord hides behind a text: an http or https address, none that would fill a message."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and len(address) <= MAX_ADDRESS
