"""Every command, path and variable that a page names exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from hermes.cli.commands import app
from hermes.config.known import KNOWN
from tests.docs.pages import ROOT, blocks, inline_code, name_of, pages

OF_OTHERS = {"docs/configuration.md"}
"""Pages whose own tests look after them, and which name commands of later versions."""

OWN = [page for page in pages() if name_of(page) not in OF_OTHERS]
GLOBAL = {"--debug", "--json", "--version", "--help", "--help-all"}
VARIABLES = KNOWN | {
    "HERMES_HOME", "HERMES_CRASH_AT", "HERMES_TEST_SEED", "HERMES_TEST_LLM", "HERMES_PYTHON", "HERMES_CI_LONG",
    "HERMES_API_KEY",
}  # fmt: skip


def _commands() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        found[name] = command
        for inner, below in getattr(command, "commands", {}).items():
            found[f"{name} {inner}"] = below
    return found


COMMANDS = _commands()


def _said() -> list[tuple[str, list[str]]]:
    """Every `hermes …` in inline code and in shell blocks: where, and the words after ``hermes``."""
    found = []
    for page in OWN:
        found += [(name_of(page), code) for code in inline_code(page) if code.startswith("hermes ")]
    for block in blocks("sh"):
        for line in block.text.splitlines():
            for match in re.finditer(r"(?:^|/bin/|exec hermes )hermes ([^#&|;]+)", line):
                found.append((str(block), f"hermes {match.group(1)}"))
    return [(where, shlex.split(code)[1:]) for where, code in found]


def _problem(words: list[str]) -> str | None:
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    plain = [word for word in words if not word.startswith("-")]
    if not plain:
        return None if options <= GLOBAL else f"unknown options {options - GLOBAL}"
    name = " ".join(plain[:2]) if " ".join(plain[:2]) in COMMANDS else plain[0]
    command = COMMANDS.get(name)
    if command is None:
        return f"no command {plain[0]!r}"
    known = {option for parameter in command.params for option in parameter.opts} | GLOBAL
    return f"{name} has no {options - known}" if options - known else None


def test_every_command_that_a_page_names_exists() -> None:
    said = _said()
    assert len(said) > 30
    wrong = [
        f"{where}: hermes {' '.join(words)}: {problem}"
        for where, words in said
        if (problem := _problem(words))
    ]
    assert not wrong


def test_the_check_itself_would_notice_an_invented_command_or_option() -> None:
    assert _problem(["invent"])
    assert _problem(["status", "--colour"])
    assert _problem(["dead-letters", "list"]) is None


def test_the_changes_name_every_command() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not [name for name in COMMANDS if " " not in name and not re.search(rf"`{name}\b", changes)]


def _chat_commands() -> set[str]:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "hermes/gateway").glob("*.py")]
    return set(re.findall(r'CommandSpec\(\s*"(\w+)"', "".join(sources))) | {"rehearse"}


def _routes() -> set[str]:
    source = (ROOT / "hermes/web/server.py").read_text(encoding="utf-8")
    return {path.split("/{")[0] for path in re.findall(r'add_(?:get|post)\("([^"]+)"', source)}


@pytest.mark.parametrize("page", OWN, ids=name_of)
def test_every_slash_word_of_a_page_is_a_chat_command_or_an_address_of_the_server(page: Path) -> None:
    known = {f"/{name}" for name in _chat_commands()} | _routes()
    others = {
        "/newbot",
        "/setprivacy",
        "/v1",
        "/data",
        "/bot<token>",
        "/opt/hermes",
        "/etc/hermes/hermes.env",
    }
    wrong = {
        word
        for code in inline_code(page)
        if (word := code.split()[0]).startswith("/")
        if word not in known | others and not word.startswith("/var/lib/hermes")
    }
    assert not wrong


def test_readme_lists_the_chat_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`/(\w+)`", readme.partition("In a chat:")[2].partition("\n\n")[0]))
    assert said == _chat_commands() - {"start", "reset", "rehearse"}


@pytest.mark.parametrize("page", OWN, ids=name_of)
def test_every_variable_of_ours_that_a_page_names_is_read_by_somebody(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    families = r"(?:HERMES|TELEGRAM|DISCORD|SLACK|OPENAI|ANTHROPIC|OPENROUTER)_[A-Z_]+"
    assert set(re.findall(rf"\b{families}\b", text)) <= VARIABLES


@pytest.mark.parametrize("page", OWN, ids=name_of)
def test_every_metric_that_a_page_names_exists(page: Path) -> None:
    source = "".join(
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("hermes/runtime/metrics.py", "hermes/app/figures.py")
    )
    known = set(re.findall(r'"(hermes_\w+)"', source)) | {"hermes_data"}
    said = {
        word.removesuffix("_total") for word in re.findall(r"\bhermes_\w+", page.read_text(encoding="utf-8"))
    }
    assert said <= known
