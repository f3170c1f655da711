"""Pictures through Pillow: what they are, and smaller ones. Synchronous and slow: for ``offload``'s pool ``cpu``.

Pillow is loaded with the first picture. Nothing here trusts its input: a header is read before a pixel is, and what
does not decode is no picture.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.core.attachments import ImageLimits
from hermes.core.transcript import ImageData
from hermes.policy.images import LEAST_EDGE, encoded_size, target_size

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 50_000_000
"""Pixels of the largest picture that is decoded: 150 MB of memory."""
TAKEN = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
"""Formats that every model provider takes; the others are converted."""
READABLE = (*TAKEN, "BMP", "TIFF", "AVIF")
_BROKEN = (
    OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error, OverflowError, MemoryError, KeyError,
    IndexError, TypeError, AttributeError, AssertionError, RuntimeError, NotImplementedError,
)  # fmt: skip
"""What Pillow's decoders raise for bytes that are none of theirs."""
_QUALITIES = (85, 70, 50)
_STEPS = 12


class NotAPicture(ValueError):
    """The bytes do not decode, or hold more pixels than are decoded."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a picture is: its MIME type and its size in pixels as it is seen (turned upright)."""

    mime: str
    width: int
    height: int


def probe(content: bytes, max_pixels: int = MAX_PIXELS) -> Probed:
    """Decodes the whole picture: providers refuse a broken one, and with it the conversation. Raises NotAPicture."""
    try:
        with _open(content, max_pixels) as image:
            mime = TAKEN.get(image.format or "") or f"image/{(image.format or '').lower()}"
            width, height = image.size
            if image.format == "JPEG":
                image.draft("RGB", (max(1, width // 8), max(1, height // 8)))
            turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
            image.load()
    except NotAPicture:
        raise
    except _BROKEN as error:
        raise NotAPicture(f"{type(error).__name__}: not a picture that can be read") from None
    return Probed(mime, height, width) if turned else Probed(mime, width, height)


def prepare(content: bytes, limits: ImageLimits, max_pixels: int = MAX_PIXELS) -> ImageData:
    """The picture upright and within ``limits``, as JPEG, or as PNG where it has transparency and fits.

    Raises NotAPicture, also when it cannot be made small enough.
    """
    try:
        with _open(content, max_pixels) as image:
            size = target_size(*image.size, limits)
            if image.format == "JPEG":
                image.draft("RGB", size)
            return _fitted(_upright(image), size, limits)
    except NotAPicture:
        raise
    except _BROKEN as error:
        raise NotAPicture(f"{type(error).__name__}: not a picture that can be made smaller") from None


def _open(content: bytes, max_pixels: int) -> Image:
    import PIL.Image

    # its warnings about broken headers would quote a stranger's file in our log
    warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
    PIL.Image.MAX_IMAGE_PIXELS = None  # counted below: Pillow only warns, and between one and two limits
    image = PIL.Image.open(io.BytesIO(content), formats=READABLE)
    if image.width * image.height > max_pixels:
        raise NotAPicture(f"{image.width}×{image.height} pixels are more than {max_pixels}")
    return image


def _upright(image: Image) -> Image:
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(image)
    clear = turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info
    return turned.convert("RGBA" if clear else "RGB")


def _fitted(image: Image, size: tuple[int, int], limits: ImageLimits) -> ImageData:
    """Smaller and smaller until it fits."""
    width, height = image.size
    scale = min(1.0, max(size) / max(width, height))
    for _ in range(_STEPS):
        now = (max(1, int(width * scale)), max(1, int(height * scale)))
        smaller = image.resize(now, reducing_gap=3.0) if now != image.size else image
        for data in _encodings(smaller):
            if limits.encoded is None or encoded_size(len(data.data)) <= limits.encoded:
                return data
        if max(now) <= LEAST_EDGE:
            break
        scale *= 0.75
    raise NotAPicture(f"cannot be made smaller than {limits.encoded} bytes")


def _encodings(image: Image) -> list[ImageData]:
    found: list[ImageData] = []
    if image.mode == "RGBA":
        found.append(ImageData("image/png", _saved(image, "PNG", 0)))
        import PIL.Image

        white = PIL.Image.new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A"))
        image = white
    return [*found, *(ImageData("image/jpeg", _saved(image, "JPEG", quality)) for quality in _QUALITIES)]


def _saved(image: Image, kind: str, quality: int) -> bytes:
    out = io.BytesIO()
    if kind == "PNG":
        image.save(out, kind, optimize=False)
    else:
        image.save(out, kind, quality=quality)
    return out.getvalue()
