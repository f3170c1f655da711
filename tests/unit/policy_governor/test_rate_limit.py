"""What is known of an upstream's rate: counted, stated and learned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.failures import StatedRate
from hermes.policy import rate_limit
from hermes.policy.rate_limit import Limits, Rate, Window
from hermes.policy.stated_rates import stated_rate


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


@pytest.mark.parametrize(
    ("headers", "spacing", "calls", "tokens"),
    [
        ({"x-ratelimit-limit-second": "10"}, 0.1, None, None),
        ({"x-ratelimit-limit-requests-second": "5", "x-ratelimit-limit-requests-minute": "60"}, 0.2, 60, None),
        ({"x-ratelimit-limit-req-minute": "30", "x-ratelimit-limit-tokens-minute": "9000"}, 0.0, 30, 9000),
        ({"x-ratelimit-limit-tokens-second": "100"}, 0.0, None, 6000),
        ({"ratelimit-policy": "10;w=1"}, 0.1, None, None),
        ({"ratelimit-policy": "10;w=1, 50;w=60, 900;w=3600"}, 0.1, 50, None),
        ({"ratelimit-limit": "10, 10;w=1;burst=20"}, 0.1, None, None),
        ({"ratelimit-policy": '"default";q=100;w=60;qu="requests"'}, 0.0, 100, None),
        ({"ratelimit-policy": '"size";q=100;w=60;qu="content-bytes"'}, 0.0, None, None),
        ({"x-ratelimit-limit-requests-day": "1000"}, 0.0, None, None),
        ({"ratelimit-policy": "0;w=1, 10;w=0, many;w=1"}, 0.0, None, None),
        ({"ratelimit-limit": "10"}, 0.0, None, None),
    ],
)
def test_a_limit_whose_header_names_its_window_is_taken_at_its_word(
    headers: dict[str, str], spacing: float, calls: int | None, tokens: int | None
) -> None:
    rate = rate_limit.stated(Rate(), headers, now=0.0, unix=0.0)
    assert rate.spacing == pytest.approx(spacing * rate_limit.SPACE)
    assert (rate.stated_calls, rate.stated_tokens) == (calls, tokens)


def test_nothing_left_of_a_second_blocks_for_that_second() -> None:
    headers = {"x-ratelimit-limit-second": "10", "x-ratelimit-remaining-second": "0"}
    assert rate_limit.stated(Rate(), headers, now=5.0, unix=0.0).blocked_until == 6.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Rate limit exceeded: 10 requests per second", StatedRate(10, 1.0)),
        ("You may make 1 request every 3 seconds.", StatedRate(1, 3.0)),
        ("limit of 20 calls/minute reached", StatedRate(20, 60.0)),
        ("Rate limit reached for m on requests per min. Limit: 3 / min. Please try again in 20s.", StatedRate(3, 60.0)),
        ("on tokens per min (TPM): Limit 30000, Used 29000, Requested 3000", StatedRate(30_000, 60.0, True)),
        ("the rate limit of 50,000 input tokens per minute", StatedRate(50_000, 60.0, True)),
        ("limited to 10 RPS", StatedRate(10, 1.0)),
        ("your 40,000 TPM are used up", StatedRate(40_000, 60.0, True)),
        ("You exceeded 200 requests per day", StatedRate(200, 86_400.0)),
        ("Too many requests. Please wait 20 seconds.", None),
        ("0 requests per second", None),
        ("error 429 after 3 messages", None),
        ("", None),
    ],
)
def test_a_refusal_may_name_its_rate(text: str, said: StatedRate | None) -> None:
    assert stated_rate(text) == said


@given(st.text(max_size=200) | st.from_regex(r"\d{1,20} (requests|tokens) per \d{0,6} ?(second|day|m)s?"))
def test_any_text_is_read_for_a_rate_within_bounds(text: str) -> None:
    said = stated_rate(text)
    assert said is None or (said.amount > 0 and said.seconds >= 1.0)


def test_a_named_rate_by_the_second_spaces_calls_and_is_no_limit_by_the_minute() -> None:
    rate = rate_limit.told(after_calls(Rate(), 0.0), StatedRate(10, 1.0), now=1.0)
    assert rate.learned is None
    assert rate_limit.spaced_until(rate) == pytest.approx(0.11)
    assert rate_limit.calls_limit(rate, Limits()) is None


def test_what_a_refusal_named_is_tried_out_again_after_an_hour() -> None:
    rate = rate_limit.told(Rate(), StatedRate(900, 60.0, tokens=True), now=0.0)
    rate = rate_limit.told(rate, StatedRate(10, 1.0), now=0.0)
    assert rate_limit.tokens_limit(rate, Limits()) == 900
    later = rate_limit.sent(rate, rate_limit.TOLD_FOR, 10)
    assert (rate_limit.tokens_limit(later, Limits()), later.spacing) == (None, 0.0)


def test_a_named_rate_by_the_minute_is_learned_and_one_by_the_day_is_not() -> None:
    assert rate_limit.told(Rate(), StatedRate(3, 60.0), now=0.0).learned == 3
    assert rate_limit.told(Rate(), StatedRate(3, 86_400.0), now=0.0) == Rate()


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 20), st.lists(st.floats(0.0, 0.5), max_size=60))
def test_evenly_spaced_calls_are_within_any_second(limit: int, gaps: list[float]) -> None:
    rate = rate_limit.told(Rate(), StatedRate(limit, 1.0), now=0.0)
    now, sent = 0.0, []
    for gap in gaps:
        now = max(now + gap, rate_limit.spaced_until(rate))
        rate = rate_limit.sent(rate, now, 0)
        sent.append(now)
    for first in sent:
        assert sum(first <= at < first + 1.0 for at in sent) <= limit
