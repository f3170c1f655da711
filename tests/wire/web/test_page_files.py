"""Files from the page: uploaded, named by a message, read by the turn; and what is refused, each with a sentence."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import Page, browser, rehearsing

pytestmark = pytest.mark.wire
SHA = "0" * 64


async def upload(page: Page, content: bytes, name: str = "notes.txt", mime: str = "text/plain") -> tuple[int, Any]:
    return await page.post(f"/api/upload?name={name}", content, {**page.origin, "Content-Type": mime})


async def test_a_file_of_the_page_is_read_by_the_turn_and_named_in_the_chat(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        status, body = await upload(page, b"the word is heron")
        assert status == 201, body
        sha = hashlib.sha256(b"the word is heron").hexdigest()
        assert body["file"] == {"ref": sha, "name": "notes.txt", "mime": "text/plain", "size": 17}
        key = str(uuid.uuid4())
        status, body = await page.post("/api/say", {"key": key, "text": "read it", "files": [body["file"]]})
        assert status == 202, body
        line = await stream.line("read it")
        assert line.data["text"] == "read it\n📎 notes.txt"
        answer = await stream.line("You said")
        assert "the word is heron" in answer.data["text"]


async def test_a_message_may_be_a_file_alone(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        _, body = await upload(page, b"only a file", "only.md", "text/markdown")
        status, _ = await page.post("/api/say", {"key": str(uuid.uuid4()), "text": "", "files": [body["file"]]})
        assert status == 202
        assert "You said" in (await stream.line("only a file")).data["text"]


GOOD = {"ref": SHA, "name": "a", "mime": "text/plain", "size": 1}


@pytest.mark.parametrize(
    "files",
    [
        "x", {}, [1], [{}], [{**GOOD, "ref": "../../etc/passwd"}], [{**GOOD, "ref": SHA.upper().replace("0", "G")}],
        [{**GOOD, "mime": "x"}], [{**GOOD, "mime": None}], [GOOD] * 11,
    ],
)  # fmt: skip
async def test_files_that_no_upload_answered_are_refused(gateway: Gateway, files: object) -> None:
    async with browser(gateway) as page:
        status, body = await page.post("/api/say", {"key": str(uuid.uuid4()), "text": "x", "files": files})
        assert status == 400
        assert "files" in body["error"]


async def test_a_file_that_is_not_kept_is_one_line_to_the_model(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        await page.post("/api/say", {"key": str(uuid.uuid4()), "text": "gone?", "files": [GOOD]})
        assert "could not be fetched" in (await stream.line("You said: “gone?")).data["text"]


async def test_uploads_need_the_sign_in_the_origin_and_some_bytes(gateway: Gateway) -> None:
    async with browser(gateway, token=None) as stranger:
        assert (await upload(stranger, b"x"))[0] == 401
    async with browser(gateway) as page:
        assert (await page.post("/api/upload", b"x", {"Origin": "http://other.example"}))[0] == 403
        assert (await upload(page, b""))[0] == 400


async def test_a_file_above_the_bound_is_refused_and_not_kept(tmp_path: Path) -> None:
    limits = {"platforms": {"web": {"max_upload_bytes": 1000}}}
    small = rehearsing(tmp_path / "home", limits).start()
    try:
        async with browser(small) as page:
            status, body = await upload(page, b"x" * 1001)
            assert status == 413
            assert "max_upload_bytes" in body["error"]
            assert (await upload(page, b"x" * 1000))[0] == 201
        assert len(list((small.home / "media").glob("*/*"))) == 1
    finally:
        small.close()
