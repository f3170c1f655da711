"""The circuit breaker: closed, open, half open with one probe."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.failures import Reason, Verdict
from hermes.core.governor import Circuit
from hermes.policy import breaker
from hermes.policy.breaker import Breaker, BreakerPolicy

POLICY = BreakerPolicy(failures=3, base=10.0, cap=60.0, jitter=0.2, lease=30.0)


def fail(state: Breaker, now: float, **more: object) -> Breaker:
    """One counted failure."""
    given = {"u": 0.0, "name": f"a@{now:.0f}", **more}
    return breaker.failed(state, POLICY, now=now, **given)  # type: ignore[arg-type]


def opened_at(now: float) -> Breaker:
    """A circuit that three failures have just opened."""
    state = Breaker()
    for _ in range(3):
        state = fail(state, now)
    return state


def test_it_opens_at_the_third_failure_in_a_row_and_not_before() -> None:
    state = fail(fail(Breaker(), 0.0), 0.0)
    assert breaker.circuit(state, 0.0) is Circuit.CLOSED
    state = fail(state, 0.0)
    assert breaker.circuit(state, 0.0) is Circuit.OPEN
    assert breaker.circuit(state, 10.0) is Circuit.HALF_OPEN


def test_a_success_between_failures_begins_the_count_anew() -> None:
    state = breaker.succeeded(fail(fail(Breaker(), 0.0), 0.0), 0.0)
    assert breaker.circuit(fail(fail(state, 0.0), 0.0), 0.0) is Circuit.CLOSED


def test_a_whole_recovery_that_found_no_way_opens_it_at_once() -> None:
    assert breaker.circuit(fail(Breaker(), 0.0, established=True), 0.0) is Circuit.OPEN


def test_one_call_probes_until_its_lease_ends_or_it_gives_it_back() -> None:
    state = opened_at(0.0)
    assert breaker.probe_is_free(state, 10.0)
    probing = breaker.probing(state, POLICY, 10.0)
    assert not breaker.probe_is_free(probing, 39.9)
    assert breaker.probe_is_free(probing, 40.0), "a prober that died leaves nothing stuck"
    assert breaker.probe_is_free(breaker.probe_given_back(probing), 10.0)


def test_each_failed_probe_doubles_the_pause_up_to_the_cap() -> None:
    state, now, pauses = opened_at(0.0), 0.0, []
    for _ in range(5):
        pauses.append(state.until - now)
        now = state.until
        state = fail(breaker.probing(state, POLICY, now), now)
    assert pauses == [10.0, 20.0, 40.0, 60.0, 60.0]


def test_a_cheap_probe_keeps_its_pace() -> None:
    state = opened_at(0.0)
    assert fail(state, 10.0, cheap=True).until == 20.0


def test_a_server_on_this_machine_is_probed_soon_and_while_nobody_listens_often() -> None:
    own = breaker.near(BreakerPolicy(failures=1))
    for cheap, pauses in ((True, [1.0, 2.0, 3.0, 3.0]), (False, [1.0, 2.0, 4.0, 8.0])):
        state, now, seen = Breaker(), 0.0, []
        for _ in range(4):
            state = breaker.failed(state, own, now=now, u=0.0, name="a", cheap=cheap)
            seen.append(state.until - now)
            now = state.until
        assert seen == pauses


def test_late_failures_of_calls_sent_before_do_not_prolong_it() -> None:
    state = opened_at(0.0)
    assert fail(state, 5.0).until == state.until


@pytest.mark.parametrize(("again", "same"), [(100.0, True), (200.0, False)])
def test_an_outage_keeps_its_name_when_it_comes_back_soon(again: float, same: bool) -> None:
    state = opened_at(1.0)
    closed = breaker.succeeded(state, 50.0)
    assert breaker.in_outage(closed) is None
    for _ in range(3):
        closed = fail(closed, again)
    assert (breaker.in_outage(closed) == breaker.in_outage(state)) is same


@pytest.mark.parametrize(
    ("reason", "retryable", "counted"),
    [
        (Reason.SERVER_ERROR, True, True),
        (Reason.OVERLOADED, True, True),
        (Reason.TIMEOUT, True, True),
        (Reason.TIMEOUT, False, False),
        (Reason.RATE_LIMIT, True, False),
        (Reason.AUTH, False, False),
        (Reason.CONTEXT_OVERFLOW, False, False),
    ],
)
def test_what_says_something_about_the_whole_upstream(reason: Reason, retryable: bool, counted: bool) -> None:
    assert breaker.counts(Verdict(reason, "r", retryable=retryable)) is counted


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["fail", "established", "ok", "probe", "back"]),
        st.floats(0.0, 100.0),
        st.floats(0.0, 1.0),
        st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(EVENTS)
def test_whatever_happens_it_is_never_shut_for_longer_than_cap_and_lease(
    events: list[tuple[str, float, float, float | None]],
) -> None:
    state, now = Breaker(), 0.0
    longest = POLICY.cap * (1.0 + POLICY.jitter)
    for what, later, u, stated in events:
        now += later
        match what:
            case "fail" | "established":
                state = fail(state, now, u=u, stated=stated, established=what == "established")
            case "ok":
                state = breaker.succeeded(state, now)
                assert breaker.circuit(state, now) is Circuit.CLOSED
            case "probe":
                if breaker.circuit(state, now) is Circuit.HALF_OPEN and breaker.probe_is_free(state, now):
                    state = breaker.probing(state, POLICY, now)
            case _:
                state = breaker.probe_given_back(state)
        assert math.isfinite(state.until)
        assert state.until <= now + longest + 1e-6 or state.opened == 0
        assert breaker.circuit(state, now + longest + 1e-6) is not Circuit.OPEN
        assert breaker.probe_is_free(state, now + POLICY.lease)
