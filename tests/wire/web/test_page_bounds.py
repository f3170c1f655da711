"""What the page's calls take and what they refuse; each refusal is a sentence."""

from __future__ import annotations

import asyncio
import signal
import uuid
from pathlib import Path

import pytest

from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import WITHIN, Page, browser, rehearsing

pytestmark = pytest.mark.wire

KEY = "11111111-2222-4333-8444-555555555555"


async def _lines(page: Page, text: str) -> list[str]:
    _, recent = await page.get("/api/recent")
    return [line["text"] for line in recent["lines"] if text in line["text"]]


async def test_one_key_is_one_line_however_often_it_is_posted(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        key = str(uuid.uuid4())
        first = await page.post("/api/say", {"key": key, "text": "said once"})
        again = await page.post("/api/say", {"key": key, "text": "said once"})
        await stream.line("You said: “said once”")
        third = await page.post("/api/say", {"key": key, "text": "said once"})
        assert [status for status, _ in (first, again, third)] == [202, 202, 202]
        assert [body["duplicate"] for _, body in (first, again, third)] == [False, True, True]
        await page.say("and another")
        await stream.line("You said: “and another”")
        assert len(await _lines(page, "said once")) == 2  # the line and its answer


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"key": KEY, "text": ""}, 400, "text"),
        ({"key": KEY, "text": " \n\t"}, 400, "text"),
        ({"key": KEY, "text": None}, 400, "text"),
        ({"key": KEY, "text": ["x"]}, 400, "text"),
        ({"key": KEY}, 400, "text"),
        ({"text": "x"}, 400, "key"),
        ({"key": "short", "text": "x"}, 400, "key"),
        ({"key": "k" * 81, "text": "x"}, 400, "key"),
        ({"key": "\ud800" * 10, "text": "x"}, 400, "key"),
        ({"key": 12345678, "text": "x"}, 400, "key"),
        ({"key": KEY, "text": "x" * 2001}, 413, "max_message_bytes"),
        ({"key": KEY, "text": "é" * 1001}, 413, "max_message_bytes"),
        ({"key": KEY, "text": "x" * 100_000}, 413, "max_message_bytes"),
        ([], 400, "JSON object"),
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 5000, 400, "not JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_is_no_message_is_refused_with_its_reason(
    gateway: Gateway, body: object, status: int, named: str
) -> None:
    async with browser(gateway) as page:
        found, answer = await page.post("/api/say", body)
        assert found == status, answer
        assert named in answer["error"]


@pytest.mark.parametrize("text", ["\ud800 alone", "nul \x00 inside", "é" * 1000, "\u202e back", "<b>&amp;"])
async def test_strange_text_is_a_message_like_any_other(gateway: Gateway, text: str) -> None:
    async with browser(gateway) as page, page.events() as stream:
        key = await page.say(text)
        said = await stream.until(lambda e: e.name == "line" and e.data["key"] == key)
        assert said.data["text"] == text.replace("\ud800", "\N{REPLACEMENT CHARACTER}")
        answer = await stream.until(lambda e: e.name == "line" and e.data["speaker"] == "agent")
        assert "<b>" not in answer.data["html"]


async def test_streams_are_bounded_and_a_closed_one_makes_room(tmp_path: Path) -> None:
    """A page that went away is noticed long before the next heartbeat."""
    small = rehearsing(
        tmp_path / "home", {"platforms": {"web": {"max_streams": 1, "heartbeat": 600}}}
    ).start()
    try:
        async with browser(small) as page:
            async with page.events() as only:
                await only.until(lambda e: e.name == "hello")
                status, body = await page.get("/api/events")
                assert status == 503
                assert "max_streams" in body["error"]
                assert (await page.get("/api/health"))[0] == 200
            async with asyncio.timeout(WITHIN):
                while await _stream_is_refused(page):
                    pass
    finally:
        small.close()


async def _stream_is_refused(page: Page) -> bool:
    async with page.session.get(f"{page.url}/api/events") as trial:
        return trial.status == 503


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "/api/say", 405), ("DELETE", "/", 405), ("GET", "/api/say", 405), ("HEAD", "/api/events", 405),
     ("GET", "/static/../auth.py", 404), ("GET", "/static/auth.py", 404), ("GET", "/static/%2e%2e%2fauth.py", 404)],
)  # fmt: skip
async def test_other_methods_and_other_files_are_refused(
    gateway: Gateway, method: str, path: str, status: int
) -> None:
    async with (
        browser(gateway) as page,
        page.session.request(method, page.url + path, headers=page.origin) as answer,
    ):
        assert answer.status == status


async def test_new_limits_are_in_force_at_the_next_call(tmp_path: Path) -> None:
    own = rehearsing(tmp_path / "home").start()
    try:
        async with browser(own) as page:
            long = "long " * 100
            await page.say(long)
            web = {"max_message_bytes": 100, "heartbeat": 1}
            own.write_config({**own.config, "platforms": {"web": web}})
            own.signal(signal.SIGHUP)
            async with asyncio.timeout(WITHIN):
                while (await page.post("/api/say", {"key": str(uuid.uuid4()), "text": long}))[0] != 413:
                    pass
            async with page.events() as stream:
                assert (await stream.until(lambda e: e.name == "hello")).data["heartbeat"] == 1
            own.write_config({**own.config, "platforms": {"web": {"max_message_bytes": 500_000}}})
            own.signal(signal.SIGHUP)
            longer = "x" * 400_000
            async with asyncio.timeout(WITHIN):
                while (await page.post("/api/say", {"key": str(uuid.uuid4()), "text": longer}))[0] != 202:
                    pass
    finally:
        own.close()
