"""Photos, an album, a document and a recording from Telegram through a real process to the model."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from hermes.simulators.images import openai_pictures
from tests.pictures import picture
from tests.wire.gateway.harness import KEY, TOKEN, lab

pytestmark = pytest.mark.wire
RED, BLUE, GREEN = picture(40, 30), picture(20, 60, "JPEG", "blue"), picture(64, 64, "JPEG", "green")
CANARY = "zephyr-canary-4711"
SETTINGS = {
    "providers": {"sim": {"models": {"m": {"images": True}}}},
    "transcription": {"provider": "sim", "model": "ears"},
    "agent": {"merge_window": 1.0},
    "output": {"level": "debug"},
}


def encoded(content: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(content).decode()}


def seen(request: dict[str, Any]) -> list[bytes | None]:
    return [shown.content for shown in openai_pictures(request["body"])]


def last_text(request: dict[str, Any]) -> str:
    return str(request["body"]["messages"][-1]["content"])


def test_what_people_attach_at_telegram_reaches_the_model(tmp_path: Path) -> None:
    with lab(tmp_path, settings=SETTINGS) as it:
        it.gateway.start()
        it.telegram.say(7, "one photo", photo=encoded(RED))
        it.telegram.wait(7, "You said", count=1)
        it.telegram.say(8, "an album", photo=encoded(BLUE), album="a1")
        it.telegram.say(8, None, photo=encoded(GREEN), album="a1")  # type: ignore[arg-type]
        it.telegram.wait(8, "You said", count=1)
        it.telegram.say(9, "read", document={"name": "notes.md", "text": f"# Herons\n{CANARY}"})
        it.telegram.wait(9, "You said", count=1)
        it.telegram.say(10, None, voice=encoded(b"OggS" + b"\0" * 996))  # type: ignore[arg-type]
        it.telegram.wait(10, "You said", count=1)
        photo, album, document, voice = it.model.requests()
        assert seen(photo) == [RED]
        assert seen(album) == [BLUE, GREEN]
        assert f"# Herons\n{CANARY}" in last_text(document)
        assert "1000 bytes" in last_text(voice), "what the simulated transcription heard"
        assert it.gateway.stop() == 0
        log = it.gateway.log_text()
        assert CANARY not in log
        assert TOKEN.partition(":")[2] not in log
        assert KEY not in log
        kept = {file.name for file in (it.gateway.home / "media").glob("*/*")}
        assert hashlib.sha256(RED).hexdigest() in kept
        assert len(kept) == 5
        assert {file.stat().st_mode & 0o777 for file in (it.gateway.home / "media").glob("*/*")} == {0o600}
        states = it.gateway.rows("SELECT DISTINCT state FROM attachments")
        assert states == [("fetched",)]


def test_killed_between_download_and_row_the_photo_is_fetched_once_more(tmp_path: Path) -> None:
    with lab(tmp_path, settings=SETTINGS) as it:
        it.gateway.start(crash_at="after_download")
        it.telegram.say(7, "look", photo=encoded(RED))
        assert it.gateway.wait_exit() == -9
        it.gateway.start()
        it.telegram.wait(7, "You said", count=1)
        [request] = it.model.requests()
        assert seen(request) == [RED]
        assert it.gateway.stop() == 0
        assert it.gateway.rows("SELECT outcome FROM inbox") == [("answered",)]
