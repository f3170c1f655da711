"""Long text: every part fits, stands alone and loses nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.policy.chunking import MIN_LIMIT, Units, chunk, is_border, size_of, split, utf16_len

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
PIECES = [
    "word ", "Sentence one. ", "\n", "\n\n", "- item\n", "    indented\n", "a" * 30, FAMILY,
    FLAG + FLAG, "é", "한국어 ", "漢字。",
    "👍🏽", "```python\n", "```\n", "\n```\n", "~~~\n", "x = 1\n", "`code` ",
    "\ud83d\ude00", "\r\n", "e\u0301\u0302", " ", "````\n",
]  # fmt: skip
DOCUMENTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=60).map("".join)
FENCE_LINE = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]*")


def open_fence(text: str) -> bool:
    """Whether a reader of this part alone would see a code block that does not end (CommonMark)."""
    marker = ""
    for line in text.split("\n"):
        found = re.fullmatch(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if not found:
            continue
        if not marker:
            if found[1][0] == "~" or "`" not in found[2]:
                marker = found[1]
        elif found[1][0] == marker[0] and len(found[1]) >= len(marker) and not found[2].strip():
            marker = ""
    return bool(marker)


@settings(max_examples=2000, deadline=None)
@given(DOCUMENTS, st.integers(MIN_LIMIT, 120), st.sampled_from(Units))
@example("```py\n" + "x\n" * 100 + "```", 40, Units.UTF16)
def test_every_part_fits_and_nothing_but_space_and_fences_lies_between(
    text: str, limit: int, units: Units
) -> None:
    parts = split(text, limit, units=units)
    at = 0
    for part in parts:
        assert part.text.strip()
        assert size_of(part.text, units) <= limit
        assert text[part.start : part.end] in part.text
        assert part.start >= at
        between = text[at : part.start].strip()
        assert not between or FENCE_LINE.fullmatch(between)
        at = part.end
    rest = text[at:].strip()
    assert not rest or FENCE_LINE.fullmatch(rest)


@settings(max_examples=2000, deadline=None)
@given(DOCUMENTS, st.integers(40, 200))
def test_no_cut_falls_inside_what_a_reader_sees_as_one_character(text: str, limit: int) -> None:
    for part in split(text, limit)[:-1]:
        assert is_border(text, part.end)


WORDS = st.lists(st.sampled_from(["alpha ", "beta.\n", "\n\n", "gamma delta ", "x = 1\n"]), max_size=30).map(
    "".join
)
BLOCKS = st.tuples(
    st.sampled_from(["```", "~~~", "````"]), st.sampled_from(["", "python", "c++ title"]), WORDS
).map(lambda b: f"\n{b[0]}{b[1]}\n{b[2]}\n{b[0]}\n")


@settings(max_examples=2000, deadline=None)
@given(st.lists(WORDS | BLOCKS, max_size=8).map("".join), st.integers(60, 300))
def test_a_document_with_balanced_fences_gives_parts_with_balanced_fences(text: str, limit: int) -> None:
    for part in chunk(text, limit):
        assert not open_fence(part)


def test_a_cut_code_block_is_reopened_with_its_info_string() -> None:
    code = "".join(f"line {n}\n" for n in range(40))
    parts = chunk(f"Look:\n\n```python\n{code}```\nDone.", 120)
    inside = [p for p in parts if "line" in p]
    assert len(inside) > 2
    assert all("```python\n" in p and "\n```" in p for p in inside)
    assert [int(n) for p in parts for n in re.findall(r"line (\d+)", p)] == list(range(40))


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 100, ["short"]),
        ("", 100, []),
        (" \n ", 100, []),
        ("One paragraph.\n\nAnother one.", 20, ["One paragraph.", "Another one."]),
        ("first line\nsecond line", 15, ["first line", "second line"]),
        ("It rains. It pours now.", 14, ["It rains.", "It pours now."]),
        ("alpha beta gamma", 11, ["alpha beta", "gamma"]),
        ("abcdefgh", 4, ["abcd", "efgh"]),
        (FLAG * 3, 8, [FLAG * 2, FLAG]),
        ("好" * 5, 4, ["好好好好", "好"]),
    ],
)
def test_borders_are_chosen_by_rank(text: str, limit: int, expected: list[str]) -> None:
    assert chunk(text, limit) == expected


def test_an_emoji_family_stays_together() -> None:
    assert chunk("abcdefghij" + FAMILY, 16) == ["abcdefghij", FAMILY]


def test_units_are_counted_as_the_platform_does() -> None:
    assert utf16_len("a😀") == 3
    assert [size_of("é😀", u) for u in (Units.UTF16, Units.CHARS, Units.BYTES)] == [3, 2, 6]
    assert len(chunk("😀" * 4096, 4096)) == 2
    assert len(chunk("😀" * 4096, 4096, units=Units.CHARS)) == 1


def test_a_limit_that_cannot_hold_one_character_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        chunk("text", 3)
