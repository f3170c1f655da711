"""A file above 400 lines, or a function above 60, is a sign that two thoughts share it."""

from __future__ import annotations

import ast

import pytest

from tests.structure.source import ROOT, modules, tracked

FILE_LINES = 400
FUNCTION_LINES = 60
VAGUE = frozenset(
    {"util", "utils", "helper", "helpers", "manager", "managers", "msg", "cfg", "misc", "common"}
)

TOPS = ("hermes", "tests")


@pytest.mark.parametrize("top", TOPS)
def test_no_file_is_longer_than_400_lines(top: str) -> None:
    long = [
        f"{module.name}: {count}"
        for module in modules(top)
        if (count := len(module.text.splitlines())) > FILE_LINES
    ]
    assert not long


@pytest.mark.parametrize("top", TOPS)
def test_no_function_is_longer_than_60_lines(top: str) -> None:
    long = []
    for module in modules(top):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
                count = (node.end_lineno or node.lineno) - first + 1
                if count > FUNCTION_LINES:
                    long.append(f"{module.at(node)} {node.name}: {count}")
    assert not long


def test_no_script_style_or_page_file_is_longer_than_400_lines() -> None:
    kinds = {".sh", ".js", ".css", ".html"}
    long = [
        f"{path.relative_to(ROOT)}: {count}"
        for path in tracked()
        if (path.suffix in kinds or path.parent.name == "scripts")
        and "data" not in path.parts
        and (count := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES
    ]
    assert not long


@pytest.mark.parametrize("top", TOPS)
def test_no_module_has_a_name_that_says_nothing(top: str) -> None:
    vague = [
        module.name
        for module in modules(top)
        if VAGUE.intersection(
            part for piece in module.name.removesuffix(".py").split("/") for part in piece.split("_")
        )
    ]
    assert not vague
