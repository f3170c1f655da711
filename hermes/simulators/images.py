"""Pictures as the services judge them: decoded, counted in bytes and pixels, refused in their words."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermes.runtime.pictures import NotAPicture, probe

TAKEN = ("image/png", "image/jpeg", "image/gif", "image/webp")
_DATA_URL = re.compile(r"data:(?P<mime>[^;,]*);base64,(?P<data>.*)", re.DOTALL)
IMAGE_TOKENS = 1000
"""What a picture counts for in the limits of the simulators."""


@dataclass(slots=True)
class ImageRules:
    """What a service takes. ``encoded`` counts bytes of base64, ``decoded`` those of the file; ``many_side`` is the
    limit of an edge in requests of more than ``many`` pictures."""

    taken: bool = True
    in_tool_results: bool = True
    encoded: int | None = None
    decoded: int | None = None
    side: int | None = None
    many: int = 20
    many_side: int | None = None
    pixels: int | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """One picture of a request: its place in the request's own words, and what it says of itself."""

    place: str
    mime: str
    data: str
    in_tool_result: bool

    @property
    def content(self) -> bytes | None:
        """Its bytes; None when they are no base64."""
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Judged:
    """Why a picture is refused, as a word, and the numbers that the service names."""

    shown: Shown
    fault: str
    found: int | str = 0
    limit: int = 0


def judged(pictures: list[Shown], rules: ImageRules) -> Judged | None:
    """The first picture that is refused."""
    many = len(pictures) > rules.many and rules.many_side is not None
    for shown in pictures:
        fault = _judge(shown, rules, many=many)
        if fault is not None:
            return fault
    return None


def _judge(shown: Shown, rules: ImageRules, *, many: bool) -> Judged | None:
    if not rules.taken:
        return Judged(shown, "not taken")
    if shown.in_tool_result and not rules.in_tool_results:
        return Judged(shown, "in a tool result")
    if shown.mime not in TAKEN:
        return Judged(shown, "type", shown.mime)
    content = shown.content
    if not content:
        return Judged(shown, "no data")
    if rules.encoded is not None and len(shown.data) > rules.encoded:
        return Judged(shown, "bytes", len(shown.data), rules.encoded)
    if rules.decoded is not None and len(content) > rules.decoded:
        return Judged(shown, "bytes", len(content), rules.decoded)
    try:
        found = probe(content)
    except NotAPicture:
        return Judged(shown, "broken")
    if found.mime != shown.mime:
        return Judged(shown, "other type", found.mime)
    side = rules.many_side if many else rules.side
    if side is not None and max(found.width, found.height) > side:
        return Judged(shown, "many side" if many else "side", max(found.width, found.height), side)
    if rules.pixels is not None and found.width * found.height > rules.pixels:
        return Judged(shown, "pixels", found.width * found.height, rules.pixels)
    return None


def openai_pictures(body: Mapping[str, Any]) -> Iterator[Shown]:
    """The pictures of a chat completion's request, in order."""
    for at, message in enumerate(_list(body.get("messages"))):
        for index, part in enumerate(_list(message.get("content"))):
            if part.get("type") == "image_url":
                url = str((part.get("image_url") or {}).get("url", ""))
                match = _DATA_URL.fullmatch(url)
                place = f"messages[{at}].content[{index}].image_url"
                mime, data = (match["mime"], match["data"]) if match else ("", "")
                yield Shown(place, mime, data, message.get("role") == "tool")


def anthropic_pictures(body: Mapping[str, Any]) -> Iterator[Shown]:
    """The pictures of a message's request, those of tool results included, in order."""
    for at, message in enumerate(_list(body.get("messages"))):
        yield from _blocks(message.get("content"), f"messages.{at}.content", in_tool_result=False)


def _blocks(content: object, place: str, *, in_tool_result: bool) -> Iterator[Shown]:
    for index, block in enumerate(_list(content)):
        if block.get("type") == "image":
            source = block.get("source") or {}
            where = f"{place}.{index}.image.source.base64"
            yield Shown(where, str(source.get("media_type")), str(source.get("data") or ""), in_tool_result)
        elif block.get("type") == "tool_result":
            yield from _blocks(block.get("content"), f"{place}.{index}.tool_result.content", in_tool_result=True)


def _list(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def tokens_of(body: Mapping[str, Any]) -> int:
    """Four characters a token, which is how the limits of the simulators count; a picture has a fixed price."""
    counted = {key: _without_data(body[key]) for key in ("system", "messages", "tools") if key in body}
    return len(json.dumps(counted, ensure_ascii=False)) // 4 + 1


def _without_data(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_data(one) for one in value]
    if isinstance(value, Mapping):
        if value.get("type") == "image" or value.get("type") == "image_url":
            return "x" * 4 * IMAGE_TOKENS
        return {key: _without_data(one) for key, one in value.items()}
    return value
