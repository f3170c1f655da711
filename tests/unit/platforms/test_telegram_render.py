"""Rendering for Telegram: within the limit, entities valid, nothing of the text lost (FIELD_REPORTS 12)."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Poison
from hermes.core.records import OutgoingPart
from hermes.platforms.markdown.parser import MAX_MARKDOWN
from hermes.platforms.telegram.render import LIMIT, MARK_ROOM, MAX_ENTITIES, render, units

ROOM = LIMIT - MARK_ROOM
NESTABLE = {"bold", "italic", "strikethrough", "spoiler", "text_link"}


def bodies(parts: tuple[OutgoingPart, ...]) -> list[dict[str, Any]]:
    return [json.loads(part.payload) for part in parts]


def one(text: str) -> dict[str, Any]:
    (body,) = bodies(render(text))
    return body


def marked(body: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """Each entity as (type, the text it covers, its url or language)."""
    wire = body["text"].encode("utf-16-le", "surrogatepass")
    return [
        (
            e["type"],
            wire[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le"),
            e.get("url", e.get("language")),
        )
        for e in body.get("entities", ())
    ]


def check_valid(body: dict[str, Any]) -> None:
    """What the Bot API asks of a message; decoding a slice fails where a surrogate pair is split."""
    text = body["text"]
    assert 0 < units(text) <= ROOM
    assert text.strip()
    entities = body.get("entities", [])
    assert len(entities) <= MAX_ENTITIES
    marked(body)
    open_until: list[tuple[int, str]] = []
    for e in entities:
        start, end = e["offset"], e["offset"] + e["length"]
        assert 0 <= start < end <= units(text)
        while open_until and open_until[-1][0] <= start:
            open_until.pop()
        if open_until:
            outer_end, outer = open_until[-1]
            assert end <= outer_end, "entities are nested, never crossed"
            assert outer == "blockquote" or (outer in NESTABLE and e["type"] in NESTABLE)
            assert outer != e["type"]
        open_until.append((end, e["type"]))


@pytest.mark.parametrize(
    ("source", "text", "entities"),
    [
        ("plain words", "plain words", []),
        ("**b** *i* ~~s~~ `c`", "b i s c", [
            ("bold", "b", None), ("italic", "i", None), ("strikethrough", "s", None), ("code", "c", None)]),
        ("# Title\n\ntext", "Title\n\ntext", [("bold", "Title", None)]),
        ("## A **b** c", "A b c", [("bold", "A b c", None)]),
        ("```python\nx = 1\n```", "x = 1", [("pre", "x = 1", "python")]),
        ("```\nx\n```", "x", [("pre", "x", None)]),
        ("    indented", "indented", [("pre", "indented", None)]),
        ("[site](https://example.org)", "site", [("text_link", "site", "https://example.org")]),
        ("<https://example.org>", "https://example.org", []),
        ("[local](http://localhost:1)", "local (http://localhost:1)", []),
        ("[x](javascript:alert)", "[x](javascript:alert)", []),
        ("![a cat](https://example.org/c.png)", "a cat", [("text_link", "a cat", "https://example.org/c.png")]),
        ("- a\n- b\n  - c", "• a\n• b\n  • c", []),
        ("3. a\n4. b", "3. a\n4. b", []),
        ("- [ ] open\n- [x] done", "• ☐ open\n• ☑ done", []),
        ("text\n\n- a\n\n- b\n\nafter", "text\n\n• a\n• b\n\nafter", []),
        ("> said", "said", [("blockquote", "said", None)]),
        ("> a\n>\n> > b", "a\n\nb", [("blockquote", "a\n\nb", None)]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("one\ntwo", "one\ntwo", []),
        ("one  \ntwo", "one\ntwo", []),
        ("a &amp; b \\* c", "a & b * c", []),
        ("<b>raw</b>", "<b>raw</b>", []),
        ("😀 **b**", "😀 b", [("bold", "b", None)]),
        ("**a `c` b**", "a c b", [("bold", "a ", None), ("code", "c", None), ("bold", " b", None)]),
        ("> `c` in a quote", "c in a quote", [("blockquote", "c in a quote", None), ("code", "c", None)]),
        ("||a *b* `c`||", "a b c", [("spoiler", "a b c", None), ("italic", "b", None)]),
        ("[`c`](https://a.org)", "c", [("text_link", "c", "https://a.org")]),
        ("- - a", "•\n  • a", []),
        ("- ```\n  x\n  ```\n- b", "•\nx\n• b", [("pre", "x", None)]),
        ("<u>a</u>", "<u>a</u>", []),
        ("snake_case_name", "snake_case_name", []),
        ("a\n\n\n\n\nb", "a\n\nb", []),
        ("a\n\n\n\n\n*b*", "a\n\nb", [("italic", "b", None)]),
        ("lone \ud83d surrogate", "lone \ufffd surrogate", []),
        ("[a]: https://example.org", "[a]: https://example.org", []),
    ],
)  # fmt: skip
def test_markdown_becomes_text_and_entities(
    source: str, text: str, entities: list[tuple[str, str, str | None]]
) -> None:
    body = one(source)
    assert body["text"] == text
    assert marked(body) == entities
    check_valid(body)


def test_a_table_is_aligned_in_fixed_width_with_wide_characters_counted_twice() -> None:
    body = one("| a | right |\n|---|------:|\n| 日本 | **1** |\n| x | 22 |")
    assert body["text"].split("\n") == ["a    │ right", "─────┼──────", "日本 │     1", "x    │    22"]
    assert [kind for kind, _, _ in marked(body)] == ["pre"]


def test_the_plain_fallback_shows_the_addresses_that_formatting_hid() -> None:
    body = one("see [this](https://example.org/x) and *that*")
    assert body["text"] == "see this and that"
    assert body["plain"] == "see this (https://example.org/x) and that"
    assert "plain" not in one("only *emphasis*")


@pytest.mark.parametrize("blank", ["", " ", "\n\t \n", "\u200b", "\u200b\u200d\n"])
def test_a_reply_without_visible_text_is_poison(blank: str) -> None:
    with pytest.raises(Poison, match="no visible text"):
        render(blank)


def test_a_code_block_over_two_parts_is_a_code_block_in_both() -> None:
    code = "\n".join(f"line {n} of the program" for n in range(400))
    parts = bodies(render(f"Look:\n\n```python\n{code}\n```\n\nDone."))
    assert len(parts) > 2
    for body in parts:
        check_valid(body)
        pres = [(text, language) for kind, text, language in marked(body) if kind == "pre"]
        assert [language for _, language in pres] == ["python"]
        assert all(re.fullmatch(r"line \d+ of the program", line) for line in pres[0][0].split("\n"))
    shown = "\n".join(text for body in parts for kind, text, _ in marked(body) if kind == "pre")
    assert shown == code


@pytest.mark.parametrize(
    "cluster",
    ["👩\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪", "e\u0301", "❤\ufe0f", "😀"],
    ids=["family", "skin tone", "flag", "accent", "variation", "emoji"],
)
@pytest.mark.parametrize("shift", range(4))
def test_no_cut_falls_inside_what_is_seen_as_one_character(cluster: str, shift: int) -> None:
    source = "x" * shift + cluster * 4100
    parts = [body["text"] for body in bodies(render(source))]
    assert "".join(parts) == source
    assert len(parts) > 1
    assert all(part.removeprefix("x" * shift).replace(cluster, "") == "" for part in parts)


def test_a_cut_prefers_a_paragraph_to_a_line_and_a_line_to_a_word() -> None:
    paragraph = "word " * 500
    texts = [b["text"] for b in bodies(render(f"{paragraph}\n\n{paragraph}\n\n{paragraph}"))]
    assert texts == [paragraph.strip()] * 3
    lines = "\n".join(["some words in a line"] * 600)
    assert all(set(b["text"].split("\n")) == {"some words in a line"} for b in bodies(render(lines)))
    assert all(set(b["text"].split(" ")) == {"word"} for b in bodies(render("word " * 3000)))


def test_a_very_long_text_is_not_parsed_but_sent_whole() -> None:
    source = "[" * (MAX_MARKDOWN + 1)
    assert "".join(body["text"] for body in bodies(render(source))) == source


_WORD = st.text("abcdefgh日本é😀🇩", min_size=1, max_size=8)
_SENTENCE = st.lists(_WORD, min_size=1, max_size=8).map(" ".join)
_INLINE = st.one_of(
    _SENTENCE,
    _SENTENCE.map(lambda s: f"**{s}**"),
    _SENTENCE.map(lambda s: f"*{s}*"),
    _SENTENCE.map(lambda s: f"`{s}`"),
    _SENTENCE.map(lambda s: f"[{s}](https://1.2/3)"),
    _SENTENCE.map(lambda s: f"**{s} `{s}` [{s}](https://1.2) {s}**"),
)
_LINE = st.lists(_INLINE, min_size=1, max_size=4).map(" ".join)
_BLOCK = st.one_of(
    _LINE,
    _LINE.map(lambda s: f"## {s}"),
    st.lists(_LINE, min_size=1, max_size=4).map(lambda rows: "\n".join(f"- {r}" for r in rows)),
    st.lists(_LINE, min_size=1, max_size=3).map(lambda rows: "\n".join(f"> {r}" for r in rows)),
    st.lists(_SENTENCE, min_size=1, max_size=60).map(lambda rows: "```\n" + "\n".join(rows) + "\n```"),
)
_DOCUMENT = st.builds(
    lambda blocks, times: "\n\n".join(blocks * times),
    st.lists(_BLOCK, min_size=1, max_size=8),
    st.sampled_from([1, 1, 2, 30]),
)


def letters(text: str) -> str:
    """The words of a text: what must survive rendering and cutting, in order."""
    return re.sub(r"https://[0-9./]+|[^a-h日本é😀🇩]", "", text)


@given(_DOCUMENT)
def test_every_document_keeps_its_words_in_valid_parts(source: str) -> None:
    parts = bodies(render(source))
    for body in parts:
        check_valid(body)
        assert units(body.get("plain", "")) <= ROOM
    assert letters("".join(body["text"] for body in parts)) == letters(source)


@given(st.text(max_size=300))
def test_rendering_is_total(source: str) -> None:
    try:
        parts = bodies(render(source))
    except Poison:
        parts = []
    for body in parts:
        check_valid(body)
    assert bool(parts) or not any(c.isalnum() for c in source)


def test_plain_text_takes_less_than_a_quarter_of_a_millisecond() -> None:
    text = "This is an ordinary answer of a few plain sentences, nothing else. " * 8
    render(text)
    best = min(_timed(text) for _ in range(20))
    assert best < 250e-6


def _timed(text: str) -> float:
    begun = time.perf_counter()
    render(text)
    return time.perf_counter() - begun
