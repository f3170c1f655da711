"""What makes two tool calls, or two results, the same one: canonical arguments and fingerprints. Pure."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass

from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolCall, ToolResultItem

UNKNOWN_TOOL = "(unknown tool)"
"""The tool's name under which calls of tools that do not exist are counted together."""

CHANGES = "\0"
"""Stands in the family of a tool that may change something."""

_NO_LETTER = re.compile(r"[\W\d_]+")
_WARNING = re.compile(r"\n\n\[Loop guard: [^\n]*\]\Z")


@dataclass(frozen=True, slots=True)
class Act:
    """A call as the guard knows it. ``key``: same tool, same canonical arguments. ``family``: what it is a
    sibling of: the tool, and for a tool that is no mere reader the letters of the arguments too, so that
    writing a hundred different texts is no spread."""

    tool: str
    key: str
    family: str
    effect: ToolEffect


def act_of(call: ToolCall, effect: ToolEffect | None) -> Act:
    """``effect`` is None for a tool that does not exist."""
    canonical = canonical_arguments(call.arguments)
    key = _fingerprint(call.name, canonical)
    if effect is None:
        return Act(UNKNOWN_TOOL, key, UNKNOWN_TOOL, ToolEffect.PURE)
    family = call.name
    if effect is not ToolEffect.PURE:
        family = f"{call.name}{CHANGES}{_fingerprint(_NO_LETTER.sub('', canonical.casefold()))}"
    return Act(call.name, key, family, effect)


def canonical_arguments(text: str) -> str:
    """The arguments in a form in which key order, white space, Unicode normal form and 1 or 1.0 do not count.

    Inside a text of one line runs of white space are one blank; in a text of several lines only the ends of
    lines and of the text do not count, for there indentation means something. What is no JSON is taken as text.
    """
    try:
        return json.dumps(_plain(json.loads(text or "{}")), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return _plain_text(text)


def result_key(result: ToolResultItem) -> str:
    """Equal for results of one status, text and pictures, whatever warnings were appended to them."""
    pictures = (image.sha256 for image in result.images)
    return _fingerprint(result.status.value, without_warning(result.text).rstrip(), *pictures)


def warned(text: str, warning: str) -> str:
    """A result's text with the guard's warning, one line, appended."""
    return f"{text}\n\n[Loop guard: {' '.join(warning.split())}]"


def without_warning(text: str) -> str:
    """A result's text as the tool gave it; a tool's own text that looks like a warning does not count either."""
    while (shorter := _WARNING.sub("", text)) != text:
        text = shorter
    return text


def _plain(value: object) -> object:
    match value:
        case str():
            return _plain_text(value)
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(v) for v in value]
        case dict():
            return {_plain_text(str(k)): _plain(v) for k, v in value.items()}
        case _:
            return value


def _plain_text(text: str) -> str:
    normal = unicodedata.normalize("NFC", text).strip()
    lines = normal.splitlines()
    if len(lines) < 2:
        return " ".join(normal.split())
    return "\n".join(line.rstrip() for line in lines)


def _fingerprint(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()
