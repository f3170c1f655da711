"""Whether a call may be made now, and whose is next."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.governor import CallRequest, Guard
from hermes.core.urgency import Urgency
from hermes.policy.admission import (
    Go,
    Health,
    Refuse,
    Served,
    Waiting,
    WaitUntil,
    admit,
    in_turn,
    most_urgent,
)
from hermes.policy.breaker import Breaker
from hermes.policy.rate_limit import Limits, Rate, Window

ASK = CallRequest("a/b", patience=60.0)
OPEN = Breaker(failures=5, opened=1, until=100.0, outage="a/b@1")


@pytest.mark.parametrize(
    ("health", "now", "expected"),
    [
        (Health(), 0.0, Go()),
        (Health(breaker=OPEN), 0.0, Refuse(100.0, Guard.CIRCUIT)),
        (Health(breaker=OPEN), 100.0, Go(probe=True)),
        (Health(breaker=Breaker(5, 1, 100.0, 150.0)), 100.0, WaitUntil(150.0, Guard.PROBE)),
        (Health(rate=Rate(blocked_until=30.0)), 0.0, WaitUntil(30.0, Guard.BLOCKED)),
        (Health(rate=Rate(blocked_until=90.0)), 0.0, Refuse(90.0, Guard.BLOCKED)),
        (Health(concurrency=2.9, in_flight=2), 0.0, WaitUntil(math.inf, Guard.CONCURRENCY)),
        (Health(rate=Rate(Window(((0, 3, 0),))), limits=Limits(calls_per_minute=3)), 5.0, WaitUntil(62.0, Guard.RATE)),
        (Health(unanswered=8, oldest_sign_by=6.0), 5.0, WaitUntil(6.0, Guard.UNPROVEN)),
        (Health(rate=Rate(learned=20, last_at=4.0)), 5.0, WaitUntil(5.5, Guard.UNPROVEN)),
    ],
)  # fmt: skip
def test_what_is_known_decides(health: Health, now: float, expected: object) -> None:
    assert admit(health, ASK, now=now) == expected


def test_whoever_does_not_wait_is_refused() -> None:
    hasty = CallRequest("a/b", wait=0.0)
    assert admit(Health(unanswered=8, oldest_sign_by=6.0), hasty, now=5.0) == Refuse(6.0, Guard.UNPROVEN)


@settings(max_examples=300, deadline=None)
@given(
    st.builds(Breaker, st.integers(0, 9), st.integers(0, 3), st.floats(0, 200), st.floats(0, 200)),
    st.builds(Rate, learned=st.one_of(st.none(), st.integers(1, 50)), blocked_until=st.floats(0, 200)),
    st.integers(0, 300), st.integers(0, 20), st.floats(0, 200),
)  # fmt: skip
def test_a_wait_always_ends_in_the_future(
    state: Breaker, rate: Rate, in_flight: int, unanswered: int, now: float
) -> None:
    health = Health(state, rate, in_flight=in_flight, unanswered=unanswered, oldest_sign_by=now + 1.0)
    found = admit(health, ASK, now=now)
    if not isinstance(found, Go):
        assert found.at > now


def serve(queue: list[Waiting], count: int, now: float = 0.0) -> list[Waiting]:
    """Who is served, one after the other."""
    served, order = Served(), []
    for _ in range(count):
        one = queue.pop(most_urgent(queue, served, now))
        served.note(one.urgency, one.principal)
        order.append(one)
    return order


def test_the_interactive_go_first_and_each_class_keeps_its_share() -> None:
    queue = [Waiting(Urgency.INTERACTIVE, f"p{n}", 0.0) for n in range(100)]
    queue += [Waiting(Urgency.BACKGROUND, "b", 0.0) for _ in range(20)]
    queue += [Waiting(Urgency.SCHEDULE, "s", 0.0) for _ in range(20)]
    order = [one.urgency for one in serve(queue, 60)]
    assert order[0] is Urgency.INTERACTIVE
    assert order.count(Urgency.BACKGROUND) in (5, 6)
    assert order.count(Urgency.SCHEDULE) in (2, 3)


def test_waiting_makes_more_urgent_but_not_than_a_person() -> None:
    queue = [Waiting(Urgency.BACKGROUND, "a", 100.0), Waiting(Urgency.SCHEDULE, "b", 30.0)]
    assert queue[most_urgent(queue, Served(), 150.0)].principal == "b", "as urgent now, and waiting longer"
    queue += [Waiting(Urgency.INTERACTIVE, "c", 149.0)]
    assert queue[most_urgent(queue, Served(), 150.0)].principal == "c"


def test_a_call_that_waits_for_long_gets_one_grant_in_four() -> None:
    queue = [Waiting(Urgency.INTERACTIVE, f"p{n}", 0.0) for n in range(100)]
    queue += [Waiting(Urgency.SCHEDULE, f"s{n}", 0.0) for n in range(20)]
    order = [one.urgency for one in serve(queue, 40, 200.0)]
    assert order.count(Urgency.SCHEDULE) in (9, 10)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(Urgency), st.sampled_from("abcdef"), st.floats(0.0, 500.0)), max_size=60),
    st.lists(st.tuples(st.sampled_from(Urgency), st.sampled_from("abcdef")), max_size=30),
)
def test_a_person_waits_for_one_unattended_grant_at_most(
    queue: list[tuple[Urgency, str, float]], before: list[tuple[Urgency, str]]
) -> None:
    served = Served()
    for urgency, principal in before:
        served.note(urgency, principal)
    waiting = [Waiting(*one) for one in queue] + [Waiting(Urgency.INTERACTIVE, "person", 499.0)]
    unattended = 0
    while True:
        one = waiting.pop(most_urgent(waiting, served, 500.0))
        served.note(one.urgency, one.principal)
        if one.urgency is Urgency.INTERACTIVE:
            unattended = 0
            if one.principal == "person":
                return
        else:
            unattended += 1
        assert unattended <= 1


def test_nobody_is_served_again_before_the_others() -> None:
    queue = [Waiting(Urgency.INTERACTIVE, "busy", float(n)) for n in range(10)]
    queue += [Waiting(Urgency.INTERACTIVE, "quiet", 20.0)]
    assert [one.principal for one in serve(queue, 3, 20.0)] == ["busy", "quiet", "busy"]


def test_parked_turns_resume_one_a_principal_in_turn() -> None:
    assert in_turn([("a", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5), ("b", 6)]) == [1, 3, 5, 2, 6, 4]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers()), max_size=30))
def test_in_turn_loses_and_doubles_nothing(waiting: list[tuple[str, int]]) -> None:
    assert sorted(in_turn(waiting)) == sorted(thing for _, thing in waiting)
