"""What pictures cost and how small they must become. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.core.transcript import ImageRef

LONG_EDGE = 1568
"""Pixels above which a picture costs no more: vendors scale it down themselves.

https://docs.anthropic.com/en/docs/build-with-claude/vision
"""
PIXELS_PER_TOKEN = 750
SMALLEST_IMAGE = 85
"""Tokens of the cheapest picture: OpenAI's price of one at low detail."""


def image_tokens(image: ImageRef) -> int:
    """About width × height / 750 after the vendor's own scaling; the dearest of the known tariffs."""
    width, height = max(1, image.width), max(1, image.height)
    scale = min(1.0, LONG_EDGE / max(width, height))
    return max(SMALLEST_IMAGE, round(width * scale * height * scale / PIXELS_PER_TOKEN))


def images_tokens(images: Iterable[ImageRef]) -> int:
    """The sum over pictures."""
    return sum(map(image_tokens, images))
