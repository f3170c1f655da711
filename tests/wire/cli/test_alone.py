"""No gateway runs: what still works, on the store alone or with a gateway for the length of a chat (R33)."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.wire.cli.home import Home, sentence

pytestmark = pytest.mark.wire

TELEGRAM = """
platforms:
  telegram: {enabled: true, token: "424242:simulated-token-of-a-bot", allowed_users: [7]}
"""

KEY = "sk-canary-0123456789abcdef0123"
DEAD_MODEL = f"""
model: {{provider: main, model: m}}
agent: {{api_max_retries: 0}}
providers:
  main: {{kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: "{KEY}"}}
"""


def _owner(home: Home) -> tuple[int, int]:
    """(generation, clean end) on disk; nothing runs now."""
    with closing(sqlite3.connect(home.path / "state.db")) as store:
        generation, clean = store.execute("SELECT generation, clean_end FROM owner").fetchone()
    return generation, clean


def test_the_first_chat_of_a_fresh_home_gets_its_answer(home: Home) -> None:
    done = home.hermes("chat", "hi")
    assert done.returncode == 0
    assert sentence(done) == ""
    assert "“hi”" in done.stdout
    assert not (home.path / "control.sock").exists()
    assert _owner(home)[1] == 1, "its end was clean"


def test_a_conversation_goes_on_from_one_chat_to_the_next(home: Home) -> None:
    home.hermes("chat", "one")
    assert "message 2 of this conversation" in home.hermes("chat", "two").stdout


def test_status_names_the_cure(home: Home) -> None:
    done = home.hermes("status")
    assert done.returncode == 1
    assert sentence(done) == f"hermes: no gateway runs in {home.path}: start it with `hermes run`\n"


def test_health_says_that_nobody_answers(home: Home) -> None:
    done = home.hermes("health")
    assert done.returncode == 1
    assert f"nobody answers at http://127.0.0.1:{home.port}/readyz" in done.stdout
    found = json.loads(home.hermes("health", "--json").stdout)
    assert found["ready"] is False
    assert len(found["reasons"]) == 1


def test_a_message_for_a_platform_waits_in_the_outbox(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text(TELEGRAM, "utf-8")
    done = home.hermes("send", "telegram:7", "by and by")
    assert done.returncode == 0
    assert "it goes out when a gateway runs here" in done.stdout
    with closing(sqlite3.connect(home.path / "state.db")) as store:
        rows = store.execute("SELECT platform, chat_id, state FROM outbox").fetchall()
    assert rows == [("telegram", "7", "pending")]


def test_the_mark_of_an_unclean_end_outlives_the_owners_actions(home: Home) -> None:
    home.hermes("send", "web:cli", "hi")
    for clean, action in ((1, ("send", "web:cli", "hi")), (0, ("dead-letters", "list"))):
        with closing(sqlite3.connect(home.path / "state.db")) as store:
            store.execute("UPDATE owner SET clean_end=?", (clean,))
            store.commit()
        before = _owner(home)
        assert home.hermes(*action).returncode == 0
        assert _owner(home) == before == (before[0], clean)


def test_a_dead_letter_is_listed_tried_again_and_dropped(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text(TELEGRAM, "utf-8")
    home.hermes("send", "telegram:7", "first")
    _bury(home.path)
    [letter] = json.loads(home.hermes("dead-letters", "list", "--json").stdout)
    assert (letter["id"], letter["platform"], letter["chat"], letter["state"]) == (
        "out:1",
        "telegram",
        "7",
        "failed",
    )
    shown = home.hermes("dead-letters", "list").stdout
    assert "out:1" in shown
    assert "chat\N{REPLACEMENT CHARACTER}[31m not found" in shown, "what others wrote steers no terminal"
    assert home.hermes("dead-letters", "retry", "out:1").stdout.startswith("out:1 is tried once more when")
    assert _states(home) == ["pending"]
    _bury(home.path)
    assert home.hermes("dead-letters", "drop", "out:1").stdout.startswith("out:1 is off the list")
    assert home.hermes("dead-letters", "list").stdout == "no dead letters\n"


def _states(home: Home) -> list[str]:
    with closing(sqlite3.connect(home.path / "state.db")) as store:
        return [state for (state,) in store.execute("SELECT state FROM outbox")]


def _bury(home: Path) -> None:
    with closing(sqlite3.connect(home / "state.db")) as store:
        store.execute("UPDATE outbox SET state='failed', reason=?", ("chat\x1b[31m not found",))
        store.commit()


@pytest.mark.parametrize("arguments", [("send", "web:cli", "hi"), ("chat", "hi"), ("dead-letters", "list")])
def test_a_home_that_is_held_but_does_not_listen_is_a_sentence(
    home: Home, arguments: tuple[str, ...]
) -> None:
    home.path.mkdir()
    lock = os.open(home.path / "gateway.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home.hermes(*arguments)
    finally:
        os.close(lock)
    assert done.returncode == 1
    assert "it is starting or stopping; try again in a moment" in sentence(done)


def test_a_socket_that_a_killed_gateway_left_behind_does_not_matter(home: Home) -> None:
    with home.gateway() as gateway:
        gateway.kill()
        gateway.wait(30)
    assert (home.path / "control.sock").exists()
    assert home.hermes("status").returncode == 1
    assert "“after the kill”" in home.hermes("chat", "after the kill").stdout


def test_a_chat_speaks_to_no_platform(home: Home) -> None:
    home.path.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as telegram:
        base = f"http://127.0.0.1:{telegram.getsockname()[1]}"
        section = TELEGRAM.replace("enabled: true", f'enabled: true, base_url: "{base}"')
        (home.path / "config.yaml").write_text(section, "utf-8")
        home.hermes("send", "telegram:7", "waits")
        assert home.hermes("chat", "hi").returncode == 0
        telegram.setblocking(False)
        with pytest.raises(BlockingIOError):
            telegram.accept()
    with closing(sqlite3.connect(home.path / "state.db")) as store:
        assert store.execute("SELECT state FROM outbox WHERE platform='telegram'").fetchall() == [
            ("pending",)
        ]


def test_log_lines_go_to_a_file_and_hold_no_secret(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text(DEAD_MODEL, "utf-8")
    done = home.hermes("chat", "hi")
    log = (home.path / "logs" / "chat.log").read_text("utf-8")
    assert "provider_failed" in log
    assert "provider_failed" not in done.stdout + done.stderr
    assert KEY not in log + done.stdout + done.stderr


def test_a_dead_model_makes_status_fail_and_name_it(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text(DEAD_MODEL, "utf-8")
    with home.gateway():
        home.hermes("chat", "hi")
        done = home.hermes("status")
        found = json.loads(home.hermes("status", "--json").stdout)
    assert done.returncode == 1
    assert "model main/m" in done.stdout
    assert {item["name"]: item["light"] for item in found["items"]}["model main/m"] == "bad"
