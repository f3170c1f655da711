"""Markdown documents of every kind, and what a reader must find of each: by a walk that shares nothing with ours.

``normal`` is the published normalisation (docs/rendering.md): what stays of a text when everything that a dialect may
spell otherwise is gone.
"""

from __future__ import annotations

import re
from functools import cache

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

WORDS = st.sampled_from(
    [
        "plain",
        "words",
        "snake_case",
        "__init__",
        "日本語",
        "مرحبا",
        "שלום",
        "é",
        "e\u0301",
        "😀",
        "👩\u200d👩\u200d👧",
        "🇩🇪🇫🇷",
        "👍🏽",
        "a*b",
        "2 * 3",
        "~",
        "~~",
        "|",
        "||",
        "`",
        "``",
        "<b>",
        "</i>",
        "&amp;",
        "&lt;",
        "\\*",
        "\\_x\\_",
        "[",
        "]",
        "[1]",
        "#tag",
        "@here",
        "<@123>",
        "1.",
        "-",
        "+",
        ">",
        "http://x.org/a_b*c",
        "https://a.org/(x)_y",
        "a\\",
        "$x$",
        "_",
        "*",
        "**",
        "***",
        ":smile:",
        "(see",
        "end)",
        "\u200f",
        "x" * 30,
    ]
)
SAFE = st.sampled_from(
    ["word", "two words", "日本", "naïve", "😀", "x1", "c-d", "مرحبا", "a & b", "don't", "100 %"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=7).map(" ".join)
ADDRESSES = st.sampled_from(
    [
        "https://a.org",
        "https://a.org/x_y_z",
        "https://a.org/w/A_(b)",
        "<https://a.org/a b>",
        "https://a.org/?q=1&r=*2*",
        "https://a.org/~u/|x|",
        'https://a.org "title"',
        "https://a.org/" + "p" * 200,
    ]
)
CODES = st.lists(
    st.sampled_from(
        [
            "x = 1",
            "a*b*c",
            "``",
            "`",
            "||",
            "**",
            "<b>&amp;",
            "日本",
            "  indented",
            "",
            "```",
            "y" * 90,
            "> q",
            "# h",
        ]
    ),
    min_size=1,
    max_size=5,
)


def _ticked(text: str) -> str:
    mark = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{mark} {text} {mark}"


INLINE = st.recursive(
    st.one_of(
        SENTENCES,
        SAFE,
        CODES.map(" ".join).map(_ticked),
        st.builds(lambda label, url: f"[{label}]({url})", SAFE, ADDRESSES),
        st.builds(lambda label, url: f"![{label}]({url})", SAFE, ADDRESSES),
        st.sampled_from(
            ["<https://a.org/b_c>", "<me@a.org>", "[**b** `c`](https://a.org)", "![](https://a.org/i)"]
        ),
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda mark, text: f"{mark}{text}{mark}",
            st.sampled_from(["**", "*", "_", "__", "~~", "***", "||"]),
            inner,
        ),
        st.lists(inner, min_size=2, max_size=4).map(" ".join),
        st.lists(inner, min_size=2, max_size=3).map("".join),
    ),
    max_leaves=6,
)
LINES = st.lists(INLINE, min_size=1, max_size=4).map(" ".join)
PARAGRAPHS = st.builds(
    lambda lines, gap: gap.join(lines),
    st.lists(LINES, min_size=1, max_size=3),
    st.sampled_from(["\n", "  \n", "\\\n"]),
)


def _under(marker: str, block: str) -> str:
    first, *rest = block.split("\n")
    return "\n".join([f"{marker}{first}", *((" " * len(marker) + line) if line else "" for line in rest)])


def _table(rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in (*row, "", "", "")][:3] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|:--|:-:|--:|", *lines[1:]])


