"""A program of its own: a PDF or a Word document on stdin, its text on stdout. Run by ``documents``.

It imports nothing of the gateway, holds no secret, and has bounds of its own on memory and on what it writes.
"""

from __future__ import annotations

import contextlib
import io
import sys
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree

MEMORY = 1 << 30
"""Bytes of address space: a document that needs more is not read."""
ROOM = 1 << 20
"""Characters written at most."""
UNPACKED = 64 << 20
"""Bytes of a packed part that are read at most."""
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def pages_of_pdf(content: bytes) -> Iterator[str]:
    """The text of each page."""
    import logging

    import pypdf

    logging.disable(logging.CRITICAL)  # its warnings quote the document
    for page in pypdf.PdfReader(io.BytesIO(content)).pages:
        yield page.extract_text()


def paragraphs_of_word(content: bytes) -> Iterator[str]:
    """The text of each paragraph of the document's body."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed, packed.open("word/document.xml") as part:
        root = ElementTree.fromstring(part.read(UNPACKED))
    for paragraph in root.iter(f"{_WORD}p"):
        yield "".join(_words(paragraph))


def _words(paragraph: ElementTree.Element) -> Iterator[str]:
    for node in paragraph.iter():
        if node.tag == f"{_WORD}t":
            yield node.text or ""
        elif node.tag == f"{_WORD}tab":
            yield "\t"
        elif node.tag == f"{_WORD}br":
            yield "\n"


def main() -> int:
    """Exit code 0 when the text was written."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    content = sys.stdin.buffer.read()
    reader = pages_of_pdf if sys.argv[1] == "pdf" else paragraphs_of_word
    room = ROOM
    for text in reader(content):
        sys.stdout.write(text[:room] + "\n")
        room -= len(text)
        if room <= 0:
            break
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
