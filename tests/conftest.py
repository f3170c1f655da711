"""Rules for every test: nothing left behind, choices repeatable by seed, skips by name and with a reason."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.capabilities import CHECKS
from tests.leaks import Snapshot, leaked_tasks

_ORDER = ("simulation", "wire", "browser", "llm", "root", "systemd", "docker", "long")
"""Cheap lanes first: a plain unit test ranks before all of these."""

SEED = int(os.environ.get("HERMES_TEST_SEED") or secrets.randbelow(2**31))

_COMMON = {
    "deadline": None,  # two shared cores: a slow example is no fault
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    "database": None,  # a failure is repeated by its seed, not by what an earlier run left on disk
}
settings.register_profile("ci", max_examples=60, **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="run the full crash, soak and property lanes as well"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.getoption("--long") else "ci")
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(SEED)


def pytest_report_header(config: pytest.Config) -> str:
    lane = "long" if config.getoption("--long") else "ci (--long for the full lanes)"
    return f"seed: HERMES_TEST_SEED={SEED}; lane: {lane}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"repeat with: HERMES_TEST_SEED={SEED}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    full = config.getoption("--long")
    for item in items:
        if not full and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long lane: runs with --long"))
    items.sort(key=_rank)  # stable: files keep their order within a lane


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, check in CHECKS.items():
        if item.get_closest_marker(name) and (reason := check()):
            pytest.skip(f"{name}: {reason}")


def _rank(item: pytest.Item) -> int:
    return max(
        (_ORDER.index(mark.name) + 1 for mark in item.iter_markers() if mark.name in _ORDER), default=0
    )


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A number of this test's own, made from the run's seed: the same seed gives the same number."""
    return zlib.crc32(f"{SEED}:{request.node.nodeid}".encode())


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Randomness that a run with the same seed repeats."""
    return random.Random(seed)


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up before the test's own fixtures, so it looks after they were torn down."""
    runner: asyncio.Runner | None = None
    function = getattr(request.node, "function", None)
    if "_function_scoped_runner" in request.fixturenames or asyncio.iscoroutinefunction(function):
        runner = request.getfixturevalue("_function_scoped_runner")
    before = Snapshot.take()
    yield
    left = leaked_tasks(runner) if runner is not None else []
    left += before.leftovers()
    if left:
        pytest.fail("left behind by this test:\n  " + "\n  ".join(left), pytrace=False)