FENCES = st.builds(
    lambda mark, info, lines: f"{mark}{info}\n" + "\n".join(lines) + f"\n{mark}",
    st.sampled_from(["````", "~~~~"]),
    st.sampled_from(["", "python", "c++", "a b", "ʼ"]),
    CODES,
)
FLAT = st.one_of(
    PARAGRAPHS,
    st.builds(
        lambda n, text: f"{'#' * n} {text}", st.integers(1, 6), INLINE.map(lambda s: s.replace("\n", " "))
    ),
    FENCES,
    st.lists(st.lists(INLINE, min_size=1, max_size=3), min_size=1, max_size=4).map(_table),
    st.sampled_from(
        ["---", "***", "Title\n=====", "    indented code", "[ref]: https://a.org", "- ", "1.", ">"]
    ),
)
BLOCKS = st.recursive(
    FLAT,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(
            lambda all_: "\n".join(_under("- ", one) for one in all_)
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda all_: "\n\n".join(_under("* ", one) for one in all_)
        ),
        st.builds(
            lambda n, all_: "\n".join(_under(f"{n + i}. ", one) for i, one in enumerate(all_)),
            st.integers(0, 98),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda box, one: _under("- ", f"[{box}] {one}"), st.sampled_from("xX "), inner),
        inner.map(lambda one: "\n".join(f"> {line}" for line in one.split("\n"))),
        st.lists(inner, min_size=2, max_size=3).map("\n\n".join),
    ),
    max_leaves=6,
)
DOCUMENTS = st.builds(
    lambda blocks, times, gap: gap.join(blocks * times),
    st.lists(BLOCKS, min_size=1, max_size=5),
    st.sampled_from([1, 1, 1, 2, 12]),
    st.sampled_from(["\n\n", "\n\n", "\n"]),
)
"""Whole documents, some longer than a message of any platform."""


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 200}).enable(["table", "strikethrough"])


def expected(source: str) -> str:
    """What is to be read of a document, normalised."""
    lists: list[int | None] = []
    pieces: list[str] = []
    fresh = False
    for token in _reader().parse(source.replace("\0", "")):
        match token.type:
            case "ordered_list_open":
                lists.append(int(token.attrGet("start") or 0) if token.attrGet("start") is not None else 1)
            case "bullet_list_open":
                lists.append(None)
            case "ordered_list_close" | "bullet_list_close":
                lists.pop()
            case "list_item_open":
                number = lists[-1]
                pieces.append("•" if number is None else f"{number}.")
                lists[-1] = None if number is None else number + 1
            case "fence" | "code_block":
                pieces.append(token.content)
            case "hr":
                pieces.append("———")
            case "inline":
                text = _inline(token.children or [])
                if fresh and re.match(r"\[[ xX]\]( |$)", text):
                    text = ("☐" if text[1] == " " else "☑") + text[3:]
                pieces.append(text)
            case _:
                pass
        fresh = token.type == "list_item_open" or (fresh and token.type == "paragraph_open")
    return normal("\n".join(pieces))


def _inline(children: list[Token]) -> str:
    pieces: list[str] = []
    opened: list[tuple[int, str]] = []
    for token in children:
        match token.type:
            case "softbreak" | "hardbreak":
                pieces.append("\n")
            case "image":
                pieces.append(_inline(token.children or []) or "🖼")
            case "link_open":
                opened.append((len(pieces), str(token.attrGet("href"))))
            case "link_close":
                start, address = opened.pop()
                if not "".join(pieces[start:]).strip():
                    pieces.append(address)
            case _:
                pieces.append(token.content)
    return "".join(pieces)


_CODED = {f"%{ord(c):02X}": c for c in "*`|\\_~()<>"}


def normal(text: str) -> str:
    """White space, bars, table borders and zero-width spaces go; marks in addresses are not percent-encoded."""
    text = re.sub("%[0-9A-F]{2}", lambda found: _CODED.get(found[0], found[0]), text)
    return re.sub(r"[\s|│┼─\u200b]+", "", text)
