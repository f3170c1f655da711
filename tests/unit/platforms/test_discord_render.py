"""A reply's Markdown in Discord's dialect."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Poison
from hermes.platforms.discord.render import LIMIT, MARK_ROOM, render
from hermes.policy.chunking import utf16_len


def text_of(markdown: str) -> str:
    (part,) = render(markdown)
    text: str = json.loads(part.payload)["text"]
    return text


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("plain", "plain"),
        ("**bold** *it* ~~gone~~ ||hidden|| `code`", "**bold** _it_ ~~gone~~ ||hidden|| `code`"),
        ("__bold__ and snake__case__name", "**bold** and snake\\_\\_case\\_\\_name"),
        ("`__init__` of __it__", "`__init__` of **it**"),
        ("# One\n### Three\n#### Four\n###### **Six**", "# One\n\n### Three\n\n**Four**\n\n**Six**"),
        ("![a cat](https://example.org/cat.png)", "[a cat](https://example.org/cat.png)"),
        ("~~~python\n__x__ = 1\n~~~", "```python\n__x__ = 1\n```"),
        ("```\n| a | b |\n|---|---|\n```", "```\n| a | b |\n|---|---|\n```"),
        ("| a | bb |\n|---|:-:|\n| 日本 | x |\n| `c` |",
         "```\na    │ bb\n─────┼───\n日本 │ x\nc    │\n```"),
        ("a | b\nno table", "a | b\nno table"),
        ("\n\ntext\r\nmore\n\n", "text\nmore"),
        ("2 * 3 * 4", "2 \\* 3 \\* 4"),
        ("**a***b*c", "**a**\u200b_b_\u200bc"),
        ("*a \\* b*", "_a \\* b_"),
        ("||a **b** `c||d`||", "||a **b** `c|\u200b|d`||"),
        ("`` a`b `` ` ``` `", "``a`b`` ` ``` `".replace("` ``` `", "`` `\u200b`\u200b` ``")),
        ("1\\. x\n\\- y\n\\# z\n\\> q", "1\\. x\n\\- y\n\\# z\n\\> q"),
        ("[a](https://a.org/b_(c)) [x\\]](https://a.org)", "[a](https://a.org/b_%28c%29) x\\] (<https://a.org>)"),
        ("see https://a.org/x_y.", "see https://a.org/x_y."),
        ("https://a.org**b**", "<https://a.org>**b**"),
        ("<@123> <:x:1> < 3", "\\<@123> \\<:x:1> < 3"),
        ("> a\n> > b\n\nc", "> a\n> \n> b\n\nc"),
        ("> ```py\n> x\n> ```", "> ```py\n> x\n> ```"),
        ("3. a\n4. b\n   - [ ] c", "3. a\n4. b\n  - ☐ c"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
    ],
)  # fmt: skip
def test_what_differs_is_rewritten_and_code_is_left_alone(markdown: str, shown: str) -> None:
    assert text_of(markdown) == shown


@pytest.mark.parametrize("blank", ["", " \n ", "\u200b", "\u2060\n\ufeff"])
def test_nothing_to_see_is_poison(blank: str) -> None:
    with pytest.raises(Poison):
        render(blank)


def test_a_code_block_that_is_cut_is_a_code_block_in_each_part() -> None:
    parts = [json.loads(p.payload)["text"] for p in render("```py\n" + "print(1)\n" * 600 + "```")]
    assert len(parts) > 2
    assert all(part.startswith("```py\n") and part.rstrip().endswith("```") for part in parts)


@given(st.text(max_size=6000))
def test_each_part_fits_with_its_mark_and_none_is_blank(text: str) -> None:
    try:
        parts = render(text)
    except Poison:
        return
    for part in parts:
        shown = json.loads(part.payload)["text"]
        assert shown.strip()
        assert utf16_len(shown) <= LIMIT - MARK_ROOM


@given(
    st.lists(
        st.sampled_from(["**a** ", "__b__", "`c", "```\n", "| a | b |\n|---|---|\n", "😀", "\n", "#### x\n"])
    )
)
def test_any_mixture_of_marks_gives_parts_that_fit(pieces: list[str]) -> None:
    text = "".join(pieces) * 40 + "end"
    assert all(utf16_len(json.loads(p.payload)["text"]) <= LIMIT - MARK_ROOM for p in render(text))
