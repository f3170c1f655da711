"""The page as a platform: its updates and its safe HTML."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import PlatformFailure, Poison
from hermes.core.events import AttachmentRef, MessageEvent
from hermes.core.principals import ChatKind
from hermes.platforms.web.adapter import WebPlatform, make_update
from hermes.platforms.web.render import MAX_MARKDOWN, html_of, is_allowed, render

TAGS = {
    "p",
    "br",
    "strong",
    "em",
    "s",
    "code",
    "pre",
    "a",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
}
ATTRIBUTES = {"href", "rel", "target", "class", "style", "start", "title"}
STYLE = re.compile(r"text-align:(left|right|center)")


class Audit(HTMLParser):
    """Fails on anything that a document of the page must not get from a model."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        named = dict(attrs)
        assert set(named) <= ATTRIBUTES
        if "style" in named:
            assert STYLE.fullmatch(named["style"] or "")
        if tag == "a":
            assert re.match(r"(https?:|mailto:)", (named.get("href") or "").lower())
            assert "noopener" in (named.get("rel") or "")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def check_safe(html: str) -> None:
    Audit(convert_charrefs=False).feed(html)


def test_an_update_of_the_page_becomes_the_message_that_was_written() -> None:
    update = make_update("chat-1", "owner", "0b7e", "hello\nyou", 12.5)
    event = WebPlatform().normalise(update.raw)
    assert isinstance(event, MessageEvent)
    assert (update.dedup_key, update.message_ref, update.sent_at) == ("0b7e", "0b7e", 12.5)
    assert (event.text, event.sent_at, event.edited) == ("hello\nyou", 12.5, False)
    assert (event.identity, event.chat) == (update.identity, update.chat)
    assert (event.address.chat_id, event.chat.kind) == ("chat-1", ChatKind.PRIVATE)


def test_an_edit_and_a_lone_surrogate_survive_the_way_through_the_store() -> None:
    update = make_update("c", "u", "id", "a\ud83db", 1.0, edited=True)
    assert update.raw.isascii()
    event = WebPlatform().normalise(update.raw)
    assert isinstance(event, MessageEvent)
    assert (event.text, event.edited) == ("a\ufffdb", True)


@pytest.mark.parametrize(
    "raw", ["", "null", "[]", "{}", '{"chat":1,"user":"u","uuid":"i","text":"t","at":1}', "[" * 100_000,
            '{"chat":"c","user":"u","uuid":"i","text":"t","at":"now"}',
            '{"chat":"c","user":"u","uuid":"i","text":"t","at":NaN}']
)  # fmt: skip
def test_what_the_page_did_not_make_is_poison(raw: str) -> None:
    with pytest.raises(Poison):
        WebPlatform().normalise(raw)


def test_markdown_becomes_html_and_stays_available_as_source() -> None:
    (part,) = render("**b** [x](https://example.org)\n\n| a |\n|---|\n| 1 |")
    body = json.loads(part.payload)
    assert body["markdown"].startswith("**b**")
    assert "<strong>b</strong>" in body["html"]
    assert 'href="https://example.org"' in body["html"]
    assert "<table>" in body["html"]
    check_safe(body["html"])


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](java\nscript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](//example.org)",
        "[x](/admin)",
        "[x](file:///etc/passwd)",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        '![x"onerror="alert(1)](https://example.org)',
        '[x](https://example.org "t\\" onclick=\\"x")',
        "```x\" onload=\"alert(1)\n</code><script>\n```",
        "<!-- c -->",
        "<style>*{}</style>",
        "[a]: javascript:alert(1)\n\n[a]",
    ],
)  # fmt: skip
def test_no_attack_gets_through(attack: str) -> None:
    html = html_of(attack)
    check_safe(html)
    assert "<script" not in html.lower()


@pytest.mark.parametrize(
    ("address", "allowed"),
    [("https://a", True), ("HTTP://a", True), ("mailto:a@b", True), ("javascript:x", False), ("/x", False),
     (" java\tscript:x", False), ("tel:1", False), ("", False)],
)  # fmt: skip
def test_links_go_to_web_and_mail_only(address: str, allowed: bool) -> None:
    assert is_allowed(address) is allowed


def test_images_are_links_because_fetching_one_would_tell_its_server() -> None:
    html = html_of("![cat](https://example.org/c.png)")
    assert "<img" not in html
    assert ">cat</a>" in html
    check_safe(html)


def test_a_reply_without_text_is_poison() -> None:
    with pytest.raises(Poison):
        render(" \n")


def test_a_very_long_text_is_shown_unparsed() -> None:
    check_safe(html_of("<b>" * MAX_MARKDOWN))


_PIECE = st.sampled_from(
    [
        *"<>&\"'[]()!*_`~\n #|x\\\x00日:-",
        "\n\n",
        "- ",
        "> ",
        "```",
        "javascript:",
        "https://a.b",
        "data:",
        "&#x6a;",
        "<script>",
        "on=",
    ]
)


@given(st.lists(_PIECE, max_size=40).map("".join))
def test_whatever_a_model_writes_is_safe_to_show(source: str) -> None:
    check_safe(html_of(source))


FILE = AttachmentRef("photo", "ab12", "cat.png", "image/png", 12)


def test_the_files_of_a_message_are_read_again_from_the_stored_row() -> None:
    update = make_update("c", "u", "id", "look", 1.0, files=[FILE])
    event = WebPlatform().normalise(update.raw)
    assert isinstance(event, MessageEvent)
    assert event.attachments == (FILE,)


@pytest.mark.parametrize(
    "files", ["x", [1], [[]], [["photo", "../x", None, None, 1]], [["photo", "ab", None, None, True]], [["a"] * 4]]
)
def test_files_that_the_page_did_not_name_are_poison(files: object) -> None:
    raw = json.loads(make_update("c", "u", "id", "look", 1.0).raw)
    with pytest.raises(Poison):
        WebPlatform().normalise(json.dumps({**raw, "files": files}))


async def test_a_file_is_given_out_within_its_bound() -> None:
    async def read(ref: str) -> bytes | None:
        return b"0123456789" if ref == "ab12" else None

    platform = WebPlatform()
    platform.read_file = read
    assert await platform.download(FILE, 10) == b"0123456789"
    for file, limit in ((FILE, 9), (replace(FILE, ref="gone"), 10)):
        with pytest.raises(PlatformFailure):
            await platform.download(file, limit)
