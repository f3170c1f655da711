"""The text of a document that a person sent. Plain formats here, for ``offload``'s pool ``cpu``; PDF and Word in a
killable child (``packed_documents``), since their parsers may hang on what strangers make.
"""

from __future__ import annotations

import codecs
import sys
from html.parser import HTMLParser
from pathlib import PurePath

from hermes.runtime import packed_documents
from hermes.runtime.children import ChildTimeout
from hermes.runtime.offload import Offload, OffloadFull, OffloadTimeout

PACKED = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
_PACKED_ENDINGS = {".pdf": "pdf", ".docx": "docx"}
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_HTML_ENDINGS = frozenset({".html", ".htm", ".xhtml"})
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27}
_SNIFFED = 8192
_BLOCKS = frozenset({
    "p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "header", "footer",
    "table", "ul", "ol", "pre", "blockquote", "dd", "dt", "figcaption",
})  # fmt: skip
_UNREAD = frozenset({"script", "style", "noscript", "template", "svg", "head"})
CHILD_ROOM = 1 << 20
"""Bytes of text that a child may give; more than any prompt takes."""


async def document_text(
    offload: Offload, content: bytes, name: str, mime: str, seconds: float
) -> str | None:
    """The whole text; None when it is none that can be read within ``seconds``."""
    kind = PACKED.get(mime) or _PACKED_ENDINGS.get(PurePath(name.lower()).suffix)
    try:
        if kind is not None:
            return await _in_child(offload, content, kind, seconds)
        return await offload.run("cpu", plain_text, content, name, mime, timeout=seconds)
    except (OffloadFull, OffloadTimeout, ChildTimeout, OSError):
        return None


async def _in_child(offload: Offload, content: bytes, kind: str, seconds: float) -> str | None:
    program = [sys.executable, "-I", "-X", "utf8", packed_documents.__file__, kind]
    result = await offload.run_process(program, input=content, timeout=seconds, max_output=CHILD_ROOM)
    text = result.stdout.decode("utf-8", "replace").strip()
    return text or None if result.code == 0 else None


def plain_text(content: bytes, name: str, mime: str) -> str | None:
    """Text files of any kind, and the words of a web page; None for what is no text."""
    text = _decoded(content, is_text=mime.startswith("text/"))
    if text is None:
        return None
    if mime in _HTML or PurePath(name.lower()).suffix in _HTML_ENDINGS:
        return page_text(text)
    return text


def _decoded(content: bytes, *, is_text: bool) -> str | None:
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            return content.decode(encoding, "replace")
    if any(byte in _CONTROLS for byte in content[:_SNIFFED]):
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace") if is_text else None


def page_text(html: str) -> str:
    """What a reader of a page sees, a line a block; never raises for broken markup."""
    reader = _Page()
    reader.feed(html)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.found).splitlines())
    return "\n".join(line for line in lines if line)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD:
            self._unread += 1
        elif tag in _BLOCKS:
            self.found.append("\n")
        elif tag in ("td", "th"):
            self.found.append("\t")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNREAD:
            self._unread = max(0, self._unread - 1)
        elif tag in _BLOCKS:
            self.found.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.found.append(data)
