"""A picture of a chat: what the simulators' records say a user sees, as a page, and its screenshot.

``python -m tests.browser.chat_picture SOURCE.md DIRECTORY`` renders a Markdown file on each platform, reads the
parts as the simulators do, and writes ``chat-PLATFORM.html`` and, where chromium is there, ``chat-PLATFORM.png``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hermes.platforms.discord.render import render as render_discord
from hermes.platforms.slack.render import render as render_slack
from hermes.platforms.telegram.render import render as render_telegram
from hermes.simulators.discord_text import Node, read_text
from tests.capabilities import chromium

_TAGS = {
    "bold": "b", "italic": "i", "strikethrough": "s", "strike": "s", "code": "code", "pre": "pre", "underline": "u",
    "blockquote": "blockquote", "text_link": "a", "link": "a", "quote": "blockquote", "small": "small",
}  # fmt: skip
_STYLE = """
body{margin:0;padding:24px;font:15px/1.42 "Noto Sans","DejaVu Sans",sans-serif;width:640px;background:var(--page)}
.m{background:var(--bubble);color:var(--ink);border-radius:12px;padding:10px 14px;margin:0 0 10px;white-space:pre-wrap;
overflow-wrap:anywhere;width:fit-content;max-width:600px}
.me{margin-left:auto;background:var(--mine)} a{color:var(--link)} code,pre{font-family:"DejaVu Sans Mono",monospace;
font-size:13px;background:var(--code);border-radius:4px;padding:0 3px}
pre{padding:8px;margin:4px 0;white-space:pre;overflow:hidden}
blockquote{border-left:3px solid var(--link);margin:2px 0;padding-left:8px} .spoiler{background:#888;color:transparent;
border-radius:4px} ul,ol{margin:2px 0;padding-left:26px} hr{border:0;border-top:1px solid #8888} h1,h2,h3{margin:4px 0}
"""
_COLOURS = {
    "telegram": "--page:#c6d9b8;--bubble:#fff;--mine:#e1fec6;--ink:#111;--link:#168acd;--code:#eef3f7",
    "discord": "--page:#313338;--bubble:#383a40;--mine:#404249;--ink:#dbdee1;--link:#00a8fc;--code:#2b2d31",
    "slack": "--page:#fff;--bubble:#f8f8f8;--mine:#eaf4fb;--ink:#1d1c1d;--link:#1264a3;--code:#f0eef0",
}


def telegram_html(text: str, entities: Sequence[Mapping[str, Any]]) -> str:
    """A message's text with its entities, which are properly nested."""
    units = text.encode("utf-16-le")
    cut = lambda start, end: escape(units[2 * start : 2 * end].decode("utf-16-le"))  # noqa: E731
    pieces, at, stack = [], 0, []
    for entity in [*entities, {"offset": len(units) // 2, "length": 0, "type": ""}]:
        while stack and stack[-1][0] <= entity["offset"]:
            end, closing = stack.pop()
            pieces += [cut(at, end), closing]
            at = end
        pieces.append(cut(at, entity["offset"]))
        at = entity["offset"]
        if entity["length"]:
            opening, closing = _tag(entity["type"], str(entity.get("url", "")))
            pieces.append(opening)
            stack.append((at + entity["length"], closing))
    return "".join(pieces)


def _tag(kind: str, address: str = "") -> tuple[str, str]:
    if kind == "spoiler":
        return '<span class="spoiler">', "</span>"
    tag = _TAGS[kind]
    return (f'<{tag} href="{escape(address)}">' if tag == "a" else f"<{tag}>"), f"</{tag}>"


def discord_html(nodes: Iterable[Node]) -> str:
    """Nodes of the simulator's reader."""
    pieces = []
    for node in nodes:
        inner = escape(node.text) or discord_html(node.children)
        match node.kind:
            case "text":
                pieces.append(inner)
            case "heading":
                pieces.append(f"<h{node.extra}>{inner}</h{node.extra}>")
            case "item":
                mark = "•" if node.extra in "-*" else node.extra
                pieces.append(f'<div style="margin-left:{12 + 18 * node.depth}px">{mark} {inner}</div>')
            case _:
                opening, closing = _tag(node.kind, node.extra)
                pieces.append(opening + inner + closing)
    return "".join(pieces)


def slack_html(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Blocks of rich text and dividers."""
    pieces = []
    for block in blocks:
        if block["type"] == "divider":
            pieces.append("<hr>")
        pieces += map(_element, block["elements"] if block["type"] == "rich_text" else ())
    return "".join(pieces)


def _element(element: Mapping[str, Any]) -> str:
    if element["type"] == "rich_text_list":
        tag = "ul" if element["style"] == "bullet" else "ol"
        items = "".join(f"<li>{_element(item)}</li>" for item in element["elements"])
        start = f' start="{element.get("offset", 0) + 1}"' if tag == "ol" else ""
        found = f'<{tag}{start} style="margin-left:{18 * element["indent"]}px">{items}</{tag}>'
    else:
        inner = "".join(map(_inline, element["elements"]))
        tag = {"rich_text_preformatted": "pre", "rich_text_quote": "blockquote"}.get(element["type"], "div")
        found = f"<{tag}>{inner}</{tag}>"
    return f"<blockquote>{found}</blockquote>" if element.get("border") else found


def _inline(element: Mapping[str, Any]) -> str:
    text = escape(element.get("text") or element.get("url", ""))
    for style in element.get("style", {}):
        opening, closing = _tag(style)
        text = opening + text + closing
    return f'<a href="{escape(element["url"])}">{text}</a>' if element["type"] == "link" else text


def page(platform: str, messages: Sequence[str]) -> str:
    """A chat's messages, each HTML already, as one page."""
    shown = "".join(f'<div class="m">{message}</div>' for message in messages)
    return (
        f"<!doctype html><meta charset=utf-8><style>:root{{{_COLOURS[platform]}}}{_STYLE}</style>"
        f"<body>{shown}</body>"
    )


def messages_of(platform: str, source: str) -> list[str]:
    """The parts of a Markdown text as the platform's user sees them."""
    render = {"telegram": render_telegram, "discord": render_discord, "slack": render_slack}[platform]
    bodies = [json.loads(part.payload) for part in render(source)]
    match platform:
        case "telegram":
            return [telegram_html(body["text"], body.get("entities", ())) for body in bodies]
        case "discord":
            return [discord_html(read_text(body["text"])) for body in bodies]
        case _:
            return [
                slack_html(body["blocks"]) if "blocks" in body else escape(body["text"]) for body in bodies
            ]


def main(source: Path, directory: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for platform in _COLOURS:
            file = directory / f"chat-{platform}.html"
            file.write_text(page(platform, messages_of(platform, source.read_text())))
            view = browser.new_page(viewport={"width": 690, "height": 400}, device_scale_factor=1.5)
            view.goto(file.resolve().as_uri())
            view.screenshot(path=str(file.with_suffix(".png")), full_page=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
