"""Pictures made on the spot: real ones, of a wanted size in pixels or bytes."""

from __future__ import annotations

import io
import random

from PIL import Image


def picture(width: int = 40, height: int = 30, kind: str = "PNG", colour: str = "red", **how: object) -> bytes:
    """A plain picture: few bytes."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, kind, **how)
    return out.getvalue()


def noise(width: int, height: int, kind: str = "PNG", seed: int = 1) -> bytes:
    """A picture that does not compress: about three bytes a pixel as PNG."""
    out = io.BytesIO()
    pixels = random.Random(seed).randbytes(width * height * 3)
    Image.frombytes("RGB", (width, height), pixels).save(out, kind)
    return out.getvalue()


def size_of(content: bytes) -> tuple[int, int]:
    """Width and height."""
    with Image.open(io.BytesIO(content)) as image:
        return image.size
