"""What a turn's input says of an attachment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.attachments import Described, Kept, NotFetched, Picture, ReadText
from hermes.core.events import AttachmentRef
from hermes.core.transcript import ImageRef
from hermes.policy.attachments import is_recording, mime_of, named, size_text, told, too_large

SHA = "0123456789abcdef" * 4
KEPT = Kept(SHA, 120_400, "text/plain")
REPORT = AttachmentRef("document", "r", "report.txt", "text/plain")
PHOTO = AttachmentRef("photo", "p")
VOICE = AttachmentRef("voice", "v", None, "audio/ogg")


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (Picture(PHOTO, ImageRef(SHA, "image/png", 9, 4, 3)), "[photo, 4×3, attachment 0123456789ab]"),
        (ReadText(REPORT, KEPT, "words"), "[document report.txt, 120 kB:]\nwords\n[end of document report.txt]"),
        (
            ReadText(REPORT, KEPT, "wo", 3),
            "[document report.txt, 120 kB:]\nwo\n[… 3 more characters: attachment 0123456789ab]\n"
            "[end of document report.txt]",
        ),
        (ReadText(VOICE, KEPT, "hello", spoken=True), "[voice message, transcribed:]\nhello"),
        (
            Described(REPORT, KEPT),
            "[document report.txt, text/plain, 120 kB, kept as attachment 0123456789ab; not readable as text]",
        ),
        (NotFetched(REPORT, too_large(20 * 2**20)),
         "[document report.txt could not be fetched: it is larger than 21.0 MB, the most that is fetched]"),
    ],
)  # fmt: skip
def test_each_kind_has_its_line(received: Picture | ReadText | Described | NotFetched, expected: str) -> None:
    assert told(received) == expected


@given(st.text(max_size=300))
def test_a_name_is_one_line_and_cannot_end_the_bracket(name: str) -> None:
    shown = named(AttachmentRef("document", "r", name))
    assert len(shown.splitlines()) == 1
    assert not set("[]") & set(shown)
    assert len(shown) <= 110


@pytest.mark.parametrize(
    ("name", "stated", "found"),
    [
        ("a.md", None, "text/markdown"), ("a.MD", "application/octet-stream", "text/markdown"),
        ("a.pdf", None, "application/pdf"), ("a.json", "application/json; charset=utf-8", "application/json"),
        ("noending", None, "application/octet-stream"), (None, None, "application/octet-stream"),
    ],
)  # fmt: skip
def test_the_type_is_what_the_platform_says_else_what_the_name_says(
    name: str | None, stated: str | None, found: str
) -> None:
    assert mime_of(AttachmentRef("document", "r", name, stated)) == found


def test_recordings_are_known_by_kind_or_type() -> None:
    assert is_recording(VOICE, "audio/ogg")
    assert is_recording(AttachmentRef("document", "r", "talk.mp3"), "")
    assert not is_recording(REPORT, "text/plain")
    assert not is_recording(AttachmentRef("video", "r", "a.mp4", "video/mp4"), "video/mp4")


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999 bytes"), (1000, "1 kB"), (999_499, "999 kB"), (1_500_000, "1.5 MB")]
)
def test_sizes_are_read_at_a_glance(size: int, text: str) -> None:
    assert size_text(size) == text
