"""Which key is taken and how long one rests: pure."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.fitting import plain_schema
from hermes.core.failures import Reason, Verdict
from hermes.policy.credentials import LONGEST_REST, KeyHealth, KeyState, Strategy, choose, judged, restored

NOW = 1_800_000_000.0
LIVE, DEAD = KeyHealth(), KeyHealth(KeyState.DEAD)


def resting(seconds: float) -> KeyHealth:
    return KeyHealth(KeyState.RESTING, NOW + seconds)


@pytest.mark.parametrize(
    ("keys", "strategy", "turn", "expected"),
    [
        ([LIVE, LIVE, LIVE], Strategy.FILL_FIRST, 2, 0),
        ([resting(5), LIVE, LIVE], Strategy.FILL_FIRST, 0, 1),
        ([resting(-1), LIVE], Strategy.FILL_FIRST, 0, 0),
        ([LIVE, LIVE, LIVE], Strategy.ROUND_ROBIN, 2, 2),
        ([LIVE, LIVE, LIVE], Strategy.ROUND_ROBIN, 3, 0),
        ([LIVE, DEAD, LIVE], Strategy.ROUND_ROBIN, 1, 2),
        ([KeyHealth(uses=3), KeyHealth(uses=1)], Strategy.LEAST_USED, 0, 1),
        ([DEAD, resting(9), resting(5)], Strategy.FILL_FIRST, 0, 2),
        ([DEAD], Strategy.LEAST_USED, 0, 0),
    ],
)
def test_the_strategy_takes_a_usable_key(keys: list[KeyHealth], strategy: Strategy, turn: int, expected: int) -> None:
    assert choose(keys, strategy, turn, NOW) == expected


@pytest.mark.parametrize(
    ("reason", "stated", "expected"),
    [
        (Reason.AUTH, None, 600.0),
        (Reason.BILLING, None, 3600.0),
        (Reason.RATE_LIMIT, None, 60.0),
        (Reason.RATE_LIMIT, 7.0, 7.0),
        (Reason.RATE_LIMIT, 0.0, 1.0),
        (Reason.BILLING, 1e9, LONGEST_REST),
    ],
)
def test_a_key_rests_as_long_as_its_failure_says(reason: Reason, stated: float | None, expected: float) -> None:
    health = judged(LIVE, Verdict(reason, "rule", retry_after=stated), NOW)
    assert health == KeyHealth(KeyState.RESTING, NOW + expected)


def test_a_key_refused_for_good_is_dead_and_stays_so() -> None:
    dead = judged(LIVE, Verdict(Reason.AUTH_PERMANENT, "rule"), NOW)
    assert judged(dead, Verdict(Reason.RATE_LIMIT, "rule"), NOW).state is KeyState.DEAD


def test_a_failure_of_the_upstream_is_not_the_keys() -> None:
    assert judged(LIVE, Verdict(Reason.OVERLOADED, "rule"), NOW) == LIVE


@given(st.dictionaries(st.sampled_from(["state", "until"]), st.one_of(st.floats(), st.text(), st.just("resting"))))
def test_whatever_was_kept_no_rest_is_longer_than_the_longest(stored: dict[str, object]) -> None:
    health = restored(stored, NOW)
    assert math.isfinite(health.until)
    assert health.until <= NOW + LONGEST_REST


def test_a_property_named_like_a_keyword_stays_and_literals_do() -> None:
    schema = {"properties": {"format": {"type": "string", "format": "date"}}, "enum": [{"pattern": "x"}]}
    assert plain_schema(schema) == {"properties": {"format": {"type": "string"}}, "enum": [{"pattern": "x"}]}
