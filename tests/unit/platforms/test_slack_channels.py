"""Marks, gaps and what waits behind them: pure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.platforms.slack.channels import GIVE_UP_AFTER, HELD, THREADS_KEPT, THREADS_READ, Channels
from hermes.platforms.slack.stamps import is_stamp, later, order, stamp_of


def ts(number: int) -> str:
    return f"{1_700_000_000 + number}.000100"


def test_what_is_written_is_what_is_restored() -> None:
    first = Channels()
    first.list_all({"C1": "channel", "D1": "im"}, 1_700_000_000.0)
    first.advance(first.of("C1"), ts(5))
    first.speak_in("C1", ts(1), ts(5))
    cursors = first.cursors()
    assert not first.dirty
    later_on = Channels()
    later_on.restore(cursors)
    assert later_on.of("C1").mark == ts(5)
    assert (later_on.kind_of("C1"), later_on.kind_of("D1"), later_on.kind_of("D9")) == ("channel", "im", "im")
    assert later_on.takes_part("C1", ts(1))
    assert later_on.listed == stamp_of(1_700_000_000.0)


def test_the_threads_that_are_kept_over_a_restart_are_the_newest() -> None:
    channels = Channels()
    rows = {f"C1/{ts(number)}": ts(number) for number in reversed(range(THREADS_KEPT + 50))}
    channels.restore(rows)
    assert len(channels.threads) == THREADS_KEPT
    channels.speak_in("C1", ts(9_999_999), ts(9_999_999))
    assert channels.takes_part("C1", ts(THREADS_KEPT + 49))
    assert not channels.takes_part("C1", ts(50))


def test_garbage_on_disk_is_no_cursor() -> None:
    channels = Channels()
    channels.restore({"C1": "never", "C2/x": "", "*": "soon", "": ""})
    assert channels.known == {}
    assert channels.listed is None


def test_at_the_first_start_the_past_is_past_and_later_a_new_channel_is_read_from_the_last_list_on() -> None:
    channels = Channels()
    channels.list_all({"C1": "channel"}, 1_700_000_010.0)
    assert channels.next_behind(0.0) is None
    channels.list_all({"C1": "channel", "D2": "im"}, 1_700_000_020.0)
    behind = channels.next_behind(0.0)
    assert behind is not None
    assert (behind.id, behind.mark) == ("D2", stamp_of(1_700_000_010.0))


def test_after_a_gap_a_channel_holds_what_comes_until_it_has_caught_up() -> None:
    channels = Channels()
    channel = channels.of("D1", "im")
    assert not channels.hold(channel, "before")
    channels.advance(channel, ts(1))
    channels.gap()
    assert all(channels.hold(channel, number) for number in range(HELD + 5))
    assert channels.caught_up(channel, frozenset({ts(2)})) == list(range(HELD))
    assert not channels.hold(channel, "after")
    assert channel.told == {ts(2)}


def test_the_channel_whose_people_wait_is_read_first_then_direct_messages() -> None:
    channels = Channels()
    for name, kind, number in (("C1", "channel", 9), ("D1", "im", 1), ("C2", "channel", 5)):
        channels.advance(channels.of(name, kind), ts(number))
    channels.gap()
    assert [_next(channels) for _ in range(3)] == ["D1", "C1", "C2"]
    channels.gap()
    channels.hold(channels.of("C2"), "somebody waits")
    assert _next(channels) == "C2"


def _next(channels: Channels) -> str:
    found = channels.next_behind(0.0)
    assert found is not None
    channels.caught_up(found, frozenset())
    return found.id


def test_a_history_that_is_refused_is_given_up_until_the_next_gap_and_its_cursor_stays() -> None:
    channels = Channels()
    channel = channels.of("C1")
    channels.advance(channel, ts(1))
    channels.cursors()
    channels.gap()
    assert [channels.unreadable(channel, 10.0, 5.0) for _ in range(GIVE_UP_AFTER)] == [False, False, True]
    assert channels.next_behind(12.0) is None
    channels.caught_up(channel, frozenset())
    channels.advance(channel, ts(7))
    assert channels.cursors() == {}
    channels.gap()
    assert channels.next_behind(0.0) is channel


def test_threads_are_bounded_and_the_newest_are_read() -> None:
    channels = Channels()
    for number in range(THREADS_KEPT + 10):
        channels.speak_in("C1", ts(number), ts(number))
    assert len(channels.threads) == THREADS_KEPT
    assert channels.threads_of("C1")[0] == ts(THREADS_KEPT + 9)
    assert len(channels.threads_of("C1")) == THREADS_READ
    assert channels.threads_of("C2") == []


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_a_mark_never_goes_back(numbers: list[int]) -> None:
    channels = Channels()
    channel = channels.of("C1")
    for number in numbers:
        channels.advance(channel, ts(number))
    assert channel.mark == ts(max(numbers))


@given(st.integers(0, 10**11), st.integers(0, 999_999), st.integers(0, 10**11), st.integers(0, 999_999))
def test_time_stamps_are_ordered_as_numbers_without_losing_digits(a: int, b: int, c: int, d: int) -> None:
    one, other = f"{a}.{b:06d}", f"{c}.{d:06d}"
    assert is_stamp(one)
    assert later(one, other) == ((a, b) > (c, d))
    assert (order(one) == order(other)) == ((a, b) == (c, d))
