"""Scenarios that mostly wait (a possible repeat waits 30 s for its mark) are played at the same time, once.

Each is a future: a test asks for its own and sees that one's failure.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from tests.capabilities import need_root
from tests.wire.gateway import kill_points, outages, power_cut, random_kills
from tests.wire.gateway.harness import Model, Telegram, lab, simulators

LABS = 4

Played = Mapping[Any, Future[Any]]


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """By scenario; only what a collected test asks for is played."""
    tmp = tmp_path_factory.mktemp("played")
    files = {Path(item.path).name for item in request.session.items}
    outsides: SimpleQueue[tuple[Telegram, Model]] = SimpleQueue()
    with contextlib.ExitStack() as stack:
        futures: dict[Any, Future[Any]] = {}
        seed = int(request.config.getoption("--hypothesis-seed"))  # the run's own, printed at its top
        with ThreadPoolExecutor(LABS + 6) as pool:
            if "test_power_cut.py" in files and need_root() is None:
                futures["power cut"] = pool.submit(power_cut.play, tmp / "power", seed)
            if "test_random_kills.py" in files:
                futures["random"] = pool.submit(_random_kills, tmp / "random", seed)
            if "test_outages.py" in files:
                futures |= {outage: pool.submit(outages.play, tmp, outage) for outage in outages.OUTAGES}
                futures["receipt"] = pool.submit(outages.play_lost_receipt, tmp)
            if "test_kill_points.py" in files:
                for _ in range(LABS):
                    outsides.put(stack.enter_context(simulators()))
                first_long = sorted(kill_points.SCENARIOS, key=lambda s: not kill_points.doubtful(s))
                for number, scenario in enumerate(first_long):
                    futures[scenario] = pool.submit(partial(kill_points.play, outsides, tmp, number, scenario))
        yield futures


def _random_kills(tmp: Path, seed: int) -> str:
    with lab(tmp) as it:
        return f"{random_kills.survive(it, random.Random(seed), 20)}, seed {seed}"
