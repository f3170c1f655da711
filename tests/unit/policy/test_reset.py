from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.reset import ResetMode, ResetPolicy, Why, newest_hour, reset_due

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


DAILY = ResetPolicy(ResetMode.DAILY, 4, zone=BERLIN)
IDLE = ResetPolicy(ResetMode.IDLE, idle_minutes=60, zone=BERLIN)
BOTH = ResetPolicy(ResetMode.BOTH, 4, 60, BERLIN)


@pytest.mark.parametrize(
    ("policy", "last", "now", "expected"),
    [
        (ResetPolicy(), "2026-01-01T00:00", "2026-12-01T00:00", None),
        (DAILY, "2026-12-01T03:59", "2026-12-01T04:00", Why.DAILY),
        (DAILY, "2026-12-01T04:00", "2026-12-02T03:59", None),
        (DAILY, "2026-12-01T04:00", "2026-12-02T04:00", Why.DAILY),
        (DAILY, "2026-11-30T23:00", "2026-12-01T03:00", None),
        (IDLE, "2026-12-01T03:59", "2026-12-01T04:58", None),
        (IDLE, "2026-12-01T03:59", "2026-12-01T04:59", Why.IDLE),
        (BOTH, "2026-12-01T03:59", "2026-12-01T04:01", Why.DAILY),
        (BOTH, "2026-12-01T04:01", "2026-12-01T05:01", Why.IDLE),
        (BOTH, "2026-12-01T04:01", "2026-12-01T04:50", None),
    ],
)
def test_when_a_conversation_starts_afresh(policy: ResetPolicy, last: str, now: str, expected: Why | None) -> None:
    assert reset_due(policy, last_active=at(last), now=at(now)) is expected


def test_an_hour_that_daylight_saving_skips_still_comes_once() -> None:
    policy = ResetPolicy(ResetMode.DAILY, 2, zone=BERLIN)  # 2026-03-29, 02:00 becomes 03:00
    assert reset_due(policy, last_active=at("2026-03-29T01:30"), now=at("2026-03-29T03:30")) is Why.DAILY
    assert reset_due(policy, last_active=at("2026-03-29T03:30"), now=at("2026-03-29T23:00")) is None


def test_an_hour_that_comes_twice_resets_once() -> None:
    policy = ResetPolicy(ResetMode.DAILY, 2, zone=BERLIN)  # 2026-10-25, 03:00 becomes 02:00
    first, second = at("2026-10-25T02:30"), at("2026-10-25T02:30", fold=1)
    assert second - first == 3600.0
    assert reset_due(policy, last_active=at("2026-10-25T01:30"), now=first) is Why.DAILY
    assert reset_due(policy, last_active=first, now=second) is None


@given(
    st.floats(0, 4e9), st.integers(0, 23), st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
)
def test_the_newest_hour_is_less_than_two_days_ago_and_not_ahead(now: float, hour: int, zone: str) -> None:
    struck = newest_hour(ResetPolicy(ResetMode.DAILY, hour, zone=ZoneInfo(zone)), now)
    assert now - 26 * 3600 < struck <= now
