"""The simulator reads markup as the SDK's own escaping and Telegram's description have it."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram.helpers import escape_markdown

from hermes.simulators.telegram_text import TextError, read_text, utf16

pytestmark = pytest.mark.wire
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)


@given(TEXTS)
def test_escaped_text_is_read_as_it_was(text: str) -> None:
    assert read_text(escape_markdown(text, version=2), parse_mode="MarkdownV2") == (text.strip(), [])
    assert read_text(html.escape(text), parse_mode="HTML") == (text.strip(), [])


@given(TEXTS, TEXTS)
def test_an_entity_covers_what_was_marked_in_utf16_units(before: str, marked: str) -> None:
    before, marked = "a" + before + "b", "c" + marked + "d"
    source = f"{escape_markdown(before, version=2)}*{escape_markdown(marked, version=2)}*"
    text, entities = read_text(source, parse_mode="MarkdownV2")
    assert text == before + marked
    assert entities == [{"type": "bold", "offset": utf16(before), "length": utf16(marked)}]
    again, same = read_text(f"{html.escape(before)}<b>{html.escape(marked)}</b>", parse_mode="HTML")
    assert (again, same) == (text, entities)


@given(TEXTS, st.sampled_from(["MarkdownV2", "HTML", "Markdown"]))
def test_any_text_is_read_or_refused(source: str, mode: str) -> None:
    refusal: str | None = None
    try:
        text, entities = read_text(source, parse_mode=mode)
    except TextError as error:
        text, entities, refusal = "", [], str(error)
    assert refusal is None or "can't parse entities" in refusal
    assert utf16(text) <= utf16(source)
    assert all(0 <= entity["offset"] <= utf16(text) - entity["length"] for entity in entities)
