"""A power cut: the file system that holds the home is shut down under load, recovered, and served again."""

from __future__ import annotations

import pytest

from tests.wire.gateway.conftest import Played

pytestmark = [pytest.mark.wire, pytest.mark.root]


def test_a_power_cut_under_load_loses_nothing_acknowledged(played: Played) -> None:
    answered: int = played["power cut"].result()
    assert answered > 0
