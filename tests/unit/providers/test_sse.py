"""The reader of server-sent events, against its specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.sse import EventTooLong, SseEvent, SseReader


def read(*chunks: bytes) -> list[SseEvent]:
    reader = SseReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def message(data: str) -> SseEvent:
    return SseEvent("message", data)


CASES = {
    "one event": (b"data: hello\n\n", [message("hello")]),
    "no blank after the colon": (b"data:hello\n\n", [message("hello")]),
    "only the first blank is taken": (b"data:  hello\n\n", [message(" hello")]),
    "a named event": (b"event: ping\ndata: {}\n\n", [SseEvent("ping", "{}")]),
    "a name lasts for one event": (b"event: a\ndata: 1\n\ndata: 2\n\n", [SseEvent("a", "1"), message("2")]),
    "a name without data is no event": (b"event: a\n\ndata: 2\n\n", [message("2")]),
    "lines of data are joined": (b"data: a\ndata\ndata: b\n\n", [message("a\n\nb")]),
    "an empty line of data is an event": (b"data\n\n", [message("")]),
    "comments say nothing": (b": hi\n\n:\ndata: a\n: there\n\n", [message("a")]),
    "unknown fields say nothing": (b"id: 7\nretry: 10\nfoo: x\nbar\ndata: a\n\n", [message("a")]),
    "fields are told apart by case": (b"Data: a\ndata: b\n\n", [message("b")]),
    "CRLF ends a line": (b"data: a\r\ndata: b\r\n\r\n", [message("a\nb")]),
    "CR ends a line": (b"data: a\rdata: b\r\r", [message("a\nb")]),
    "line ends may be mixed": (b"data: a\r\n\ndata: b\n\r", [message("a"), message("b")]),
    "a BOM is dropped": (b"\xef\xbb\xbfdata: a\n\n", [message("a")]),
    "a second BOM is text": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [message("b")]),
    "an unfinished event is dropped": (b"data: a\n\ndata: b\n", [message("a")]),
    "invalid UTF-8 is replaced": (b"data: \xff\n\n", [message("�")]),
    "other line ends are text": ("data: a\u2028b\x0bc\x85\n\n".encode(), [message("a\u2028b\x0bc\x85")]),
}


@pytest.mark.parametrize(("raw", "events"), CASES.values(), ids=CASES.keys())
def test_a_stream_is_read_as_the_specification_says(raw: bytes, events: list[SseEvent]) -> None:
    assert read(raw) == events


@pytest.mark.parametrize("raw", [raw for raw, _ in CASES.values()], ids=CASES.keys())
def test_the_same_comes_out_byte_by_byte(raw: bytes) -> None:
    assert read(*(raw[i : i + 1] for i in range(len(raw)))) == read(raw)


_WORDS = [b"data: ", b"data:", b"event: x", b":", b"a", b" ", "é😀".encode(), b"\xf0\x9f"]
PIECES = st.sampled_from([*_WORDS, b"\n", b"\r", b"\r\n", b"\n\n"])


@given(pieces=st.lists(PIECES, max_size=40), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_any_split_of_the_bytes_gives_the_same_events(pieces: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(pieces)
    ends = [*sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    starts = [0, *ends]
    assert read(*(raw[start:end] for start, end in zip(starts, ends, strict=False))) == read(raw)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["message", "delta"]),
            st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])),
        ),
        max_size=10,
    )
)
def test_what_is_written_by_the_rules_is_read_back(events: list[tuple[str, str]]) -> None:
    raw = "".join(f"event: {kind}\ndata: {data}\n\n" for kind, data in events)
    assert read(raw.encode()) == [SseEvent(kind, data) for kind, data in events]


@pytest.mark.parametrize("raw", [b"data: " + b"x" * 200, b"data: x\n" * 200], ids=["a line", "many lines"])
def test_an_endless_event_is_refused(raw: bytes) -> None:
    with pytest.raises(EventTooLong):
        SseReader(limit=100).feed(raw)


def test_many_events_within_the_bound_are_read() -> None:
    assert len(SseReader(limit=100).feed(b"data: x\n\n" * 1_000)) == 1_000
