"""Canaries: every configured secret, in every common form, sent back to us through every error path (R40)."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tests.waiting import until
from tests.wire.gateway.harness import Lab, lab

pytestmark = pytest.mark.wire
BOT = "424242:cAnArYtOkEn_of-the-bot_98765"
KEY = 'c4nary/k+y"=%&{provider}0123456789'
API_KEY = "canary-of-our-own-api/entrance+42"
PIECE = 12
"""So many characters of a secret in a row give it away."""

SETTINGS = {
    "providers": {"sim": {"api_key": KEY}},
    "gateway": {"api_key": API_KEY},
    "output": {"level": "debug"},
    "agent": {"retry_base": 0.05, "retry_cap": 0.05},
}


def forms(secret: str) -> list[str]:
    """As it is, quoted for a URL, escaped for JSON, and inside base64 in its three alignments."""
    encoded = [base64.b64encode(b"x" * shift + secret.encode()).decode() for shift in range(3)]
    once = json.dumps(secret)[1:-1]
    return [secret, quote(secret, safe=""), quote_plus(secret), once, json.dumps(once)[1:-1], *encoded,
            base64.urlsafe_b64encode(secret.encode()).decode()]  # fmt: skip


def pieces(secret: str) -> set[str]:
    """Every run of PIECE characters of each form; of base64 only what depends on the secret alone."""
    plain = [secret, quote(secret, safe=""), json.dumps(secret)[1:-1]]
    found = {text[at : at + PIECE] for text in plain for at in range(len(text) - PIECE + 1)}
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret.encode()).decode()
        inner = encoded[4 : (shift + len(secret.encode())) * 8 // 6]
        found |= {inner[at : at + PIECE] for at in range(len(inner) - PIECE + 1)}
    return found


class Canaries:
    """The secrets of one gateway, and what is planted of them."""

    def __init__(self, page_token: str) -> None:
        bot = BOT.partition(":")[2]
        self.secrets = {"bot token": bot, "provider key": KEY, "api key": API_KEY, "page token": page_token}
        self._pieces = {name: pieces(secret) for name, secret in self.secrets.items()}

    def planted(self, *limits: int) -> Iterator[str]:
        """Texts that a server might send back: all forms, and secrets where a limit would cut them."""
        for secret in (BOT, *self.secrets.values()):
            yield "your credentials: " + " ".join(forms(secret))
            for limit in limits:
                yield f"{'x ' * ((limit - len(secret) + 6) // 2)}{secret} and more"

    def check_absent(self, where: str, text: str) -> None:
        for name, found in self._pieces.items():
            leaked = sorted(piece for piece in found if piece in text)
            at = text.find(leaked[0]) if leaked else 0
            assert not leaked, f"{name} in {where}: …{text[max(0, at - 200) : at + 60]}…"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Canaries]]:
    with lab(tmp_path_factory.mktemp("secrets"), settings=SETTINGS, token=BOT, key=KEY) as it:
        it.gateway.start()
        page = json.loads((it.gateway.home / "credentials.json").read_text())["page_token"]
        yield it, Canaries(page)


_chats = count(10)


def settle(it: Lab) -> None:
    """A message through the whole path: what came before it is over, and its lines are written."""
    it.telegram.order("clear_faults")
    it.model.order("clear_faults")
    chat = 59
    text = f"«settled {next(_chats)}»"
    it.telegram.say(chat, text)
    it.telegram.wait(chat, text, within=60)


def test_nothing_a_provider_echoes_is_written_down_or_told(shared: tuple[Lab, Canaries]) -> None:
    it, canaries = shared
    it.telegram.say(10, "begin")
    it.telegram.wait(10, "begin")
    told = 1
    for text in canaries.planted(200, 256, 300, 400, 500, 512, 1000, 1024, 2000, 4000):
        for fault in (
            {"kind": "error", "status": 401, "message": text, "headers": {"x-echo": quote(text[:500])}},
            {"kind": "error", "status": 400, "message": text, "code": text[:300]},
        ):
            it.model.script(fault)
            it.telegram.say(10, f"«{told}»")
            told += 1
            until(lambda: len(it.telegram.texts(10)) == told, within=20, why="it is told", every=0.02)  # noqa: B023
    first = next(canaries.planted())
    for fault in (
        {"kind": "stream_error", "after": 1, "message": first, "code": first},
        {"kind": "html", "status": 502},
        {"kind": "reply", "status": 500, "body": first},
        {"kind": "reply", "status": 200, "body": first, "content_type": "text/html"},
        {"kind": "reply", "status": 200, "body": f"data: {first}\n\n", "content_type": "text/event-stream"},
        {"kind": "error", "status": 429, "message": first, "headers": {"retry-after": first[:100]}},
    ):  # fmt: skip
        it.model.script(fault)
        settle(it)
    canaries.check_absent("the log", it.gateway.log_text())
    canaries.check_absent("the chat", "\n".join([*it.telegram.texts(10), *it.telegram.texts(59)]))


def test_nothing_telegram_echoes_is_written_down(shared: tuple[Lab, Canaries]) -> None:
    it, canaries = shared
    planted = list(canaries.planted(500))
    for number, text in enumerate(planted):
        it.telegram.fault("error", status=400, message=f"Bad Request: {text}", contains=f"«{number}»", times=None)
        it.telegram.say(11 + number, f"«{number}»")
    until(lambda: len(it.gateway.events("delivery_lost")) == len(planted), within=60, why="each is given up")
    first = next(canaries.planted())
    it.telegram.order("clear_faults")
    it.telegram.fault("error", status=500, message=first, endpoint="getUpdates")
    settle(it)
    it.telegram.fault("reply", status=502, body=first, endpoint="getUpdates")
    settle(it)
    it.telegram.fault("reset", endpoint="getUpdates")
    settle(it)
    canaries.check_absent("the log", it.gateway.log_text())


def test_nothing_stands_on_a_page_or_in_the_figures(shared: tuple[Lab, Canaries]) -> None:
    it, canaries = shared
    it.model.script({"kind": "error", "status": 401, "message": next(canaries.planted())})
    it.telegram.say(58, "once more")
    it.telegram.wait(58, "credential")
    token = canaries.secrets["page token"]
    for path in ("/", "/healthz", "/readyz", "/startupz", "/metrics", "/api/health", "/api/recent", "/static/app.js",
                 f"/{token}", f"/static/{token}", f"/api/{KEY.replace(' ', '')}"):  # fmt: skip
        for headers in ({}, {"Authorization": f"Bearer {token}"}, {"Authorization": f"Bearer {KEY}"}):
            canaries.check_absent(path[:20], _get(f"{it.gateway.url}{quote(path)}", headers))
    body = json.dumps({"token": KEY}).encode()
    canaries.check_absent("/api/login", _get(f"{it.gateway.url}/api/login", {"Origin": it.gateway.url}, body))
    canaries.check_absent("the log", it.gateway.log_text())


def test_nothing_stands_in_the_rows_of_errors(shared: tuple[Lab, Canaries]) -> None:
    it, canaries = shared
    it.model.script({"tool": "read_file", "arguments": {"path": f"no/such/{KEY}"}})
    settle(it)
    canaries.check_absent("the log", it.gateway.log_text())
    assert it.gateway.stop() == 0
    for sql in (
        "SELECT outcome_reason, outcome_ref, problem FROM inbox",
        "SELECT reason, state FROM outbox",
        "SELECT reason, outcome, cause FROM turns",
        "SELECT name, kind FROM journal",
        "SELECT * FROM ledger",
        "SELECT * FROM upstreams",
        "SELECT * FROM learned",
        "SELECT * FROM links",
    ):
        canaries.check_absent(sql, json.dumps(it.gateway.rows(sql), ensure_ascii=False))
    _check_file(it, canaries)


def _check_file(it: Lab, canaries: Canaries) -> None:
    """Nowhere in the file but where the model itself said it (its call is the conversation)."""
    with closing(sqlite3.connect(f"file:{it.gateway.home / 'state.db'}?mode=ro", uri=True)) as conn:
        tables = [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for table in tables:
            if not table.startswith("messages"):
                found: list[tuple[Any, ...]] = conn.execute(f"SELECT * FROM {table}").fetchall()
                canaries.check_absent(f"table {table}", repr(found))


def _get(url: str, headers: dict[str, str], body: bytes | None = None) -> str:
    request = urllib.request.Request(url, headers=headers, data=body)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return f"{answer.headers}{answer.read().decode('utf-8', 'replace')}"
    except urllib.error.HTTPError as error:
        return f"{error.headers}{error.read().decode('utf-8', 'replace')}"


def test_the_configuration_is_never_echoed_by_a_refused_start(tmp_path: Path) -> None:
    with lab(tmp_path, settings={**SETTINGS, "agnet": {"api_key": KEY}}, token=BOT) as it:
        assert it.gateway.start(ready=False).wait_exit() == 78
        canaries = Canaries("not-made-yet-0123456789")
        canaries.check_absent("the refusal", it.gateway.log_text())
        assert "agnet" in it.gateway.log_text()
