"""What pictures cost, how small they must become, and requests without them or with them elsewhere. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hermes.core.attachments import ImageLimits
from hermes.core.failures import Reason, Verdict
from hermes.core.transcript import AssistantItem, ImageRef, Item, ToolResultItem, UserItem, images_of

LONG_EDGE = 1568
"""Pixels above which a picture costs no more: vendors scale it down themselves.

https://docs.anthropic.com/en/docs/build-with-claude/vision
"""
PIXELS_PER_TOKEN = 750
SMALLEST_IMAGE = 85
"""Tokens of the cheapest picture: OpenAI's price of one at low detail."""

SHRUNK_EDGE = 2000
"""Longer edge of any picture that had to be made smaller: the smallest limit of the large vendors (Anthropic's for
requests with many pictures), and all of them scale down to less before they look."""
LARGEST_EDGE = 30_000
"""Pixels: a stated pixel limit up to this is one of an edge, a larger one of the whole area."""
LEAST_EDGE = 64
"""Pixels: a picture is not made smaller than this."""
ENCODED = 4 / 3
"""Bytes of base64 a byte (RFC 4648)."""

LEFT_OUT = "[a picture was here; this model was not shown it]"
FROM_TOOLS = "[the pictures of the tool results above]"


def image_tokens(image: ImageRef) -> int:
    """About width × height / 750 after the vendor's own scaling; the dearest of the known tariffs."""
    width, height = max(1, image.width), max(1, image.height)
    scale = min(1.0, LONG_EDGE / max(width, height))
    return max(SMALLEST_IMAGE, round(width * scale * height * scale / PIXELS_PER_TOKEN))


def images_tokens(images: Iterable[ImageRef]) -> int:
    """The sum over pictures."""
    return sum(map(image_tokens, images))


# ---- limits -------------------------------------------------------------------------------------


