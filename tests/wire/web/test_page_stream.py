"""R21: what is stored reaches a browser by position: nothing missing, nothing twice, whatever was cut."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import aiohttp
import pytest

from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import WITHIN, Heard, Stream, browser, rehearsing

pytestmark = pytest.mark.wire


def _order(heard: Heard) -> tuple[int, int]:
    seq, _, inbox = heard.data["position"].partition(".")
    return int(seq), int(inbox)


def _is_turn(kind: str, heard: Heard) -> bool:
    return heard.name == "live" and heard.data["kind"] == kind


async def _read_to_the_end(stream: Stream) -> None:
    """Raises TimeoutError when the stream does not end."""
    try:
        while True:
            await stream.next()
    except (EOFError, aiohttp.ClientError):  # ended, or torn off
        return


async def test_a_line_and_its_answer_arrive_once_and_in_order(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        await page.say("one by one")
        await stream.line("You said: “one by one”")
        positions = [_order(line) for line in stream.lines]
        assert positions == sorted(positions)
        assert len({line.data["position"] for line in stream.lines}) == len(stream.lines)
        assert all(line.id == line.data["position"] for line in stream.lines)


async def test_live_pieces_come_before_the_stored_line(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        await stream.until(lambda e: e.name == "hello")
        await page.say("/rehearse cut")
        await stream.line("The call before it failed once on purpose")
        kinds = [e.data["kind"] for e in stream.heard if e.name == "live"]
        assert kinds[0] == "turn_started"
        assert "notice" in kinds
        assert kinds.index("text") < kinds.index("notice") < len(kinds) - 1 - kinds[::-1].index("text")
        notice = next(e.data for e in stream.heard if _is_turn("notice", e))
        assert "trying again in" in notice["text"]
        assert notice["detail"] == "retry"


async def test_a_browser_that_comes_in_the_middle_sees_what_was_shown_so_far(gateway: Gateway) -> None:
    async with browser(gateway) as page:
        async with page.events() as first:
            await first.until(lambda e: e.name == "hello")
            await page.say("/rehearse slow")
            await first.until(lambda e: _is_turn("text", e))
            await first.until(lambda e: _is_turn("text", e))
        async with page.events() as late:
            await late.until(lambda e: _is_turn("turn_started", e))
            shown = await late.until(lambda e: _is_turn("text", e))
            assert shown.data["text"].startswith("This answer ")
            status, _ = await page.post("/api/stop", {"key": "stop-" + "0" * 12})
            assert status == 202
            await late.line("topped")
            assert not any("That was all." in line.data["text"] for line in late.lines)


async def test_a_cut_stream_goes_on_where_it_was(gateway: Gateway) -> None:
    async with browser(gateway) as page:
        async with page.events() as before:
            await page.say("before the cut")
            await before.line("You said: “before the cut”")
        last = before.lines[-1].id
        assert last is not None
        await page.say("during the cut")
        async with page.events(**{"Last-Event-ID": last}) as after:
            await after.line("You said: “during the cut”")
        seen = [(line.data["speaker"], line.data["text"]) for line in before.lines + after.lines]
        assert sum("before the cut" in text for _, text in seen) == 2
        assert sum("during the cut" in text for _, text in seen) == 2
        _, recent = await page.get("/api/recent")
        assert [line["position"] for line in recent["lines"]][-4:] == [
            line.data["position"] for line in (before.lines + after.lines)[-4:]
        ]


async def test_the_browsers_own_position_is_worth_more_than_the_addresss(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        await page.say("for the position")
        last = (await stream.line("You said: “for the position”")).id or ""
        async with page.events(after="0.0", **{"Last-Event-ID": last}) as again:
            await again.until(lambda e: e.name == "hello")
            assert again.lines == []


@pytest.mark.parametrize("position", ["nonsense", "1", "-1.-1", "1.x", "9" * 60, "%00", "1.1.1"])
async def test_a_position_nobody_gave_means_the_beginning(gateway: Gateway, position: str) -> None:
    async with browser(gateway) as page, page.events(after=position) as stream:
        await stream.until(lambda e: e.name == "hello")
        assert stream.lines


async def test_an_idle_stream_gives_signs_of_life(gateway: Gateway) -> None:
    async with browser(gateway) as page, page.events() as stream:
        hello = await stream.until(lambda e: e.name == "hello")
        assert hello.data["heartbeat"] == 1
        await stream.until(lambda e: e.name == "beat")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_restart_loses_no_line_and_repeats_none(tmp_path: Path, how: signal.Signals) -> None:
    gateway = rehearsing(tmp_path / "home").start()
    try:
        async with browser(gateway) as page:
            async with page.events() as before:
                await page.say("first")
                await before.line("You said: “first”")
                await page.say("second")
                await before.until(lambda e: e.name == "line" and e.data["speaker"] == "person")
                gateway.signal(how)
                await _read_to_the_end(before)
            gateway.wait_exit()
            gateway.start()
            last = before.lines[-1].id
            assert last is not None
            async with page.events(**{"Last-Event-ID": last}) as after:
                await page.say("third")
                await after.line("You said: “third”")
        seen = [line.data["text"] for line in before.lines + after.lines]
        for word in ("first", "second", "third"):
            assert seen.count(word) == 1, seen
            assert sum(f"You said: “{word}”" in text for text in seen) == 1, seen
    finally:
        gateway.close()


async def test_a_cookie_survives_the_restart(tmp_path: Path) -> None:
    gateway = rehearsing(tmp_path / "home").start()
    try:
        async with browser(gateway) as page:
            assert gateway.stop() == 0
            gateway.start()
            assert (await page.get("/api/health"))[0] == 200
    finally:
        gateway.close()


async def test_open_streams_do_not_hold_up_the_end(tmp_path: Path) -> None:
    gateway = rehearsing(tmp_path / "home", {"platforms": {"web": {"heartbeat": 60}}}).start()
    try:
        async with browser(gateway) as page, page.events() as one, page.events() as two:
            for stream in (one, two):
                await stream.until(lambda e: e.name == "hello")
            begun = time.monotonic()
            gateway.signal(signal.SIGTERM)
            await asyncio.gather(_read_to_the_end(one), _read_to_the_end(two))
            assert time.monotonic() - begun < 2.0
        assert gateway.wait_exit() == 0
    finally:
        gateway.close()


async def test_an_answer_under_way_is_finished_before_the_end(tmp_path: Path) -> None:
    config = {
        "providers": {"r": {"kind": "rehearsal", "speed": 0.2}},
        "model": {"provider": "r", "model": "r"},
    }
    gateway = rehearsing(tmp_path / "home", config).start()
    try:
        async with browser(gateway) as page, page.events() as stream:
            await stream.until(lambda e: e.name == "hello")
            await page.say("/rehearse slow")
            await stream.until(lambda e: _is_turn("text", e))
            gateway.signal(signal.SIGTERM)
            await stream.line("That was all.")
            await _read_to_the_end(stream)
        assert gateway.wait_exit(WITHIN) == 0
    finally:
        gateway.close()
