"""Pictures through Pillow: what they are, and smaller ones that keep every limit."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hermes.core.attachments import ImageLimits
from hermes.runtime.pictures import NotAPicture, prepare, probe
from tests.pictures import noise, picture, size_of


@pytest.mark.parametrize(
    ("kind", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp"),
                       ("BMP", "image/bmp"), ("TIFF", "image/tiff")],
)  # fmt: skip
def test_the_bytes_say_what_a_picture_is(kind: str, mime: str) -> None:
    found = probe(picture(40, 30, kind))
    assert (found.mime, found.width, found.height) == (mime, 40, 30)


def test_a_picture_that_lies_on_its_side_is_measured_upright() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    lying = picture(40, 30, "JPEG", exif=turned)
    assert (probe(lying).width, probe(lying).height) == (30, 40)
    assert size_of(prepare(lying, ImageLimits(side=20)).data) == (15, 20)


@pytest.mark.parametrize(
    "content",
    [b"", b"no picture", b"%PDF-1.7", picture()[:40], picture(400, 300, "JPEG")[:-200], noise(40, 40)[:2000],
     b"GIF89a" + b"\xff" * 50, b"\x89PNG\r\n\x1a\n" + b"\0" * 64],
)  # fmt: skip
def test_what_does_not_decode_is_no_picture(content: bytes) -> None:
    with pytest.raises(NotAPicture):
        probe(content)
    with pytest.raises(NotAPicture):
        prepare(content, ImageLimits(side=10))


@given(st.binary(max_size=400))
@settings(max_examples=200)
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    starts = (b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF\x40\0\0\0WEBPVP8 ", b"BM", b"II*\0", b"\xff\xd8\xff\xe0")
    for start in starts:
        with pytest.raises(NotAPicture):
            probe(start + content)


def test_a_bomb_is_refused_by_its_header() -> None:
    with pytest.raises(NotAPicture, match="pixels"):
        probe(picture(2000, 2000), max_pixels=1_000_000)


@pytest.mark.parametrize(
    "limits",
    [ImageLimits(encoded=20_000), ImageLimits(side=100), ImageLimits(pixels=5_000), ImageLimits(4_000, 64, 4_000)],
)
def test_a_smaller_picture_keeps_every_limit_and_its_shape(limits: ImageLimits) -> None:
    data = prepare(noise(400, 200), limits)
    width, height = size_of(data.data)
    assert width / height == pytest.approx(2.0, rel=0.05)
    assert limits.side is None or max(width, height) <= limits.side
    assert limits.pixels is None or width * height <= limits.pixels
    assert limits.encoded is None or len(data.data) * 4 / 3 <= limits.encoded + 4
    assert probe(data.data).mime == data.mime == "image/jpeg"


def test_transparency_is_kept_where_it_fits_and_becomes_white_where_it_does_not() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (300, 300), (255, 0, 0, 0)).save(out, "PNG")
    assert prepare(out.getvalue(), ImageLimits(side=100)).mime == "image/png"
    clear = io.BytesIO()
    noisy = Image.open(io.BytesIO(noise(300, 300))).convert("RGBA")
    noisy.putalpha(0)
    noisy.save(clear, "PNG")
    small = prepare(clear.getvalue(), ImageLimits(encoded=20_000))
    assert small.mime == "image/jpeg"
    assert Image.open(io.BytesIO(small.data)).getpixel((10, 10)) == (255, 255, 255)


def test_what_cannot_be_made_small_enough_is_said() -> None:
    with pytest.raises(NotAPicture, match="smaller than 100 bytes"):
        prepare(noise(400, 400), ImageLimits(encoded=100))


def test_a_format_that_no_provider_takes_is_converted() -> None:
    assert prepare(picture(40, 30, "BMP"), ImageLimits()).mime == "image/jpeg"
