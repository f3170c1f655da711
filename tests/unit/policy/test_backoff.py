"""Backoff: inside its cap, and spread wide enough that clients that failed together do not return
together."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.failures import Reason, Verdict
from hermes.policy.backoff import backoff
from hermes.policy.recovery import RecoveryPolicy, RecoveryTarget, Wait, initial, plan


@pytest.mark.parametrize(
    ("retry", "low", "high"),
    [
        (1, 2.5, 5.0),
        (2, 5.0, 10.0),
        (3, 10.0, 20.0),
        (4, 20.0, 40.0),
        (5, 30.0, 60.0),
        (6, 30.0, 60.0),
        (5000, 30.0, 60.0),
    ],
)
def test_equal_jitter_doubles_from_five_seconds_to_a_minute(retry: int, low: float, high: float) -> None:
    assert backoff(retry, 0.0) == low
    assert backoff(retry, 0.5) == (low + high) / 2
    assert low <= backoff(retry, 0.999999) <= high


@given(st.integers(), st.floats(), st.floats(0, 1e9), st.floats(0, 1e9), st.floats())
def test_no_delay_is_above_its_cap_or_below_zero(
    retry: int, u: float, base: float, cap: float, ratio: float
) -> None:
    assert 0.0 <= backoff(retry, u, base=base, cap=cap, ratio=ratio if ratio == ratio else 0.5) <= cap


@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_clients_failing_together_spread_out(seed: int) -> None:
    """For each retry k >= 2 the fullest second holds at most 3 × (1,000 ÷ seconds between first and last
    send)."""
    draw = random.Random(seed)
    policy = RecoveryPolicy(targets=(RecoveryTarget("only"),), retries=8)
    verdict = Verdict(Reason.OVERLOADED, rule="test", retryable=True)
    sends: dict[int, list[float]] = {}
    for _ in range(1000):
        state, now = initial(policy, deadline=1e9), 0.0
        for k in range(1, policy.retries + 1):
            state, step = plan(policy, state, verdict, now=now, u=draw.random())
            assert isinstance(step, Wait)
            now = step.until
            sends.setdefault(k, []).append(now)
    for k in range(2, policy.retries + 1):
        span = max(sends[k]) - min(sends[k])
        fullest = max(Counter(int(at - min(sends[k])) for at in sends[k]).values())
        assert fullest <= 3 * 1000 / span, k
