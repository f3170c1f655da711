"""Files, tests, tables, states and outcomes: what the pages name is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes.core.links import LinkState
from hermes.core.records import InboxState, OutboxState, Outcome, TurnState
from hermes.store.schema import MIGRATIONS
from tests.docs.pages import ROOT, inline_code, name_of, pages, section

PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+/?|[\w-]+\.(?:py|md|yaml|toml|lock)")
MADE_AT_RUN_TIME = {"config.yaml", "docs/performance.md", ".venv/bin/hermes"}
PATTERN = re.compile(r"\btest_[a-z0-9_]+\b")


def _exists(path: str, page: Path) -> bool:
    """As a path from the root, from ``hermes/`` or from the page; a bare name anywhere in the tree."""
    if "/" not in path:
        return any(any((ROOT / top).rglob(path)) for top in ("hermes", "tests", "docs")) or any(
            ROOT.glob(path)
        )
    module, _, name = path.rpartition(".")
    spellings = (path.rstrip("/"), f"{module}.py" if name.isidentifier() else path)
    return any(any(base.glob(one)) for base in (ROOT, ROOT / "hermes", page.parent) for one in spellings)


def _names_a_file(code: str) -> bool:
    if not PATH.fullmatch(code) or code in MADE_AT_RUN_TIME or re.search(r"[A-Z]{3}", code):
        return False
    top = code.split("/")[0]
    known = (ROOT / top).exists() or (ROOT / "hermes" / top).exists()
    return known or re.search(r"\.(?:py|md|yaml|toml|lock|jsonl)$", code) is not None


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = [code for code in inline_code(page) if _names_a_file(code)]
    assert not [code for code in named if not _exists(code, page)]


def test_the_check_itself_would_notice_a_file_that_is_gone() -> None:
    assert _names_a_file("gateway/invented.py")
    assert not _exists("gateway/invented.py", ROOT / "README.md")


def test_every_test_that_a_page_names_exists() -> None:
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    defined = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    said = {name for page in pages() for code in inline_code(page) for name in PATTERN.findall(code)}
    assert said
    assert said <= files | defined


def test_the_architecture_describes_every_table() -> None:
    script = "".join(MIGRATIONS)
    tables = set(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", script))
    said = set(re.findall(r"`(\w+)`", section("ARCHITECTURE.md", "`state.db`")))
    assert tables <= said


def test_the_architecture_names_every_state() -> None:
    text = section("ARCHITECTURE.md", "States")
    states = {*InboxState, *TurnState, *OutboxState, *LinkState}
    assert not [state for state in states if not re.search(rf"\b{state.value}\b", text)]


def test_the_guarantees_list_every_outcome_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section("docs/guarantees.md", "Outcomes"), re.MULTILINE)
    assert set(rows) == {outcome.value for outcome in Outcome}
    assert len(rows) == len(set(rows))


def test_every_crash_point_is_documented_and_no_other() -> None:
    reached = {
        name
        for path in (ROOT / "hermes").rglob("*.py")
        for name in re.findall(r'checkpoints\.reach\("(\w+)"\)', path.read_text(encoding="utf-8"))
    }
    said = set(re.findall(r"`(\w+)`", section("docs/testing.md", "Crash points")))
    assert reached == said & reached
    assert {name for name in said if re.match(r"(?:before|after|sending|drafting)", name)} == reached


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


DECISIONS = sorted((ROOT / "docs/adr").glob("*.md"))


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_short_and_says_why_what_and_what_follows(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert text.startswith(f"# {decision.name[:4]} ")
    assert all(f"\n## {part}\n" in text for part in ("Context", "Decision", "Consequences"))
    assert f"adr/{decision.name}" in (ROOT / "docs/index.md").read_text(encoding="utf-8")


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    missing = [
        name_of(page)
        for page in pages()
        if page.parent == ROOT / "docs" and page.name not in {"index.md"} and f"]({page.name})" not in index
    ]
    assert not missing
