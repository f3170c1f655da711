"""Markdown as mrkdwn: what it becomes, within the limit, each part whole by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.core.delivery import Operation
from hermes.core.errors import Poison
from hermes.core.events import Address
from hermes.core.ports import Outgoing
from hermes.platforms.slack.calls import request_of, with_buttons
from hermes.platforms.slack.render import render

HERE = Address("slack", "UBOT", "D1", "1712345678.000100")


def bodies(text: str) -> list[dict[str, Any]]:
    return [json.loads(part.payload) for part in render(text)]


def elements(text: str) -> list[dict[str, Any]]:
    """The rich text of the one part of a text."""
    (body,) = bodies(text)
    (block,) = body["blocks"]
    found: list[dict[str, Any]] = block["elements"]
    return found


def section(*inside: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(inside)}


def words(text: str, *styles: str) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"style": dict.fromkeys(styles, True)} if styles else {})}


@pytest.mark.parametrize("source", ["hello", "one\n\ntwo\nthree", "see https://a.org/x"])
def test_what_has_no_style_is_text_alone(source: str) -> None:
    assert bodies(source) == [{"text": source}]


BECOMES = [
    (
        "**b** *i* ~~s~~ `c`",
        [
            section(
                words("b", "bold"),
                words(" "),
                words("i", "italic"),
                words(" "),
                words("s", "strike"),
                words(" "),
                words("c", "code"),
            )
        ],
    ),
    ("***both***", [section(words("both", "bold", "italic"))]),
    ("in**side**word", [section(words("in"), words("side", "bold"), words("word"))]),
    ("# Head\n\ntext", [section(words("Head", "bold"), words("\n\n"), words("text"))]),
    ("<@U1> & a*b*c_d", [section(words("<@U1> & a"), words("b", "italic"), words("c_d"))]),
    (
        "[page](https://a.org/x?a=1&b=2)",
        [section({"type": "link", "url": "https://a.org/x?a=1&b=2", "text": "page"})],
    ),
    ("**x** [l](ftp://a.org)", [section(words("x", "bold"), words(" l (ftp://a.org)"))]),
    (
        "*i* (https://a.org/x).",
        [section(words("i", "italic"), words(" ("), {"type": "link", "url": "https://a.org/x"}, words(")."))],
    ),
    (
        "3. a\n4. b\n   - [x] c",
        [
            {
                "type": "rich_text_list",
                "style": "ordered",
                "indent": 0,
                "offset": 2,
                "elements": [section(words("a")), section(words("b"))],
            },
            {
                "type": "rich_text_list",
                "style": "bullet",
                "indent": 1,
                "elements": [section(words("☑ "), words("c"))],
            },
        ],
    ),
    ("> q\n>\n> r", [{"type": "rich_text_quote", "elements": [words("q"), words("\n\n"), words("r")]}]),
    ("```py\na < b\n```", [{"type": "rich_text_preformatted", "elements": [words("a < b")]}]),
    (
        "| a | b |\n|---|---|\n| 1 | 22 |",
        [{"type": "rich_text_preformatted", "elements": [words("a │ b\n──┼───\n1 │ 22")]}],
    ),
    ("||hidden|| `x`", [section(words("||hidden|| "), words("x", "code"))]),
]


@pytest.mark.parametrize(("source", "expected"), BECOMES)
def test_what_markdown_becomes(source: str, expected: list[dict[str, Any]]) -> None:
    assert elements(source) == expected


def test_a_rule_is_a_divider_between_blocks() -> None:
    (body,) = bodies("one\n\n---\n\ntwo")
    assert [block["type"] for block in body["blocks"]] == ["rich_text", "divider", "rich_text"]
    assert body["plain"] == body["text"] if "plain" in body else body["text"] == "one\n\n———\n\ntwo"


def test_the_text_beside_the_blocks_is_the_whole_plain_text() -> None:
    (body,) = bodies("**a** & [b](https://a.org)")
    assert body["plain"] == "a & b (https://a.org)"
    assert body["text"] == "a &amp; b (https://a.org)"


@pytest.mark.parametrize("source", ["", " \n ", "\u200b", "\0"])
def test_what_cannot_be_seen_is_poison(source: str) -> None:
    with pytest.raises(Poison):
        render(source)


def test_a_long_code_block_is_a_code_block_in_each_part() -> None:
    parts = bodies("```\n" + "x = '<&>'\n" * 1000 + "```")
    assert len(parts) > 2
    for body in parts:
        ((only,),) = [block["elements"] for block in body["blocks"]]
        assert only["type"] == "rich_text_preformatted"
        assert set(only["elements"][0]["text"].split("\n")) == {"x = '<&>'"}


def test_a_long_paragraph_keeps_its_style_in_each_part_and_no_word_is_lost() -> None:
    many = [f"word{number}" for number in range(2000)]
    parts = bodies(f"**{' '.join(many)}**")
    assert len(parts) > 2
    found = [body["blocks"][0]["elements"][0]["elements"][0] for body in parts]
    assert all(one["style"] == {"bold": True} for one in found)
    assert " ".join(one["text"] for one in found).split() == many


def test_buttons_stand_under_the_last_part_in_blocks_that_slack_takes() -> None:
    parts = with_buttons(render("Which **one**?"), [("Yes", "q:1"), ("N" * 200, "q:2")])
    method, body = request_of(Outgoing(HERE, Operation.CREATE, parts[-1].payload, "7-0"))
    assert method == "chat.postMessage"
    asked, actions = body["blocks"]
    assert asked["elements"] == [section(words("Which "), words("one", "bold"), words("?"))]
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
