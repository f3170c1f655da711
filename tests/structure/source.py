"""Reads the project's own source for the structure tests."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file; `name` is its path from the repository's root, with forward slashes."""

    name: str
    text: str
    tree: ast.Module

    def within(self, *places: str) -> bool:
        """True if the file is one of `places`: a file's path, or a folder's path ending in a slash."""
        return any(
            self.name.startswith(place) if place.endswith("/") else self.name == place for place in places
        )

    def at(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


@functools.cache
def modules(top: str) -> tuple[Module, ...]:
    """Every Python file under a folder of the repository, in order of name."""
    found = []
    for path in sorted((ROOT / top).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(ROOT).as_posix(), text, ast.parse(text, str(path))))
    return tuple(found)


def imported(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every absolute module name that is imported anywhere in the file, type-checking blocks included."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node, node.module
            for alias in node.names:
                yield node, f"{node.module}.{alias.name}"


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a chain of names and attributes; an unknown start is `?`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "?"


def attributes(module: Module) -> Iterator[tuple[ast.Attribute, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            yield node, dotted(node)


def calls(module: Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def texts(module: Module) -> Iterator[tuple[ast.Constant, str]]:
    """String constants that are no docstrings."""
    documentation = {
        id(node.value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node, node.value


@functools.cache
def tracked() -> tuple[Path, ...]:
    """What git tracks; where this is no clone (an unpacked archive), every file that git would not ignore."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        return tuple(
            path for name in done.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()
        )
    skipped = re.compile(r"(^|/)(\.venv[^/]*|__pycache__|\.[a-z_]+_cache|\.git)/")
    return tuple(
        path
        for path in sorted(ROOT.rglob("*"))
        if path.is_file() and not skipped.search(path.as_posix() + "/")
    )
