"""What must not be in any tracked file, and links that must lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.structure.source import ROOT, tracked

# Written in pieces, so that this file does not name what it forbids.
HOSTS = re.compile(
    r"(?:py" + r"pi\.org|python" + r"hosted\.org|npm" + r"js\.(?:org|com)|deb" + r"ian\.org|crates" + r"\.io"
    r"|go" + r"lang\.org|repo\.maven|registry-1\.)"
)
MACHINE = re.compile(
    r"(?<![\w.$}~-])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me/\w+|opt/(?:wheels|py" + r"pi))(?:/|\b)"
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
SECRET = re.compile(r"\b(?:sk-ant-[\w-]{60,}|xox[bap]-\d{9,}-[\w-]{10,}|ghp_\w{30,}|AKIA[0-9A-Z]{16})\b")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def _lines_with(pattern: re.Pattern[str], *, data: bool = True) -> list[str]:
    found = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if not data and name.startswith("tests/data/"):
            continue
        for number, line in enumerate((_text(path) or "").splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{name}:{number}: {match.group()}")
    return found


def test_no_tracked_file_names_a_package_registry() -> None:
    assert not _lines_with(HOSTS)


def test_no_tracked_file_holds_a_path_of_the_machine_it_was_written_on() -> None:
    assert not _lines_with(MACHINE, data=False)


def test_no_tracked_file_holds_what_looks_like_a_real_credential() -> None:
    assert not _lines_with(SECRET, data=False)


def test_no_file_is_meant_to_be_ignored() -> None:
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in tracked()
        if re.search(
            r"(^|/)(\.env|state\.db.*|__pycache__|\.DS_Store|.*\.pyc|.*\.orig|.*\.rej)$", path.as_posix()
        )
    ]
    assert not wrong


def _anchors(text: str) -> set[str]:
    """Heading anchors as the common renderers make them."""
    found = set()
    for line in text.splitlines():
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            plain = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def _documents() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md" and "data" not in path.parts]


@pytest.mark.parametrize("document", _documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    broken = []
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for match in LINK.finditer(text):
        target = match.group(1) or match.group(2)
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        file = (document.parent / place).resolve() if place else document
        known = _anchors(file.read_text(encoding="utf-8")) if file.suffix == ".md" and file.exists() else None
        if not file.exists() or (anchor and known is not None and anchor not in known):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-llm.lock"])
def test_every_locked_package_is_pinned_and_hashed_and_no_index_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    wrong = [
        line[:60] for line in lines if not re.match(r"[\w.\-]+==[\w.+!]+.*--hash=sha256:[0-9a-f]{64}", line)
    ]
    assert lines
    assert not wrong
    assert "://" not in text
    assert "--index" not in text
    assert "--extra-index" not in text
    assert "--find-links" not in text
