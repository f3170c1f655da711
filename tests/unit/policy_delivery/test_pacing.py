"""What a flood refusal closes and how the pace recovers (R20)."""

from __future__ import annotations

import pytest

from hermes.core.delivery import DeliveryFacts
from hermes.policy.pacing import (
    EVERYWHERE,
    LONGEST_INTERVAL,
    Pace,
    closed_by,
    is_for_all,
    passed,
    places,
    says_what,
    slowed,
)


@pytest.mark.parametrize(
    ("facts", "act", "closed"),
    [
        (DeliveryFacts("telegram", status=429, retry_after=3.0), "create", "7"),
        (DeliveryFacts("telegram", status=429, retry_after=3.0), "edit", "7"),
        (DeliveryFacts("discord", status=429, body={"retry_after": 1.0, "global": False}), "create", "7"),
        (DeliveryFacts("discord", status=429, body={"retry_after": 1.0, "global": True}), "create", EVERYWHERE),
        (DeliveryFacts("discord", status=429, headers={"X-RateLimit-Global": "true"}), "typing", EVERYWHERE),
        (DeliveryFacts("discord", status=429, headers={"x-ratelimit-scope": "shared"}), "create", "7"),
        (DeliveryFacts("slack", status=429, headers={"retry-after": "3"}), "create", "7"),
        (DeliveryFacts("slack", status=429, headers={"retry-after": "3"}), "edit", "*edit"),
        (DeliveryFacts("slack", status=429, headers={"retry-after": "3"}), "typing", "*typing"),
    ],
)
def test_a_refusal_closes_what_it_names(facts: DeliveryFacts, act: str, closed: str) -> None:
    assert closed_by(facts, "7", act) == closed
    assert closed in places("7", act)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (DeliveryFacts("telegram", status=429, retry_after=3.0), False),
        (DeliveryFacts("slack", status=429, headers={"retry-after": "3"}), False),
        (DeliveryFacts("discord", status=429, body={"retry_after": 1.0, "global": False}), True),
        (DeliveryFacts("discord", status=429, headers={"X-RateLimit-Scope": "user"}), True),
    ],
)
def test_nothing_is_guessed_where_the_platform_says_what_its_limit_is_for(facts: DeliveryFacts, says: bool) -> None:
    assert says_what(facts) is says


@pytest.mark.parametrize(
    ("recent", "for_all"),
    [
        ([], False),
        ([(99.5, str(n)) for n in range(25)], True),
        ([(99.5, "7")] * 25, False),  # its own chat gave reason enough
        ([(50.0 + n, "7") for n in range(25)] + [(99.5, str(n)) for n in range(10, 40)], False),
        ([(95.0, str(n)) for n in range(25)], False),  # not in the last second
        ([(10.0, "7")] * 30 + [(99.5, str(n)) for n in range(10, 40)], True),  # long ago
    ],
)
def test_a_refusal_is_for_all_chats_when_many_were_written_to_and_this_one_was_not(
    recent: list[tuple[float, str]], for_all: bool
) -> None:
    assert is_for_all(recent, "7", 100.0) is for_all


def test_the_pace_slows_at_once_and_opens_again_by_and_by() -> None:
    pace = slowed(Pace())
    assert pace.interval == 1.0
    calls = 0
    while pace.interval:
        pace, calls = passed(pace), calls + 1
    assert 10 <= calls <= 20
    for _ in range(10):
        pace = slowed(pace)
    assert pace.interval == LONGEST_INTERVAL
