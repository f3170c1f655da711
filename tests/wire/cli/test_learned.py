"""`hermes learned`, through a running gateway and without one; keys fetched during a chat stay out of its log."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.wire.cli.home import Home, sentence
from tests.wire.repairs.counter import portal

pytestmark = pytest.mark.wire

ROW = "INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?, ?, ?)"


def teach(home: Home, *models: str) -> None:
    """What repairs of earlier calls would have left; a gateway has run here once."""
    if not (home.path / "state.db").exists():
        assert home.hermes("chat", "hi").returncode == 0
    now = time.time()
    with closing(sqlite3.connect(home.path / "state.db")) as store, store:
        for model in models:
            store.execute(ROW, ("main", model, "max_output", "4096", now, now + 3600.0))


def listed(home: Home) -> list[str]:
    """What was learned about the models of ``teach``."""
    found = json.loads(home.hermes("learned", "list", "--json").stdout)
    return [fact["target"] for fact in found if fact["target"].startswith("main/")]


def test_a_home_that_does_not_exist_has_learned_nothing_and_is_not_made(home: Home) -> None:
    done = home.hermes("learned", "list")
    assert (done.returncode, done.stdout) == (0, "nothing was learned\n")
    assert json.loads(home.hermes("learned", "clear", "--json").stdout)["forgotten"] == 0
    assert json.loads(home.hermes("explain", "policy", "--json").stdout)["learned"] == []
    assert not home.path.exists()


def test_without_a_gateway_it_is_listed_and_forgotten_on_the_file(home: Home) -> None:
    teach(home, "small", "large")
    shown = home.hermes("learned", "list").stdout
    assert "main/small" in shown
    assert "answers of at most 4096 tokens" in shown
    done = home.hermes("learned", "clear", "main/small", "--json")
    assert json.loads(done.stdout) == {"target": "main/small", "forgotten": 1}
    assert listed(home) == ["main/large"]


def test_a_running_gateway_forgets_at_once(home: Home) -> None:
    teach(home, "small", "large")
    with home.gateway():
        assert "main/large" in home.hermes("explain", "policy").stdout
        wrong = home.hermes("learned", "clear", "main/other")
        assert wrong.returncode == 1
        assert "nothing was learned about 'main/other'" in sentence(wrong)
        assert home.hermes("learned", "clear").stdout.startswith("forgotten: ")
        assert listed(home) == []
    with closing(sqlite3.connect(home.path / "state.db")) as store:
        assert store.execute("SELECT count(*) FROM learned").fetchone() == (0,)


async def test_a_key_fetched_during_a_chat_stands_in_no_log(home: Home, tmp_path: Path) -> None:
    """The model's server repeats the key in its refusal; the chat runs without a gateway."""
    async def refuse(request: web.Request) -> web.Response:
        given = request.headers["authorization"]
        return web.json_response({"error": {"message": f"The key {given} is not known here"}}, status=403)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", refuse)
    async with portal() as found, TestServer(app, host="127.0.0.1") as server:
        url = str(server.make_url("/v1"))
        grant = {
            "kind": "oauth_refresh", "token_url": found.url, "client_id": "hermes", "refresh_token": "refresh-token-0",
        }  # fmt: skip
        home.path.mkdir(mode=0o700)
        (home.path / "config.yaml").write_text(
            json.dumps(
                {
                    "model": {"provider": "main", "model": "m"},
                    "providers": {"main": {"kind": "openai", "base_url": url, "credential": grant}},
                    "agent": {"api_max_retries": 0},
                }
            )
        )
        done = await asyncio.to_thread(home.hermes, "--debug", "chat", "hi")
        assert found.requests, "the key was fetched"
        logged = (home.path / "logs" / "chat.log").read_text("utf-8")
        assert "provider_failed" in logged
        for text in (logged, done.stdout, done.stderr):
            assert "access-token-" not in text
            assert "refresh-token-1" not in text
