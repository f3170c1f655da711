"""Structured values hidden in text: JSON in a sentence, JSON in a JSON string, a Python repr."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

MAX_EMBEDDED = 6
"""Openings tried in one text."""

MAX_LITERAL = 8_000
"""Characters of a Python literal that are read."""

_OPENING = re.compile(r"[{\[]\s*(?=[\"'{\[\\])|\{\s*\}")


def embedded(text: str) -> Iterator[object]:
    """JSON objects and Python literals found inside `text` (`Error: b'{"error": …}'. Received …`)."""
    position, found = 0, 0
    decoder = json.JSONDecoder()
    while found < MAX_EMBEDDED:
        match = _OPENING.search(text, position)
        if match is None:
            return
        start = match.start()
        value, end = _decode_at(decoder, text, start)
        if end is None:
            position = start + 1
            found += 1
            continue
        if isinstance(value, Mapping | list) and value:
            yield value
        found += 1
        position = end


def _decode_at(decoder: json.JSONDecoder, text: str, start: int) -> tuple[object, int | None]:
    """The value that begins at `start` and where it ends, as JSON, escaped JSON or a Python literal."""
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    else:
        return value, end
    if text.startswith('{\\"', start):
        plain = text[start:].replace('\\"', '"').replace("\\\\", "\\")
        try:
            value, _ = decoder.raw_decode(plain)
        except (ValueError, RecursionError):
            return None, None
        return value, len(text)
    closing = _closing(text, start)
    if closing is None:
        return None, None
    try:
        return ast.literal_eval(text[start:closing]), closing
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None, None


def _closing(text: str, start: int) -> int | None:
    """One past the bracket that closes the one at `start`, quotes respected; None if there is none."""
    depth, quote, escaped = 0, "", False
    for index in range(start, min(len(text), start + MAX_LITERAL)):
        char = text[index]
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return index + 1
    return None
