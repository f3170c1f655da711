"""kill -9 at random moments while many people talk: nothing lost, nothing answered twice unmarked."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.wire.gateway.conftest import Played
from tests.wire.gateway.harness import lab
from tests.wire.gateway.random_kills import survive

pytestmark = pytest.mark.wire


def test_twenty_random_kills_under_load(played: Played) -> None:
    figures: str = played["random"].result()
    assert figures.startswith("20 kills"), figures
    sys.stdout.write(f"{figures}\n")


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_two_hundred_random_kills_under_load(tmp_path: Path, seed: int, part: int) -> None:
    with lab(tmp_path) as it:
        figures = survive(it, random.Random(seed), 50)
    assert figures.startswith("50 kills"), figures
    sys.stdout.write(f"part {part}, seed {seed}: {figures}\n")
