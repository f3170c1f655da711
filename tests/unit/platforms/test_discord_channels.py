"""Watermarks and gaps of Discord's channels, without a wire (R4, R5)."""

from __future__ import annotations

from typing import Any

from hermes.platforms.discord.channels import GIVE_UP_AFTER, HELD, Channels


def message(number: int, channel: str = "7", guild: str | None = None) -> dict[str, Any]:
    return {"id": str(number), "channel_id": channel} | ({"guild_id": guild} if guild else {})


def guild(name: str, **channels: str | None) -> dict[str, Any]:
    found = [{"id": c.removeprefix("c"), "type": 0, "last_message_id": last} for c, last in channels.items()]
    return {"id": name, "channels": found, "threads": []}


def test_a_live_message_raises_the_mark_and_the_cursor_is_due_once() -> None:
    channels = Channels()
    assert channels.live("MESSAGE_CREATE", message(5))
    assert channels.live("MESSAGE_CREATE", message(4))
    assert channels.cursors() == {"7": "5 private"}
    assert channels.cursors() == {}


def test_an_edit_raises_nothing() -> None:
    channels = Channels()
    assert channels.live("MESSAGE_UPDATE", message(5))
    assert channels.cursors() == {}


def test_after_a_gap_private_chats_are_behind_and_their_live_messages_wait() -> None:
    channels = Channels()
    channels.restore({"7": "5 private", "salt": "abc"})
    channels.gap()
    assert channels.salt == "abc"
    assert not channels.live("MESSAGE_CREATE", message(9))
    behind = channels.next_behind(0.0)
    assert behind is not None
    channels.advance(behind, 8)
    assert channels.caught_up(behind) == [("MESSAGE_CREATE", message(9))]
    assert channels.next_behind(0.0) is None
    assert channels.cursors() == {"7": "8 private"}


def test_what_the_history_told_is_not_told_again_by_what_waited() -> None:
    channels = Channels()
    channels.restore({"7": "5 private"})
    channels.gap()
    channels.live("MESSAGE_CREATE", message(9))
    channels.live("MESSAGE_UPDATE", message(3))
    behind = channels.next_behind(0.0)
    assert behind is not None
    channels.advance(behind, 9)
    assert channels.caught_up(behind) == [("MESSAGE_UPDATE", message(3))]


def test_what_waits_is_bounded() -> None:
    channels = Channels()
    channels.restore({"7": "5 private"})
    channels.gap()
    for number in range(10, 10 + 2 * HELD):
        channels.live("MESSAGE_CREATE", message(number))
    assert len(channels.known["7"].held) == HELD


def test_a_known_guild_is_read_only_where_something_was_said() -> None:
    channels = Channels()
    channels.restore({"guild 1": "known", "10": "5 1", "11": "5 1"})
    channels.gap()
    channels.guild(guild("1", c10="5", c11="6", c12="7", c13=None))
    behind = {name for name, channel in channels.known.items() if channel.behind}
    assert behind == {"11", "12"}
    assert channels.cursors() == {"12": "0 1", "13": "0 1"}


def test_a_new_guild_begins_with_what_comes_and_that_is_written_at_once() -> None:
    channels = Channels()
    channels.guild(guild("1", c10="5", c11=None))
    assert channels.next_behind(0.0) is None
    assert channels.urgent
    assert channels.cursors() == {"guild 1": "known", "10": "5 1", "11": "0 1"}
    assert not channels.urgent


def test_threads_know_their_channel_and_forums_hold_no_messages() -> None:
    channels = Channels()
    thread = {"id": "20", "type": 11, "parent_id": "10", "last_message_id": None}
    channels.guild({"id": "1", "channels": [{"id": "10", "type": 15}], "threads": [thread]})
    assert (channels.known["20"].parent, "10" in channels.known) == ("10", False)
    channels.gone({"id": "20"})
    assert "20" not in channels.known


def test_a_channel_that_cannot_be_read_goes_on_live_and_keeps_its_cursor() -> None:
    channels = Channels()
    channels.restore({"7": "5 private"})
    channels.gap()
    behind = channels.next_behind(0.0)
    assert behind is not None
    given_up = [channels.unreadable(behind, now=float(n), wait=5.0) for n in range(GIVE_UP_AFTER)]
    assert given_up == [False] * (GIVE_UP_AFTER - 1) + [True]
    assert channels.next_behind(2.0) is None
    channels.caught_up(behind)
    assert channels.live("MESSAGE_CREATE", message(9))
    assert channels.cursors() == {}
    channels.gap()
    assert behind.behind


def test_people_who_wait_are_served_first() -> None:
    channels = Channels()
    channels.restore({"7": "5 private", "8": "9 private"})
    channels.gap()
    channels.live("MESSAGE_CREATE", message(6, "7"))
    first = channels.next_behind(0.0)
    assert first is not None
    assert first.id == "7"


def test_a_mark_in_memory_is_newer_than_one_on_disk() -> None:
    channels = Channels()
    channels.live("MESSAGE_CREATE", message(9))
    channels.restore({"7": "5 private", "x": "y", "8": "no number"})
    assert channels.known["7"].mark == 9
