"""The text of documents: plain formats, web pages, PDF and Word, and what is none of them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.runtime.documents import document_text, page_text, plain_text
from hermes.runtime.offload import Offload

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.fixture
async def offload() -> AsyncIterator[Offload]:
    made = Offload()
    yield made
    made.close()


def pdf(*pages: str) -> bytes:
    """The smallest PDF with these pages (ASCII)."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        body = len(objects)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 << "
            b"/Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>" % body
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        out + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
        + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    )  # fmt: skip


def docx(*paragraphs: str) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "mime", "text"),
    [
        (b"plain", "a.txt", "text/plain", "plain"),
        ("Grüße 世界".encode(), "a.md", "text/markdown", "Grüße 世界"),
        ("Grüße".encode("cp1252"), "a.txt", "text/plain", "Grüße"),
        ("Grüße".encode("utf-16"), "a.txt", "text/plain", "Grüße"),
        ("Grüße".encode("utf-8-sig"), "a.csv", "", "Grüße"),
        (b"def f():\n\treturn 1\n", "a.py", "application/octet-stream", "def f():\n\treturn 1\n"),
        (b"", "a.txt", "text/plain", ""),
        (b"a\0b", "a.txt", "text/plain", None),
        (b"\x89PNG\r\n\x1a\n\0", "a.png", "image/png", None),
        ("Grüße".encode("cp1252"), "a.bin", "application/octet-stream", None),
    ],
)
def test_text_is_read_in_the_encoding_it_is_in(content: bytes, name: str, mime: str, text: str | None) -> None:
    assert plain_text(content, name, mime) == text


def test_a_page_is_read_as_a_reader_sees_it() -> None:
    html = """<!doctype html><html><head><title>no</title><style>p {}</style></head><body>
      <h1>Herons &amp; others</h1><p>They <b>stand</b> still.<br>Long.</p><script>var x = "</p>";</script>
      <table><tr><td>a</td><td>b</td></tr></table></body></html>"""
    assert page_text(html).splitlines() == ["Herons & others", "They stand still.", "Long.", "a b"]


@given(st.text(alphabet="<>/&;pscriptyle \"'=!-[]", max_size=200))
def test_broken_markup_is_read_all_the_same(html: str) -> None:
    assert isinstance(page_text(html), str)


async def test_a_pdf_is_read_in_a_child_of_its_own(offload: Offload) -> None:
    text = await document_text(offload, pdf("The first page", "The second page"), "a.pdf", "application/pdf", 30.0)
    assert text == "The first page\nThe second page"


async def test_a_word_document_is_read_in_a_child_of_its_own(offload: Offload) -> None:
    assert await document_text(offload, docx("One", "Two"), "a.docx", DOCX, 30.0) == "One\nTwo"


@pytest.mark.parametrize("content", [b"%PDF-1.4\nnothing", b"", b"%PDF-1.7\n" + b"\xff" * 500])
async def test_a_broken_pdf_is_no_text(offload: Offload, content: bytes) -> None:
    assert await document_text(offload, content, "a.pdf", "application/pdf", 30.0) is None


async def test_a_document_that_takes_too_long_is_no_text_and_its_child_is_gone(offload: Offload) -> None:
    assert await document_text(offload, pdf("x"), "a.pdf", "application/pdf", 0.001) is None
    assert len(offload.children) == 0
