"""Markdown as mrkdwn: what it becomes, within the limit, each part whole by itself."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.delivery import Operation
from hermes.core.errors import Poison
from hermes.core.events import Address
from hermes.core.ports import Outgoing
from hermes.platforms.slack.calls import request_of, with_buttons
from hermes.platforms.slack.render import LIMIT, render

HERE = Address("slack", "UBOT", "D1", "1712345678.000100")


def shown(text: str) -> list[str]:
    return [json.loads(part.payload)["text"] for part in render(text)]


def plain(text: str) -> list[str]:
    found = [json.loads(part.payload) for part in render(text)]
    return [one.get("plain", one["text"]) for one in found]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hello", "hello"),
        ("**b** *i* ~~s~~ `c`", "*b* _i_ ~s~ `c`"),
        ("***both***", "_*both*_"),
        ("in**side**word", "insideword"),
        ("**Title:** text", "*Title:* text"),
        ("# Head\n\ntext", "*Head*\n\ntext"),
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("<@U1> <!here> @here", "&lt;@U1&gt; &lt;!here&gt; @here"),
        ("[page](https://a.org/x?a=1&b=2)", "<https://a.org/x?a=1&amp;b=2|page>"),
        ("[bad](ftp://a.org)", "bad"),
        ("[a|b](https://a.org/x|y)", "<https://a.org/x%7Cy|a|b>"),
        ("![alt](https://a.org/p.png)", "<https://a.org/p.png|alt>"),
        ("- one\n- two\n  - three", "• one\n• two\n    • three"),
        ("3. three\n4. four", "3. three\n4. four"),
        ("- [ ] open\n- [x] done", "☐ open\n☑ done"),
        ("> quoted\n> more", "&gt; quoted".replace("&gt;", ">") + "\n> more"),
        ("```py\na < b\n```", "```\na &lt; b\n```"),
        ("| a | b |\n|---|---|\n| 1 | 22 |", "```\na | b\n--+---\n1 | 22\n```"),
        ("one\n\n---\n\ntwo", "one\n\n———\n\ntwo"),
        ("code with `` a`b ``", "code with a`b"),
    ],
)
def test_what_markdown_becomes(source: str, expected: str) -> None:
    if source == "***both***":
        assert shown(source) in (["_*both*_"], ["*_both_*"])
    else:
        assert shown(source) == [expected]


@pytest.mark.parametrize("source", ["", " \n ", "\u200b", "\0"])
def test_what_cannot_be_seen_is_poison(source: str) -> None:
    with pytest.raises(Poison):
        render(source)


def test_a_long_code_block_is_a_code_block_in_each_part() -> None:
    parts = shown("```\n" + "x = '<&>'\n" * 1000 + "```")
    assert len(parts) > 2
    for part in parts:
        assert part.startswith("```\n")
        assert part.endswith("\n```")
        assert part.count("```") == 2


def test_a_long_paragraph_keeps_its_style_in_each_part_and_no_word_is_lost() -> None:
    words = [f"word{number}" for number in range(2000)]
    parts = shown(f"**{' '.join(words)}**")
    assert len(parts) > 2
    assert all(part.startswith("*") and part.endswith("*") for part in parts)
    assert " ".join(part.strip("*") for part in parts).split() == words


_PIECES = st.lists(
    st.sampled_from(
        ["**bold** ", "*i* ", "`code` ", "[l](https://a.org) ", "\n\n", "\n", "- item\n", "1. one\n", "> q\n", "```\n",
         "<tag> & ", "\n\n| a | b |\n|-|-|\n| 1 | 2 |\n\n", "~~s~~", "# h\n", "😀👍🏽", "مرحبا ", "word " * 300,
         "x" * 5000, "&" * 900]
    ) | st.text(max_size=20),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=200)
@given(_PIECES.map("".join))
def test_each_part_is_within_the_limit_and_valid_by_itself(source: str) -> None:
    try:
        parts = shown(source)
    except Poison:
        return
    for part in parts:
        assert 0 < len(part) <= LIMIT
        outside = re.sub(r"<https?://[^<>|\s]+\|[^<>\n]*>", "", part)
        outside = re.sub(r"^(?:> )+", "", outside, flags=re.MULTILINE)
        assert "<" not in outside
        assert ">" not in outside
        assert part.count("```") % 2 == 0


@settings(max_examples=100)
@given(_PIECES.map("".join))
def test_no_letter_is_lost(source: str) -> None:
    try:
        found = "".join(plain(source))
    except Poison:
        return
    kept = [character for character in source.replace("https://a.org", "") if character.isalpha()]
    there = [character for character in found if character.isalpha()]
    assert len(there) >= len(kept) - _hidden(source)


def _hidden(source: str) -> int:
    """Letters that Markdown itself takes away: a fence's language, an entity's name, a link's address."""
    return sum(map(len, re.findall(r"```[^\n]*|&[a-zA-Z]+;?|\]\([^)]*\)|\]:.*", source)))


def test_buttons_stand_under_the_last_part_in_blocks_that_slack_takes() -> None:
    parts = with_buttons(render("Which **one**?"), [("Yes", "q:1"), ("N" * 200, "q:2")])
    method, body = request_of(Outgoing(HERE, Operation.CREATE, parts[-1].payload, "7-0"))
    assert method == "chat.postMessage"
    section, actions = body["blocks"]
    assert section["text"] == {"type": "mrkdwn", "text": "Which *one*?", "verbatim": True}
    assert [e["value"] for e in actions["elements"]] == ["q:1", "q:2"]
    assert len({e["action_id"] for e in actions["elements"]}) == 2
    assert all(len(e["text"]["text"]) <= 75 for e in actions["elements"])
    assert body["metadata"] == {"event_type": "hermes_delivery", "event_payload": {"nonce": "7-0"}}
    assert body["thread_ts"] == HERE.thread_id
    with pytest.raises(Poison):
        with_buttons(render("x"), [("x", "y" * 2001)])


@pytest.mark.parametrize("payload", ["", "[]", '{"text": 5}', "{"])
def test_a_payload_of_somebody_else_is_poison(payload: str) -> None:
    with pytest.raises(Poison):
        request_of(Outgoing(HERE, Operation.CREATE, payload, "1-0"))
