"""What is known of an upstream's rate: counted, stated and learned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.policy import rate_limit
from hermes.policy.rate_limit import Limits, Rate, Window


def after_calls(rate: Rate, *times: float) -> Rate:
    """Calls that were sent and taken."""
    for at in times:
        rate = rate_limit.accepted(rate_limit.sent(rate, at, 10), at, at, 0)
    return rate


def refuse(rate: Rate, now: float, *, stated: float | None = None, launched_at: float | None = None) -> Rate:
    """A call that was sent and refused, nothing else being under way."""
    at = now if launched_at is None else launched_at
    return rate_limit.refused(
        rate_limit.sent(rate, at, 10), now=now, launched_at=at, tokens=10, unanswered=0, stated=stated
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(0.0, 20.0), max_size=120), st.integers(1, 30))
def test_no_sixty_seconds_ever_see_more_calls_than_allowed(gaps: list[float], limit: int) -> None:
    window, now, sent = Window(), 0.0, []
    for gap in gaps:
        now += gap
        now = max(now, rate_limit.frees_at(window, now, 0, limit, None))
        window = rate_limit.launched(window, now, 0)
        sent.append(now)
    for first in sent:
        assert sum(first <= at < first + rate_limit.SPAN for at in sent) <= limit


def test_tokens_are_counted_too_and_a_call_larger_than_the_limit_still_goes_alone() -> None:
    window = rate_limit.launched(Window(), 0.0, 900)
    assert rate_limit.frees_at(window, 1.0, 200, None, 1000) == 62.0
    assert rate_limit.frees_at(window, 1.0, 100, None, 1000) == 1.0
    assert rate_limit.frees_at(Window(), 1.0, 5000, None, 1000) == 1.0


def test_the_least_of_what_is_known_counts() -> None:
    rate = Rate(learned=30, stated_calls=50)
    assert rate_limit.calls_limit(rate, Limits(calls_per_minute=40)) == 30
    assert rate_limit.calls_limit(Rate(), Limits()) is None
    assert rate_limit.tokens_limit(Rate(stated_tokens=700), Limits(tokens_per_minute=900)) == 700


def test_one_refusal_without_numbers_pauses_shortly_and_teaches_nothing_yet() -> None:
    rate = refuse(after_calls(Rate(), *[0.0] * 20), 0.5)
    assert rate.learned is None
    assert rate.blocked_until == 0.5 + rate_limit.FIRST_PAUSE
    assert rate_limit.unanswered_limit(rate, Limits()) == 1


def test_refused_again_the_calls_that_were_taken_are_the_rate() -> None:
    rate = refuse(refuse(after_calls(Rate(), *[0.0] * 20), 0.5), 3.0)
    assert rate.learned == 20


@pytest.mark.parametrize(("stated", "learned"), [(30.0, 20), (2.0, None), (3600.0, None)])
def test_a_stated_wait_of_about_a_minute_is_believed_at_once(stated: float, learned: int | None) -> None:
    rate = refuse(after_calls(Rate(), *[0.0] * 20), 0.5, stated=stated)
    assert (rate.learned, rate.blocked_until) == (learned, 0.5 + stated)


def test_calls_under_way_when_the_first_was_refused_are_no_news() -> None:
    rate = refuse(after_calls(Rate(), *[0.0] * 20), 1.0)
    late = refuse(rate, 1.2, launched_at=0.9)
    assert (late.learned, late.row, late.blocked_until) == (rate.learned, rate.row, rate.blocked_until)


def test_a_call_taken_before_the_refusal_and_known_after_it_raises_the_estimate() -> None:
    rate = after_calls(Rate(), *[0.0] * 10)
    for _ in range(4):
        rate = rate_limit.sent(rate, 0.2, 10)
    rate = rate_limit.refused(rate, now=0.5, launched_at=0.2, tokens=10, unanswered=3, stated=30.0)
    assert rate.learned == 10
    assert rate_limit.accepted(rate, 0.6, 0.2, 0).learned == 13


def test_a_learned_rate_is_raised_by_little_then_more_and_a_refusal_returns_to_what_held() -> None:
    rate = refuse(after_calls(Rate(), *[0.0] * 20), 0.5, stated=30.0)
    assert rate_limit.raised(rate, 100.0) is rate, "caution first"
    rate = after_calls(rate, *[40.0] * 5)
    assert rate_limit.raised(rate, 50.0) is rate, "not within a minute of the refusal"
    once = rate_limit.raised(rate, 70.0)
    twice = rate_limit.raised(once, 80.0)
    assert (once.learned, twice.learned) == (21, 23)
    back = refuse(after_calls(twice, *[81.0] * 22), 82.0)
    assert back.learned == 20
    assert back.raise_at - 82.0 > rate.raise_at - 0.5, "and waits longer before it tries again"


def test_caution_ends_by_doubling() -> None:
    rate, seen = refuse(Rate(), 0.0), []
    for at in range(3, 8):
        seen.append(rate_limit.unanswered_limit(rate, Limits()))
        rate = after_calls(rate, float(at))
    assert seen == [1, 2, 4, 8, 8]


@pytest.mark.parametrize(
    ("headers", "calls", "tokens", "blocked"),
    [
        ({"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59",
          "x-ratelimit-reset-requests": "1s"}, 60, None, 0.0),
        ({"x-ratelimit-limit-tokens": "9000", "x-ratelimit-reset-tokens": "6m0s",
          "x-ratelimit-remaining-tokens": "0"}, None, None, 360.0),
        ({"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0",
          "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:20Z"}, 50, None, 20.0),
        ({"anthropic-ratelimit-tokens-limit": "400", "anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:30Z"},
         None, 400, 0.0),
        ({"x-ratelimit-limit-requests": "many"}, None, None, 0.0),
        ({"content-type": "text/plain"}, None, None, 0.0),
    ],
)  # fmt: skip
def test_headers_of_an_answer_state_limits(
    headers: dict[str, str], calls: int | None, tokens: int | None, blocked: float
) -> None:
    rate = rate_limit.stated(Rate(), headers, now=0.0, unix=1_800_000_000.0)
    assert (rate.stated_calls, rate.stated_tokens) == (calls, tokens)
    assert rate.blocked_until == pytest.approx(blocked)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["x-ratelimit-limit-requests", "x-ratelimit-reset-requests",
                                        "x-ratelimit-remaining-requests"]), st.text(max_size=20)))  # fmt: skip
def test_headers_are_read_whatever_they_hold(headers: dict[str, str]) -> None:
    rate = rate_limit.stated(Rate(), headers, now=0.0, unix=0.0)
    assert rate.blocked_until >= 0.0
