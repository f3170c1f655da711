"""When a streamed answer shows what it has: soon first, then seldom, and more seldom when refused."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.drafts import MAX_INTERVAL, Draft, DraftState, Wait, interval, refused, restarted, step

FIRST, LEAST = 1.0, 3.0


def test_nothing_is_shown_before_the_first_delay_and_then_what_is_there() -> None:
    state = DraftState(started_at=100.0)
    state, decision = step(state, 10, 100.5, FIRST, LEAST)
    assert decision == Wait(101.0)
    state, decision = step(state, 25, 101.0, FIRST, LEAST)
    assert decision == Draft(25)
    assert state.shown == 25


def test_the_next_draft_waits_for_the_interval_and_for_new_text() -> None:
    state = DraftState(started_at=0.0, shown=25, drafted_at=10.0)
    assert step(state, 25, 99.0, FIRST, LEAST)[1] == Wait(None)
    assert step(state, 30, 12.0, FIRST, LEAST)[1] == Wait(13.0)
    assert step(state, 30, 13.0, FIRST, LEAST)[1] == Draft(30)


def test_a_refusal_slows_down_and_a_flood_wait_is_kept() -> None:
    state = refused(DraftState(started_at=0.0, shown=5, drafted_at=10.0), 10.0, 20.0)
    assert interval(state, LEAST) == 2 * LEAST
    assert step(state, 9, 35.0, FIRST, LEAST)[1] == Wait(36.0)
    assert step(state, 9, 36.0, FIRST, LEAST)[1] == Draft(9)


def test_a_restarted_attempt_shows_its_text_from_the_beginning() -> None:
    state = restarted(DraftState(started_at=0.0, shown=500, drafted_at=10.0), 11.0)
    assert step(state, 8, 13.0, FIRST, LEAST)[1] == Draft(8)


@given(st.lists(st.floats(0, 5), max_size=60), st.floats(0.1, 5), st.integers(0, 40))
def test_drafts_are_never_closer_than_the_interval_and_always_grow(
    gaps: list[float], least: float, refusals: int
) -> None:
    state = DraftState(started_at=0.0, slowed=refusals)
    assert least <= interval(state, least) <= max(least, MAX_INTERVAL)
    now, shown = 0.0, list[tuple[float, int]]()
    for length, gap in enumerate(gaps, start=1):
        now += gap
        state, decision = step(state, length, now, 0.0, least)
        if isinstance(decision, Draft):
            shown.append((now, decision.length))
    for (before, less), (after, more) in pairwise(shown):
        assert more > less
        assert after - before >= interval(state, least) - 1e-9
