"""A reply's Markdown for the page: the source, and HTML that is safe to put into a document.

Safe by construction: markdown-it-py with raw HTML disabled escapes everything that is not Markdown, and
only links with the schemes below become links (``https://spec.commonmark.org``; OWASP's advice for
Markdown is the same: no raw HTML, an allow-list of schemes). The page adds a Content-Security-Policy.

The payload is JSON: ``markdown``, ``html``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from hermes.core.errors import Poison
from hermes.core.records import OutgoingPart
from hermes.core.transcript import without_lone_surrogates

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

SCHEMES = ("http:", "https:", "mailto:")
MAX_MARKDOWN = 50_000  # characters; a longer text is shown as it is, for parsing it would hold the loop
MAX_BRACKETS = 2_000  # likewise: the parser's time grows with the square of unmatched ones
_IGNORED = re.compile(r"[\x00-\x20]+")


def render(text: str) -> tuple[OutgoingPart, ...]:
    """One part, whatever the length. Raises Poison when there is nothing to see."""
    text = without_lone_surrogates(text)
    if not text.strip():
        raise Poison("the reply has no visible text")
    body = {"markdown": text, "html": html_of(text)}
    return (OutgoingPart(json.dumps(body, ensure_ascii=False, separators=(",", ":"))),)


def html_of(text: str) -> str:
    """``text`` as safe HTML; total for any text."""
    if len(text) > MAX_MARKDOWN or text.count("[") > MAX_BRACKETS:
        return f"<pre>{escape(text)}</pre>"
    return str(_renderer().render(text))


def is_allowed(address: str) -> bool:
    """True for a link the page may show: an http, https or mailto address."""
    return _IGNORED.sub("", address).lower().startswith(SCHEMES)


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML

    class SafeRenderer(RendererHTML):
        """Links open elsewhere and tell nothing; images, which would be fetched, are links."""

        def link_open(
            self: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
        ) -> str:
            tokens[idx].attrSet("rel", "noopener noreferrer nofollow")
            tokens[idx].attrSet("target", "_blank")
            return str(self.renderToken(tokens, idx, options, env))

        def image(
            self: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
        ) -> str:
            shown = escape(tokens[idx].content or "image")
            address = escape(str(tokens[idx].attrGet("src") or ""))
            return f'<a href="{address}" rel="noopener noreferrer nofollow" target="_blank">{shown}</a>'

        def td_open(
            self: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
        ) -> str:
            """Alignment as a class: the page's policy allows no inline style."""
            align = str(tokens[idx].attrs.pop("style", "")).removeprefix("text-align:")
            if align in ("left", "center", "right"):
                tokens[idx].attrSet("class", align)
            return str(self.renderToken(tokens, idx, options, env))

        th_open = td_open

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=SafeRenderer)
    parser.enable(["table", "strikethrough"])
    allowed: Any = is_allowed
    parser.validateLink = allowed  # type: ignore[method-assign]
    return parser
