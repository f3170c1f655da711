"""A link's stairs down, and the one way up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.delivery import DeliveryFacts, DeliveryReason, DeliveryVerdict
from hermes.core.links import Connected, CycleCompleted, CycleFailed, Link, LinkEvent, LinkState, ReconnectNow
from hermes.policy.delivery import classify_delivery
from hermes.policy.reconnect import ReconnectPolicy, initial, reconnect_delay, sentence, step

POLICY = ReconnectPolicy()
NETWORK = CycleFailed(DeliveryVerdict(DeliveryReason.NETWORK_RETRYABLE, "test"))
CONFLICT = CycleFailed(DeliveryVerdict(DeliveryReason.CONFLICT, "test"))
REFUSED = CycleFailed(DeliveryVerdict(DeliveryReason.PERMANENT_AUTH, "test"))
FAILURES = st.sampled_from(DeliveryReason).map(lambda r: CycleFailed(DeliveryVerdict(r, "test")))
EVENTS = FAILURES | st.sampled_from([Connected(), CycleCompleted(), ReconnectNow()])


def run(events: list[LinkEvent], u: float = 0.0, gap: float = 0.0) -> list[Link]:
    """Each event happens when the link said that it would try next, `gap` seconds later."""
    link, links = initial("telegram", 0.0), []
    for event in events:
        link = step(link, event, policy=POLICY, now=link.next_try_at + gap, u=u)
        links.append(link)
    return links


def delays(links: list[Link]) -> list[float]:
    times = [0.0, *(link.next_try_at for link in links)]
    return [b - a for a, b in pairwise(times)]


def test_the_stairs_are_same_link_then_lost_then_parked_for_ever() -> None:
    links = run([NETWORK] * 18)
    assert delays(links) == [1, 2, 4, 8, 30, 60, 120, 240, 300, 300, 300, 300, 300, 300, 900, 900, 900, 900]
    states = [link.state for link in links]
    assert states == [LinkState.RETRYING] * 4 + [LinkState.LOST] * 10 + [LinkState.PARKED] * 4
    assert [link.rebuild_client for link in links] == [False] * 4 + [True] * 14
    assert [i for i, link in enumerate(links) if link.notice] == [14]
    assert all(link.since == 0.0 for link in links)


def test_a_conflict_walks_the_same_stairs_keeps_its_name_and_gives_one_notice() -> None:
    links = run([CONFLICT] * 30)
    assert delays(links)[:15] == [1, 2, 4, 8, 30, 60, 120, 240, 300, 300, 300, 300, 300, 300, 900]
    assert {link.state for link in links} == {LinkState.CONFLICT}
    assert [link.notice for link in links] == [True] + [False] * 29


def test_two_programs_that_let_each_other_through_now_and_then_earn_one_notice() -> None:
    links = run([CONFLICT, CycleCompleted()] * 50, gap=5.0)
    assert sum(link.notice for link in links) == 1


def test_a_conflict_that_comes_back_a_day_later_is_news() -> None:
    first, healed = run([CONFLICT, CycleCompleted()])
    assert first.notice
    assert step(healed, CONFLICT, policy=POLICY, now=86_400.0, u=0.0).notice


@pytest.mark.parametrize("reason", [DeliveryReason.PERMANENT_AUTH, DeliveryReason.FATAL_CONFIG])
def test_what_only_a_person_can_mend_is_probed_slowly_from_the_start(reason: DeliveryReason) -> None:
    links = run([CycleFailed(DeliveryVerdict(reason, "test"))] * 3)
    assert {link.state for link in links} == {LinkState.REFUSED}
    assert delays(links) == [900, 900, 900]
    assert [link.notice for link in links] == [True, False, False]
    assert all(link.rebuild_client for link in links)


def test_a_refused_link_stays_refused_when_its_probe_meets_a_dead_network() -> None:
    assert run([REFUSED, NETWORK])[-1].state is LinkState.REFUSED


def test_being_connected_proves_nothing() -> None:
    links = run([NETWORK] * 5 + [Connected(), NETWORK])
    assert links[5].state is LinkState.LOST
    assert not links[5].rebuild_client
    assert links[6].next_try_at - links[5].next_try_at == 60


def test_a_stated_wait_is_kept_but_never_beyond_the_slow_probe() -> None:
    def flood(seconds: float) -> CycleFailed:
        return CycleFailed(DeliveryVerdict(DeliveryReason.FLOOD_WAIT, "test", retry_after=seconds))

    assert delays(run([flood(40.0)])) == [40.0]
    assert delays(run([flood(1e9)])) == [900.0]


def test_asking_for_a_reconnection_skips_the_pause() -> None:
    parked = run([NETWORK] * 16)[-1]
    asked = step(parked, ReconnectNow(), policy=POLICY, now=5.0, u=0.0)
    assert (asked.next_try_at, asked.rebuild_client) == (5.0, True)


@settings(max_examples=1000, deadline=None)
@given(st.lists(EVENTS, max_size=60), st.floats(0, 1, exclude_max=True))
def test_no_sequence_of_events_leaves_the_bounds_and_a_completed_cycle_heals_any(
    events: list[LinkEvent], u: float
) -> None:
    link, now = initial("slack", 0.0), 0.0
    for event in events:
        now = max(now, link.next_try_at)
        link = step(link, event, policy=POLICY, now=now, u=u)
        if isinstance(event, CycleFailed):
            assert 0.999 <= link.next_try_at - now <= POLICY.park_probe + 0.001  # of unix seconds
        assert sentence(link, now=now)
    healed = step(link, CycleCompleted(), policy=POLICY, now=now, u=u)
    assert (healed.state, healed.failures, healed.attempts) == (LinkState.UP, 0, 0)
    assert (healed.next_try_at, healed.notice, healed.rebuild_client, healed.reason) == (
        now,
        False,
        False,
        None,
    )


@settings(max_examples=1000, deadline=None)
@given(st.lists(FAILURES, max_size=60))
def test_each_kind_of_trouble_is_told_once_until_it_heals(events: list[CycleFailed]) -> None:
    told = [link.state for link in run(list(events)) if link.notice]
    assert len(told) == len(set(told))
    if any(e.verdict.reason is DeliveryReason.CONFLICT for e in events) and LinkState.REFUSED not in told:
        assert LinkState.CONFLICT in told


@given(st.integers(0, 200), st.floats(0, 1, exclude_max=True))
def test_jitter_adds_at_most_a_fifth(attempts: int, u: float) -> None:
    plain = min(300.0, 30.0 * 2.0 ** min(attempts, 20))
    assert plain <= reconnect_delay(attempts, u, POLICY) <= plain * 1.2


def test_a_sentence_says_what_since_when_next_and_which_key() -> None:
    links = run([NETWORK] * 6)
    text = sentence(links[-1], now=links[-1].next_try_at - 30.0)
    assert text == "telegram is lost: it cannot be reached (for 75 s; next try in 30 s)."
    refused = run([REFUSED])[-1]
    assert "platforms.telegram.token" in sentence(refused, now=0.0)
    assert "next try in 15 min" in sentence(refused, now=0.0)
    assert "Stop the other program" in sentence(run([CONFLICT])[-1], now=0.0)
    intents = classify_delivery(DeliveryFacts("discord", "ConnectionClosed", code="4014"))
    assert "MESSAGE CONTENT INTENT" in sentence(run([CycleFailed(intents)])[-1], now=0.0)
    assert sentence(run([CycleCompleted()])[-1], now=60.0) == "telegram is connected (for 60 s)."


def test_what_only_a_person_can_mend_is_said_in_the_platforms_own_words() -> None:
    verdict = DeliveryVerdict(DeliveryReason.FATAL_CONFIG, "config")
    link = initial("slack", 0.0)
    refused = step(link, CycleFailed(verdict, "needs the scope\nchat:write"), policy=POLICY, now=1.0, u=0.0)
    assert "a setting: needs the scope chat:write (for" in sentence(refused, now=1.0)
    lost = CycleFailed(DeliveryVerdict(DeliveryReason.NETWORK_RETRYABLE, "reset"), "secret host name")
    assert "secret" not in sentence(step(link, lost, policy=POLICY, now=1.0, u=0.0), now=1.0)
