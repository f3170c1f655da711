"""Exit code 78, all problems at once, no secret and no traceback (FIRST_HOUR 4 and 5)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.wire.cli.home import Home, sentence

pytestmark = pytest.mark.wire

SECRET = "sk-very-secret-0123456789abcdef"
BROKEN = f"""
modle: {{provider: main}}
agent:
  api_max_retries: -1
compression:
  threshold: 5.0
providers:
  main: {{kind: opnai, api_key: "{SECRET}"}}
"""


@pytest.mark.parametrize("command", ["check", "run"])
def test_all_problems_are_told_at_once_with_file_and_line(home: Home, command: str) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text(BROKEN, "utf-8")
    done = home.hermes(command)
    said = sentence(done)
    assert done.returncode == 78
    for place in (
        ":2: modle",
        ":4: agent.api_max_retries",
        ":6: compression.threshold",
        ":8: providers.main.kind",
    ):
        assert f"config.yaml{place}" in said
    assert "did you mean model?" in said
    assert SECRET not in said + done.stdout
    assert not (home.path / "state.db").exists()


def test_problems_for_programs(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text(BROKEN, "utf-8")
    done = home.hermes("check", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 78
    assert found["ok"] is False
    assert {problem["line"] for problem in found["problems"]} >= {2, 4, 6, 8}
    assert SECRET not in done.stdout


def test_check_says_what_run_would_run_with(home: Home) -> None:
    found = json.loads(home.hermes("check", "--json").stdout)
    assert found["ok"] is True
    assert found["model"] == "rehearsal/rehearsal"
    assert home.hermes("check").stdout.startswith("ok: model rehearsal/rehearsal; platforms web;")
    assert not home.path.exists(), "check changes nothing"


@pytest.mark.parametrize(
    "command", [("check",), ("run",), ("chat", "hi"), ("send", "web:cli", "hi"), ("explain", "config")]
)
def test_a_bad_file_refuses_whatever_needs_it(home: Home, command: tuple[str, ...]) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text("agent: [1]\n", "utf-8")
    done = home.hermes(*command)
    assert done.returncode == 78
    assert "config.yaml:1: agent" in sentence(done)


def test_an_absent_config_file_that_was_named_is_refused(home: Home) -> None:
    done = home.hermes("run", "--config", str(home.path / "nope.yaml"))
    assert done.returncode == 78
    assert "there is no such file" in sentence(done)


@pytest.mark.parametrize(
    "command", [("run",), ("chat", "hi"), ("send", "web:cli", "hi"), ("dead-letters", "list")]
)
def test_a_store_of_another_program_is_refused_and_left_alone(home: Home, command: tuple[str, ...]) -> None:
    home.path.mkdir()
    with closing(sqlite3.connect(home.path / "state.db")) as other:
        other.execute("CREATE TABLE theirs(x)")
        other.commit()
    before = (home.path / "state.db").read_bytes()
    done = home.hermes(*command)
    assert done.returncode == 78, done.stderr
    assert "hermes import" in sentence(done)
    assert (home.path / "state.db").read_bytes() == before


def test_a_newer_schema_is_refused(home: Home) -> None:
    assert home.hermes("send", "web:cli", "hi").returncode == 0
    with closing(sqlite3.connect(home.path / "state.db")) as newer:
        newer.execute("PRAGMA user_version=9999")
    done = home.hermes("run")
    assert done.returncode == 78
    assert "newer" in sentence(done)


def test_a_traceback_is_shown_to_those_who_ask_for_it(home: Home) -> None:
    done = home.hermes("send", "nowhere:1", "hi", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "no platform 'nowhere' is configured" in done.stderr