def limits_of(verdict: Verdict, images: Iterable[ImageRef]) -> ImageLimits:
    """How small pictures must become after this refusal.

    The number that the error states, in what it counts; where it states none, three quarters of the largest
    picture's edge, at most ``SHRUNK_EDGE``, and half its bytes. A stated number of bytes is taken for one of base64
    text, which is what Anthropic counts and the smaller of the two readings.
    """
    found = tuple(images)
    limit = verdict.limit if verdict.reason is Reason.IMAGE_TOO_LARGE else None
    if limit is None:
        side = max((max(i.width, i.height) for i in found), default=SHRUNK_EDGE)
        size = max((encoded_size(i.size) for i in found), default=0)
        half = size // 2 if size and verdict.detail != "pixels" else None
        return ImageLimits(half, max(LEAST_EDGE, min(SHRUNK_EDGE, side * 3 // 4)))
    if verdict.detail == "pixels" or (verdict.detail != "bytes" and limit <= LARGEST_EDGE):
        if limit <= LARGEST_EDGE:
            return ImageLimits(side=min(SHRUNK_EDGE, limit))
        return ImageLimits(side=SHRUNK_EDGE, pixels=limit)
    return ImageLimits(encoded=limit, side=SHRUNK_EDGE)


def encoded_size(size: int) -> int:
    """Bytes of base64 text for ``size`` bytes."""
    return (size + 2) // 3 * 4


def exceeds(image: ImageRef, limits: ImageLimits) -> bool:
    """Whether a picture has to be made smaller."""
    return (
        (limits.encoded is not None and encoded_size(image.size) > limits.encoded)
        or (limits.side is not None and max(image.width, image.height) > limits.side)
        or (limits.pixels is not None and image.width * image.height > limits.pixels)
    )


def target_size(width: int, height: int, limits: ImageLimits) -> tuple[int, int]:
    """The largest size of the same shape within the limits of edge and area; never more than it has."""
    scale = 1.0
    if limits.side is not None:
        scale = min(scale, limits.side / max(width, height, 1))
    if limits.pixels is not None:
        scale = min(scale, math.sqrt(limits.pixels / max(1, width * height)))
    return max(1, int(width * scale)), max(1, int(height * scale))


def smaller_of(one: ImageLimits, other: ImageLimits) -> ImageLimits:
    """The limits that satisfy both."""
    return ImageLimits(
        _least(one.encoded, other.encoded), _least(one.side, other.side), _least(one.pixels, other.pixels)
    )


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def written(limits: ImageLimits) -> str:
    """Limits as one word, to be learned; ``read_limits`` reads it."""
    return "/".join("-" if n is None else str(n) for n in (limits.encoded, limits.side, limits.pixels))


def read_limits(text: str) -> ImageLimits:
    """What ``written`` wrote; no limits for anything else."""
    parts = text.split("/")
    if len(parts) != 3 or not all(part == "-" or (part.isascii() and part.isdigit()) for part in parts):
        return ImageLimits()
    return ImageLimits(*(None if part == "-" else int(part) for part in parts))


# ---- requests with pictures elsewhere -----------------------------------------------------------


def newest_shown(count: int, most: int) -> int:
    """How many of ``count`` pictures are shown where at most ``most`` are: so many leave at once that the next ones
    change nothing in what was sent before, which the prompt cache pays for."""
    over = count - most
    leave_at_once = max(1, most // 2)
    return count if over <= 0 else max(0, count - -(-over // leave_at_once) * leave_at_once)


def without_images(items: tuple[Item, ...], newest: int = 0) -> tuple[Item, ...]:
    """``items`` in which each picture is a line of text, but for the ``newest`` ones."""
    found = images_of(items)
    return only_with(items, {image.sha256: image for image in found[max(0, len(found) - newest) :]})


def _replaced(item: UserItem | ToolResultItem, gone: tuple[ImageRef, ...]) -> Item:
    if not gone:
        return item
    kept = tuple(image for image in item.images if image not in gone)
    text = "\n".join(filter(None, (item.text, *[LEFT_OUT] * len(gone))))
    return replace(item, text=text, images=kept)


def only_with(items: Iterable[Item], there: Mapping[str, object]) -> tuple[Item, ...]:
    """``items`` in which each picture whose bytes are not ``there`` is a line of text."""
    return tuple(
        item
        if isinstance(item, AssistantItem)
        else _replaced(item, tuple(image for image in item.images if image.sha256 not in there))
        for item in items
    )


def has_tool_images(items: Iterable[Item]) -> bool:
    """Whether a tool's result holds a picture."""
    return any(isinstance(item, ToolResultItem) and item.images for item in items)


def with_tool_images_moved(items: Iterable[Item]) -> tuple[Item, ...]:
    """Legal ``items`` in which the pictures of a step's tool results follow them in a note of the user's."""
    out: list[Item] = []
    waiting: list[ImageRef] = []
    for item in items:
        if not isinstance(item, ToolResultItem) and waiting:
            out.append(UserItem(FROM_TOOLS, True, tuple(waiting)))
            waiting = []
        if isinstance(item, ToolResultItem) and item.images:
            waiting += item.images
            item = replace(item, images=())
        out.append(item)
    if waiting:
        out.append(UserItem(FROM_TOOLS, True, tuple(waiting)))
    return tuple(out)


# ---- who can see --------------------------------------------------------------------------------

_SEEING = re.compile(
    r"gpt-4o|gpt-4\.1|gpt-4-turbo|gpt-4\.5|gpt-[5-9]|chatgpt-4o|(?:^|/)o[134](?:-|$)(?!mini)|(?:^|/)o4-mini"
    r"|claude-(?:3|[a-z]+-[4-9]|[4-9])|gemini|pixtral|llava|vision|-vl\b|\bvl-|qwen[\d.]*-?vl|gemma-?[34]"
    r"|llama-4|grok-[2-9].*vision|grok-[4-9]|mistral-(?:medium|small)-(?:3|latest)|minicpm-v|internvl|moondream"
)


def known_to_see(model: str) -> bool:
    """Whether a model's name is that of a family that takes pictures; for models about which nothing is configured."""
    return _SEEING.search(model.lower()) is not None
