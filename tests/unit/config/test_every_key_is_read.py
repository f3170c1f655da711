"""No key is silently ignored: it is read by the code, or its owner is told that it does nothing yet."""

from __future__ import annotations

import ast
from pathlib import Path

import hermes
from hermes.config.catalogue import keys
from hermes.config.unbuilt import UNBUILT
from tests.unit.config.loading import PLATFORMS, PROVIDERS, load_text

ROOT = Path(next(iter(hermes.__path__)))


def attributes_read() -> set[str]:
    """Every name that code outside the configuration takes from an object; ``prices`` reads what the file says."""
    names: set[str] = set()
    for file in ROOT.rglob("*.py"):
        if file.name == "config.py" or (file.parent == ROOT / "config" and file.name != "prices.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                names.add(node.attr)
            elif isinstance(node, ast.MatchClass):
                names.update(node.kwd_attrs)
    return names


KEYS = {key.name: key.path[-1] for key in keys(PLATFORMS, PROVIDERS) if not key.section}


def test_a_key_that_no_code_reads_is_on_the_list_of_what_does_nothing_yet() -> None:
    read = attributes_read()
    unread = {name for name, last in KEYS.items() if last not in read and not last.endswith("_file")}
    assert unread - UNBUILT == set(), "read these keys, or add them to hermes/config/unbuilt.py"


def test_a_key_that_is_read_has_left_the_list() -> None:
    read = {
        name for name in attributes_read() if "_" in name
    }  # a single word is read off something else too often
    assert {name for name in UNBUILT if KEYS[name] in read} == set(), (
        "take these out of hermes/config/unbuilt.py"
    )


def test_whoever_sets_a_key_that_does_nothing_yet_is_told_so(tmp_path: Path) -> None:
    name = min((one for one in UNBUILT if one.startswith("retention.")), default=None)
    if name is None:
        return
    notices = load_text(f"retention: {{{KEYS[name]}: 9}}\n", tmp_path).notices
    assert f"set, but without effect in this version: {name}" in notices
