"""`--version` and `--help`: what they cost and what they say (FIRST_HOUR 3); bad usage; output that goes nowhere."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from tests.wire.cli.home import HERMES, ROOT, Home, sentence

pytestmark = pytest.mark.wire

HEAVY = ("pydantic", "rich", "typer", "asyncio", "aiohttp", "yaml", "structlog", "sqlite3")


def _cpu(*command: str) -> float:
    """CPU seconds of one run, start of the interpreter included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("option", ["--version", "--help", "--help-all"])
def test_version_and_help_cost_at_most_a_third_of_a_second_of_cpu(option: str) -> None:
    assert min(_cpu(*HERMES, option) for _ in range(3)) <= 0.3


@pytest.mark.parametrize("option", ["--version", "--help", "version"])
def test_version_and_help_load_no_library(option: str) -> None:
    code = (
        "import os, runpy, sys\n"
        f"sys.argv = ['hermes', {option!r}]\n"
        f"def leave(code): os.write(2, ' '.join(m for m in {HEAVY!r} if m in sys.modules).encode()); raise SystemExit\n"
        "os._exit = leave\n"
        "runpy.run_module('hermes', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_help_fits_a_terminal_and_shows_ten_commands(home: Home) -> None:
    lines = home.hermes("--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 95
    assert len([line for line in lines if line.startswith("  ")]) == 10


def test_no_arguments_show_the_help(home: Home) -> None:
    assert home.hermes().stdout == home.hermes("--help").stdout


def test_every_command_that_help_names_exists(home: Home) -> None:
    shown = [
        line.split()[:2] for line in home.hermes("--help-all").stdout.splitlines() if line.startswith("  ")
    ]
    commands = [words for words in shown if not words[0].startswith("-")]
    assert len(commands) >= 11
    for words in commands:
        path = words if words[0] == "explain" else words[:1]
        assert home.hermes(*path, "--help").returncode == 0, path


def test_help_of_one_command_can_be_asked_for_in_each_way(home: Home) -> None:
    wanted = home.hermes("send", "--help")
    assert "PLATFORM:CHAT" in wanted.stdout
    for other in (("send", "-h"), ("help", "send")):
        assert home.hermes(*other).stdout == wanted.stdout


def test_version_speaks_to_people_and_programs(home: Home) -> None:
    from hermes import __version__

    assert home.hermes("version").stdout == f"hermes {__version__}\n"
    assert json.loads(home.hermes("--json", "--version").stdout) == {"version": __version__}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("statsu",), "did you mean status?"),
        (("dead_letters",), "did you mean dead-letters?"),
        (("frobnicate",), "there is no command 'frobnicate'; `hermes --help`"),
        (("run", "--confg", "x"), "--confg"),
        (("send",), "TARGET"),
        (("send", "web:cli"), "TEXT"),
        (("dead-letters",), "hermes dead-letters --help"),
        (("dead-letters", "lst"), "Did you mean 'list'?"),
        (("help", "statsu"), "did you mean status?"),
        (("explain", "error"), "--jsonl"),
        (("check", "surplus"), "hermes check --help"),
        (("chat", " "), "nothing to say"),
    ],
)
def test_bad_usage_is_one_line_with_its_cure_and_code_2(
    home: Home, arguments: tuple[str, ...], says: str
) -> None:
    done = home.hermes(*arguments)
    assert done.returncode == 2
    assert says in sentence(done)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_output_that_cannot_be_written_is_a_failure_without_a_traceback(home: Home) -> None:
    for sink in (os.open("/dev/full", os.O_WRONLY), _broken_pipe()):
        done = subprocess.run(
            [*HERMES, "explain", "policy"],
            cwd=ROOT, env=home.environ(), stdout=sink, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        os.close(sink)
        assert done.stderr == ""
        assert done.returncode == 1


def _broken_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_a_terminal_without_unicode_gets_escapes_and_no_error(home: Home) -> None:
    home.extra |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = home.hermes("explain", "policy")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "most calls in all" in done.stdout
