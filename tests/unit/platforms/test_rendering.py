"""Three renderers against strict readers of their dialects: each part valid by itself, and all of the text there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Poison
from hermes.core.records import OutgoingPart
from hermes.platforms.discord import render as discord
from hermes.platforms.slack import render as slack
from hermes.platforms.telegram import render as telegram
from hermes.simulators import discord_text, slack_text, telegram_text
from tests.unit.platforms.markdown_documents import DOCUMENTS, expected, normal

Body = dict[str, Any]
NESTABLE = {"bold", "italic", "strikethrough", "spoiler", "text_link"}


def read_telegram(body: Body) -> str:
    """Strict: within the limits, as the Bot API takes it, entities nested as its reference allows."""
    text, entities = body["text"], body.get("entities", [])
    assert telegram_text.utf16(text) <= telegram.LIMIT - telegram.MARK_ROOM
    assert telegram_text.utf16(body.get("plain", "")) <= telegram.LIMIT - telegram.MARK_ROOM
    assert len(entities) <= telegram.MAX_ENTITIES
    seen, kept = telegram_text.read_text(text, entities=entities)
    assert seen.strip()
    assert len(kept) == len(entities)
    open_until: list[tuple[int, str]] = []
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        while open_until and open_until[-1][0] <= start:
            open_until.pop()
        for outer_end, outer in open_until:
            assert end <= outer_end, "entities are nested, never crossed"
            assert outer == "blockquote" or (outer in NESTABLE and entity["type"] in NESTABLE)
            assert outer != entity["type"]
        open_until.append((end, entity["type"]))
    return text


def read_discord(body: Body) -> str:
    text = body["text"]
    assert telegram_text.utf16(text) <= discord.LIMIT - discord.MARK_ROOM
    assert telegram_text.utf16(body.get("plain", "")) <= discord.LIMIT - discord.MARK_ROOM
    return discord_text.shown(discord_text.read_text(text))


def read_slack(body: Body) -> str:
    assert len(body.get("plain", body["text"])) <= slack.LIMIT - slack.MARK_ROOM
    if "blocks" not in body:
        return slack_text.read_mrkdwn(body["text"])
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) <= slack.BLOCKS_SIZE + 1000
    assert len(body["blocks"]) <= slack.BLOCKS
    assert slack_text.undone(body["text"]) == body.get("plain", body["text"])
    return slack_text.read_blocks(body["blocks"])


PLATFORMS: dict[str, tuple[Callable[[str], tuple[OutgoingPart, ...]], Callable[[Body], str]]] = {
    "telegram": (telegram.render, read_telegram),
    "discord": (discord.render, read_discord),
    "slack": (slack.render, read_slack),
}
each_platform = pytest.mark.parametrize("platform", PLATFORMS)


def read(platform: str, source: str) -> list[str]:
    """The parts as a reader sees them; none where there is nothing to see."""
    render, reader = PLATFORMS[platform]
    try:
        parts = render(source)
    except Poison:
        return []
    return [reader(json.loads(part.payload)) for part in parts]


@each_platform
@given(DOCUMENTS)
def test_every_document_is_read_whole_by_a_strict_reader(platform: str, source: str) -> None:
    there = normal("".join(read(platform, source)))
    assert there == (expected(source) or normal(source))


@each_platform
@given(st.text(max_size=400) | st.text("*_~`[]()<>|\\#-+=!&;:. \n\tab1😀", max_size=200))
def test_any_text_gives_parts_that_a_strict_reader_takes(platform: str, source: str) -> None:
    shown = read(platform, source)
    assert shown or not any(character.isalnum() for character in source)


LONG_ANSWER = (
    "# Title **bold**\n\nSome *words* with `code`, ~~old~~ and [a link](https://a.org/x_(y)).\n\n"
    "3. three\n4. four\n   - nested **item**\n   - [x] done\n\n> a quote\n> of two lines\n\n"
    "```python\nx = '```'\n```\n\n| a | b |\n|---|--:|\n| 1 | **2** |\n\n||hidden *words*||\n\n---\n\nEnd."
)


@each_platform
def test_every_beginning_of_an_answer_is_a_draft_that_a_strict_reader_takes(platform: str) -> None:
    for end in range(1, len(LONG_ANSWER) + 1):
        assert len(read(platform, LONG_ANSWER[:end])) == (1 if LONG_ANSWER[:end].strip() else 0)


@each_platform
@given(DOCUMENTS, st.floats(0, 1))
def test_every_beginning_of_a_document_is_read_whole(platform: str, source: str, share: float) -> None:
    source = source[: int(len(source) * share)]
    wanted = expected(source) or normal(source)
    if wanted:
        assert normal("".join(read(platform, source))) == wanted


@each_platform
@pytest.mark.parametrize("document", ["```python\nprint(1)\n", "> a quote\n\n- an item\n  ```\n  x = 1\n"])
def test_code_that_is_still_being_written_looks_as_it_will(platform: str, document: str) -> None:
    drafts = [read(platform, document + "y = 2\n" * lines)[0] for lines in range(3)]
    assert [normal(draft) for draft in drafts] == [normal(drafts[0]) + "y=2" * lines for lines in range(3)]


@each_platform
def test_the_same_text_is_rendered_the_same_twice(platform: str) -> None:
    render, _ = PLATFORMS[platform]
    assert render(LONG_ANSWER * 30) == render(LONG_ANSWER * 30)


@each_platform
@pytest.mark.parametrize("depth", [10, 30, 200])
def test_what_is_nested_too_deeply_is_still_there(platform: str, depth: int) -> None:
    shown = "".join(read(platform, "> " * depth + "here\n\n" + "- " * depth + "there"))
    assert "here" in shown
    assert "there" in shown


HOSTILE = ["[", "![", "[a](", "# a\n", "- a\n", "a\n", "**a*", "***a", "`a``", "> ", "|a", "||a", "_", "*a _", "<a ",
           "[a]: b\n", "[]", "a|b\n-|-\n", "~~~\n", "\u0301", "😀"]  # fmt: skip


@each_platform
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_of_a_hundred_thousand_characters_takes_long(platform: str, unit: str) -> None:
    render, _ = PLATFORMS[platform]
    begun = time.process_time()
    assert render(unit * (100_000 // len(unit)))
    assert time.process_time() - begun < 3


@each_platform
def test_no_cut_falls_within_a_link_or_an_address(platform: str) -> None:
    link = "[a label of words](https://a.org/x) https://a.org/an/address?of=many&words=1 "
    for shown in read(platform, "word " * 7 + link * 300):
        assert shown.count("a label of words") == shown.count("label")
        assert shown.count("https://a.org/an/address?of=many&words=1") == shown.count("://a.org/an")
