"""The environment is read in one place; ``.env`` lies below it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.config.dotenv import parse_dotenv
from hermes.config.environment import Environment


def test_the_home_is_hermes_home_or_a_folder_in_the_users_home(tmp_path: Path) -> None:
    assert Environment.of({"HERMES_HOME": str(tmp_path)}).home == tmp_path
    assert Environment.of({"HOME": str(tmp_path)}).home == tmp_path / ".hermes"
    assert Environment.of({"HOME": str(tmp_path), "HERMES_HOME": "~/x"}).home == tmp_path / "x"


def test_the_environment_wins_over_dotenv(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\nHERMES_HOME=elsewhere\n")
    read = Environment.of({"HERMES_HOME": str(tmp_path), "A": "process"})
    assert (read.variables["A"], read.variables["B"]) == ("process", "file")
    assert read.home == tmp_path
    assert read.dotenv == {"B"}


def test_no_value_shows_in_its_repr() -> None:
    assert "canary" not in repr(Environment.of({"HOME": "x", "OPENAI_API_KEY": "canary"}))


def test_what_systemd_says_is_understood(tmp_path: Path) -> None:
    environ = {
        "HERMES_HOME": str(tmp_path),
        "NOTIFY_SOCKET": "@n",
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": "7",
        "INVOCATION_ID": "x",
        "JOURNAL_STREAM": "8:1",
        "XDG_RUNTIME_DIR": str(tmp_path),
        "NO_COLOR": "1",
        "HERMES_CRASH_AT": "t1",
    }
    read = Environment.of(environ, pid=7)
    assert (read.notify_socket, read.watchdog, read.under_systemd, read.journal) == ("@n", 30.0, True, True)
    assert (read.runtime_dir, read.no_color, read.crash_at) == (tmp_path, True, "t1")
    assert Environment.of(environ, pid=8).watchdog is None


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "²", "9" * 40])
def test_a_watchdog_of_nonsense_is_none(text: str) -> None:
    assert Environment.of({"HOME": "x", "WATCHDOG_USEC": text}).watchdog is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("K=v", "v"),
        ("export K=v", "v"),
        ("  K = v  ", "v"),
        ("K=", ""),
        ("K=a=b", "a=b"),
        ("K=v # remark", "v"),
        ("K=v#no", "v#no"),
        ("K=#remark", ""),
        ('K="a b # c"', "a b # c"),
        ("K='a \"b\"'", 'a "b"'),
        (r'K="a\nb\"c\\"', 'a\nb"c\\'),
        (r"K='a\nb'", r"a\nb"),
        ('K="v" # remark', "v"),
        ("K=$HOME", "$HOME"),
    ],
)
def test_a_line_of_dotenv_is_read_as_a_shell_would(line: str, value: str) -> None:
    assert parse_dotenv(line, ".env") == ({"K": value}, ())


@pytest.mark.parametrize(
    "line", ["canary", "K-x=canary", "1K=canary", 'K="canary', "K='canary' x", "=canary"]
)
def test_a_bad_line_of_dotenv_is_named_and_not_quoted(line: str) -> None:
    values, (problem,) = parse_dotenv(f"# first\n{line}\nGOOD=1\n", ".env")
    assert values == {"GOOD": "1"}
    assert problem.line == 2
    assert "canary" not in problem.render()


def test_a_dotenv_that_cannot_be_read_is_a_problem_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert "a directory" in Environment.of({"HERMES_HOME": str(tmp_path)}).problems[0].found
    other = tmp_path / "other"
    other.mkdir()
    (other / ".env").write_bytes(b"A=1\nB=\xff\n")
    (problem,) = Environment.of({"HERMES_HOME": str(other)}).problems
    assert (problem.line, problem.found) == (2, "bytes that are not UTF-8")


def test_importing_it_brings_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys, hermes.config.environment as e; print({'pydantic', 'yaml', 'asyncio'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
