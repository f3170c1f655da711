"""Waits in every dress."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.retry_after import MAX_WAIT, Waits, parse_duration, parse_waits

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC


HEADERS: list[Any] = [
    ({"Retry-After": "30"}, 30.0, None),
    ({"retry-after": "1.5"}, 1.5, None),
    ({"retry-after": "-7"}, 0.0, None),
    ({"retry-after": "9936000"}, MAX_WAIT, None),
    ({"retry-after": "1e400"}, MAX_WAIT, None),
    ({"retry-after": "nan"}, None, None),
    ({"retry-after": "soon"}, None, None),
    ({"retry-after": ""}, None, None),
    ({"retry-after-ms": "1500", "retry-after": "99"}, 1.5, None),
    ({"retry-after": "Fri, 15 Jan 2027 08:02:00 GMT"}, 120.0, NOW + 120),
    ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0, NOW - 3600),
    ({"retry-after": "2027-01-15T08:00:10Z"}, 10.0, NOW + 10),
    ({"retry-after": str(int(NOW) + 40)}, 40.0, NOW + 40),
    ({"retry-after": str((int(NOW) + 40) * 1000)}, 40.0, NOW + 40),
    ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360.0, None),
    ({"x-ratelimit-reset-tokens": "20ms", "x-ratelimit-remaining-tokens": "0"}, 0.02, None),
    ({"x-ratelimit-reset-tokens": "1.5s", "x-ratelimit-remaining-tokens": "12"}, None, None),
    (
        {
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-tokens": "9s",
            "x-ratelimit-remaining-tokens": "0",
        },
        9.0,
        None,
    ),
    ({"X-RateLimit-Reset": str((int(NOW) + 5) * 1000), "X-RateLimit-Remaining": "0"}, 5.0, NOW + 5),
    (
        {
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:30Z",
        },
        30.0,
        NOW + 30,
    ),
    (
        {
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": str(int(NOW) + 100),
        },
        100.0,
        NOW + 100,
    ),
    (
        {
            "anthropic-ratelimit-requests-remaining": "7",
            "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:30Z",
        },
        None,
        None,
    ),
    (
        {
            "x-codex-primary-used-percent": "100",
            "x-codex-primary-reset-after-seconds": "13873",
            "x-codex-secondary-used-percent": "80",
            "x-codex-secondary-reset-after-seconds": "316705",
        },
        13873.0,
        None,
    ),
]


@pytest.mark.parametrize(("headers", "wait", "reset"), HEADERS)
def test_headers(headers: dict[str, str], wait: float | None, reset: float | None) -> None:
    assert parse_waits(headers, None, "", now=NOW) == Waits(wait, reset)


@pytest.mark.parametrize(
    ("body", "wait", "reset"),
    [
        ({"error": {"resets_in_seconds": 602705, "resets_at": 1_800_602_705}}, 602705.0, 1_800_602_705.0),
        ({"error": {"retry_after": 12}}, 12.0, None),
        ({"error": {"retry_after_ms": 250}}, 0.25, None),
        ({"retry_after": -3}, 0.0, None),
        ({"retry_after": True}, None, None),
        ({"retry_after": 10**400}, MAX_WAIT, None),
        ({"retry_after": math.inf}, None, None),
        ({"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "13s"}]}, 13.0, None),
        ({"details": [{"retryDelay": "32.044s"}]}, 32.044, None),
        ({"metadata": {"headers": {"Retry-After": "120"}}}, 120.0, None),
        (
            {"metadata": {"headers": {"X-RateLimit-Reset": "1800000060000", "X-RateLimit-Remaining": "0"}}},
            60.0,
            NOW + 60,
        ),
        ({"error": {"message": '{"error": {"retry_after": 7}}'}}, 7.0, None),
        ("Error - b'{\"retry_after\": 8}'", 8.0, None),
        ({"resets_at": "2027-01-15T08:00:30+00:00"}, 30.0, NOW + 30),
        ({"status": 429}, None, None),
    ],
)
def test_body_fields(body: object, wait: float | None, reset: float | None) -> None:
    assert parse_waits({}, body, "", now=NOW) == Waits(wait, reset)


@pytest.mark.parametrize(
    ("text", "wait", "reset"),
    [
        ("Please try again in 3.2s.", 3.2, None),
        ("Please try again in 2ms. Visit", 0.002, None),
        ("try again in 9m38.016s", 578.016, None),
        ("try again in 1h2m", 3720.0, None),
        ("try again in 5 minutes", 300.0, None),
        ("try again in 3 days 4 hours 5 minutes", 273_900.0, None),
        ("Please retry after 33 seconds.", 33.0, None),
        ("Please wait 39 seconds before retrying", 39.0, None),
        ("please try again after 1 seconds", 1.0, None),
        ("Please retry in 20.04466179s.", 20.04466179, None),
        ("rate limit exceeded — retry after 2s", 2.0, None),
        ("Your quota will reset after 13h39m38s.", 49_178.0, None),
        ("You will regain access on 2027-01-16 at 00:00 UTC.", 57_600.0, NOW + 57_600),
        ("Your limit will reset at 2027-01-15 09:00:00", 3600.0, NOW + 3600),
        ("usage limit reached|1800000090", 90.0, NOW + 90),
        ("try again later", None, None),
        ("try again in a while", None, None),
        ("Limit 6000, Used 5034, Requested 1443", None, None),
        ("retry in 3 models", None, None),
    ],
)
def test_sentences(text: str, wait: float | None, reset: float | None) -> None:
    found = parse_waits({}, None, text, now=NOW)
    assert (found.retry_after, found.reset_at) == (pytest.approx(wait) if wait is not None else None, reset)


def test_headers_win_over_body_and_body_over_text() -> None:
    assert (
        parse_waits({"retry-after": "1"}, {"retry_after": 2}, "try again in 3s", now=NOW).retry_after == 1.0
    )
    assert parse_waits({}, {"retry_after": 2}, "try again in 3s", now=NOW).retry_after == 2.0


def test_a_date_needs_a_clock_to_become_a_wait() -> None:
    assert parse_waits({"retry-after": "Fri, 15 Jan 2027 08:02:00 GMT"}, None, "", now=None) == Waits(
        None, NOW + 120
    )


@pytest.mark.parametrize("text", ["", "s", "1x", "1m2", "--3", "1 2", "ms1", "1.2.3s", "٣s", "²"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["retry_after", "resets_at", "retryDelay", "headers", "retry_after_ms", "seconds", "error"]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
VALUES = (
    st.text(max_size=40)
    | st.floats().map(str)
    | st.integers().map(str)
    | st.datetimes().map(str)
    | st.from_regex(r"[-0-9.e:TZ+ hms]{0,24}", fullmatch=True)
)


@given(
    JSON
    | st.dictionaries(
        st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining"]),
        VALUES,
    ),
    JSON,
    st.text(max_size=80) | VALUES.map(lambda v: f"try again in {v}"),
    st.none() | st.floats(),
)
def test_waits_are_total_finite_and_never_negative(
    headers: Any, body: Any, text: str, now: float | None
) -> None:
    found = parse_waits(headers, body, text, now=now)
    assert found.retry_after is None or 0.0 <= found.retry_after <= MAX_WAIT
    assert found.reset_at is None or math.isfinite(found.reset_at)
