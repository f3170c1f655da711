"""`hermes usage` on a store that nobody runs."""

from __future__ import annotations

import json

import pytest

from tests.wire.cli.home import Home

pytestmark = pytest.mark.wire


def test_calls_are_listed_by_model_and_by_day(home: Home) -> None:
    empty = json.loads(home.hermes("usage", "--json").stdout)
    assert (empty["today"]["calls"], empty["models"], empty["days"]) == (0, [], [])
    assert not home.path.exists()
    assert home.hermes("chat", "hi").returncode == 0
    found = json.loads(home.hermes("usage", "--json").stdout)
    [model], [day] = found["models"], found["days"]
    assert (model["calls"], model["unpriced"], day["name"]) == (1, 1, found["day"])
    assert found["caps_usd"] == {"turn": 0, "session": 0, "person_day": 0, "day": 0}
    shown = home.hermes("usage").stdout
    assert model["name"] in shown
    assert "price unknown" in shown
    assert "no budget is set" in shown


def test_the_number_of_days_is_bounded(home: Home) -> None:
    assert home.hermes("usage", "--days", "0").returncode == 2
