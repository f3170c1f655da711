"""Rules for the tests themselves: no waiting by the clock, no patching, lanes kept apart (R28)."""

from __future__ import annotations

import ast
import re

import pytest

from tests.structure.source import Module, calls, dotted, imported, modules

LANES = ("simulation", "wire", "browser", "systemd", "docker", "llm", "root")
WAITING = "tests/waiting.py"
"""The one file that may let real time pass: it polls a condition and stops the moment it holds."""

VIRTUAL = "tests/simulation/"
"""There the loop's clock is virtual: an `asyncio.sleep` costs no time and is repeated exactly."""

OUTSIDE_OF_A_SIMULATION = (
    "socket",
    "subprocess",
    "threading",
    "multiprocessing",
    "concurrent.futures",
)


def _zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def test_no_test_sleeps() -> None:
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("tests")
        if module.name != WAITING
        for node, name in calls(module)
        if name in {"time.sleep", "asyncio.sleep", "sleep"} and not _zero(node)
        if name != "asyncio.sleep" or not module.name.startswith(VIRTUAL)
    ]
    assert not wrong, "wait for the condition: tests.waiting.until"


def test_no_test_patches_or_mocks() -> None:
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("tests")
        for node, name in [*imported(module), *calls(module)]
        if re.match(r"(unittest\.mock|mock|pytest_mock)\b", name)
        or re.search(r"monkeypatch\.(setattr|delattr|setitem|delitem)$", name)
        or name in {"mocker.patch", "patch", "patch.object", "Mock", "MagicMock", "AsyncMock"}
    ]
    assert not wrong, "give the object its collaborator instead"


def test_no_test_is_skipped_without_a_word_or_expected_to_fail() -> None:
    wrong = []
    for module in modules("tests"):
        for node, name in calls(module):
            named = any(keyword.arg == "reason" for keyword in node.keywords) or node.args
            if name in {"pytest.mark.xfail", "pytest.xfail"} or (name.endswith("mark.skip") and not named):
                wrong.append(f"{module.at(node)} {name}")
    assert not wrong


def _marks(module: Module) -> set[str]:
    return {
        dotted(node).removeprefix("pytest.mark.")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and dotted(node).startswith("pytest.mark.")
    }


@pytest.mark.parametrize("lane", LANES)
def test_every_file_of_a_lanes_folder_carries_its_marker(lane: str) -> None:
    wrong = [
        module.name
        for module in modules("tests")
        if module.name.startswith(f"tests/{lane}/")
        and module.name.rpartition("/")[2].startswith("test_")
        and lane not in _marks(module)
    ]
    assert not wrong


def test_a_simulation_opens_nothing_outside_of_it() -> None:
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("tests")
        if module.name.startswith("tests/simulation/")
        for node, name in imported(module)
        if any(name == package or name.startswith(package + ".") for package in OUTSIDE_OF_A_SIMULATION)
    ]
    assert not wrong


def test_every_test_can_fail() -> None:
    """A test without an assertion, an expectation or a call of a check proves nothing."""
    wrong = []
    for module in modules("tests"):
        if not module.name.rpartition("/")[2].startswith("test_"):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                inside = list(ast.walk(node))
                asserts = any(isinstance(child, ast.Assert | ast.Raise) for child in inside)
                called = {
                    dotted(child.func).rpartition(".")[2] for child in inside if isinstance(child, ast.Call)
                }
                checks = any(
                    re.match(r"(raises|fail|assert_|check|expect|until|wait_|warns)", name) for name in called
                )
                if not asserts and not checks:
                    wrong.append(f"{module.at(node)} {node.name}")
    assert not wrong
