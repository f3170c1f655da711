"""Socket Mode and the history against the wire: acknowledgements, gaps, order, doubles (R1, R2, R4, R5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from hermes.core.errors import PlatformFailure
from hermes.core.events import Batch, ButtonEvent, MessageEvent
from hermes.core.principals import ChatKind
from hermes.platforms.slack.adapter import SlackPlatform
from hermes.simulators.faults import ApiError
from hermes.simulators.slack import SlackSimulator
from tests.wire.platforms.conftest import make_slack

pytestmark = pytest.mark.wire
BOT = "<@U0BOT>"


async def batches(platform: SlackPlatform, count: int, *, confirm: bool = True) -> list[Batch]:
    """Batches until they hold ``count`` updates."""
    found: list[Batch] = []
    async with asyncio.timeout(5):
        while sum(len(batch.updates) for batch in found) < count:
            batch = await platform.receive()
            if confirm:
                platform.confirm(batch)
            found.append(batch)
    return found


async def take(platform: SlackPlatform, count: int) -> list[MessageEvent]:
    """The next ``count`` messages, in their order."""
    found = [u for batch in await batches(platform, count) for u in batch.updates]
    events = [platform.normalise(update.raw) for update in found]
    return [event for event in events if isinstance(event, MessageEvent)]


async def texts(platform: SlackPlatform, count: int) -> list[str]:
    return [event.text for event in await take(platform, count)]


async def turn_until(platform: SlackPlatform, done: Callable[[], bool]) -> dict[str, str]:
    """Cycles until a condition holds; the cursors that they wrote."""
    cursors: dict[str, str] = {}
    async with asyncio.timeout(5):
        while not done():
            batch = await platform.receive()
            cursors |= batch.cursors
            platform.confirm(batch)
    return cursors


async def settled(platform: SlackPlatform) -> dict[str, str]:
    """Cycles until everything is listed and caught up."""
    found = await turn_until(platform, lambda: not platform._reader.busy)
    batch = await platform.receive()
    platform.confirm(batch)
    return found | dict(batch.cursors)


async def restarted(sim: SlackSimulator, platform: SlackPlatform, cursors: Mapping[str, str]) -> SlackPlatform:
    """Another process with the same cursors."""
    await platform.aclose()
    later = make_slack(sim)
    await later.connect()
    later.resume_from(cursors)
    return later


async def test_direct_messages_and_mentions_arrive_in_their_order_and_say_whom_they_are_for(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    slack_sim.say(7, "one")
    top = slack_sim.say("C1", f"{BOT} two", user=8)
    slack_sim.say("C1", "not for us", user=9)
    one, two, _, other = [u for batch in await batches(slack, 4) for u in batch.updates]
    assert (one.addressed, two.addressed, other.addressed) == (True, True, False)
    event = slack.normalise(two.raw)
    assert isinstance(event, MessageEvent)
    assert (event.text, event.chat.kind, event.addressed) == ("two", ChatKind.GROUP, True)
    assert (event.address.chat_id, event.address.thread_id) == ("C1", top)


async def test_message_and_mention_of_one_text_are_one_thing(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    slack_sim.say("C1", f"{BOT} hello", user=8)
    first, second = [u for batch in await batches(slack, 2) for u in batch.updates]
    assert first.dedup_key == second.dedup_key
    assert first.chat == second.chat


async def test_an_envelope_is_acknowledged_after_the_batch_is_on_disk_and_comes_again_until_then(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    await settled(slack)
    slack_sim.say(7, "hello")
    (batch,) = await batches(slack, 1, confirm=False)
    await slack_sim.wait_for(lambda: slack_sim.out.pending and slack_sim.out.pending[0].tries >= 2)
    assert slack_sim.out.acknowledged == []
    assert await slack.receive() == batch
    slack.confirm(batch)
    await turn_until(slack, lambda: len(slack_sim.out.acknowledged) == 1)
    assert not slack_sim.out.pending


async def test_a_redelivered_envelope_is_the_same_thing(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    ts = slack_sim.say(7, "hello")
    (first,) = [u for batch in await batches(slack, 1) for u in batch.updates]
    slack_sim.again(7, ts)
    (second,) = [u for batch in await batches(slack, 1) for u in batch.updates]
    assert first.dedup_key == second.dedup_key


async def test_edits_are_edits_and_previews_and_our_own_messages_are_nothing(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    await settled(slack)
    ts = slack_sim.say(7, "frist")
    slack_sim.unfurl(7, ts)
    slack_sim.edit(7, ts, "first")
    slack_sim.bot_says(7, "beep")
    original, edit, bot = [u for batch in await batches(slack, 3) for u in batch.updates]
    event = slack.normalise(edit.raw)
    assert isinstance(event, MessageEvent)
    assert (event.text, event.edited, event.message_ref) == ("first", True, original.message_ref)
    assert edit.dedup_key != original.dedup_key
    assert bot.identity is not None
    assert bot.identity.is_bot
    await turn_until(slack, lambda: not slack_sim.out.pending)


async def test_a_thread_is_a_place_of_its_own_and_goes_on_without_naming_us(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    top = slack_sim.say("C1", f"{BOT} begin", user=8)
    slack_sim.say("C1", "go on", user=8, thread=top)
    elsewhere = slack_sim.say("C1", "among people", user=8)
    slack_sim.say("C1", "still among people", user=8, thread=elsewhere)
    begin, _, on, other, reply = [u for batch in await batches(slack, 5) for u in batch.updates]
    assert begin.chat == on.chat
    assert (on.addressed, other.addressed, reply.addressed) == (True, False, False)
    assert other.chat == reply.chat != begin.chat


async def test_a_button_and_a_command_arrive_without_the_addresses_that_answer_them(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.press(7, slack_sim.say(7, "x", heard=False), "yes:1")
    slack_sim.command(7, "status")
    slack_sim.command(7, "how are you?")
    found = [u for batch in await batches(slack, 3) for u in batch.updates]
    assert not any("hooks.slack.com" in update.raw or "trigger" in update.raw for update in found)
    press, status, words = [slack.normalise(update.raw) for update in found]
    assert isinstance(press, ButtonEvent)
    assert (press.data, press.identity.user_id, press.address.chat_id) == ("yes:1", "U0007", "D0007")
    assert isinstance(status, MessageEvent)
    assert isinstance(words, MessageEvent)
    assert (status.text, words.text) == ("/status", "how are you?")


async def test_files_are_named_by_their_id_and_fetched_with_the_token(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.say(7, "look", files=[("a.png", b"picture"), ("notes.txt", b"words")])
    (update,) = [u for batch in await batches(slack, 1) for u in batch.updates]
    assert "files.slack.com" not in update.raw
    event = slack.normalise(update.raw)
    assert isinstance(event, MessageEvent)
    picture, notes = event.attachments
    assert [picture.kind, notes.kind] == ["photo", "document"]
    assert await slack.download(notes, 100) == b"words"
    with pytest.raises(PlatformFailure, match="bytes"):
        await slack.download(picture, 3)


async def test_a_poison_event_goes_along_and_stops_nobody(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.say(7, "before")
    slack_sim.inject({"type": "message", "channel": "C1", "ts": "never", "user": 5})
    slack_sim.inject(["no", "event"])
    slack_sim.say(7, "after")
    found = [u for batch in await batches(slack, 4) for u in batch.updates]
    assert [bool(update.problem) for update in found] == [False, True, True, False]
    assert len({update.dedup_key for update in found}) == 4
    await turn_until(slack, lambda: not slack_sim.out.pending)


async def test_after_a_restart_the_history_tells_what_was_missed_in_order_and_once(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    top = slack_sim.say("C1", f"{BOT} begin", user=8)
    written = [batch.cursors for batch in await batches(slack, 2)]
    cursors: dict[str, str] = {}
    for some in (*written, await settled(slack)):
        cursors |= some
    assert cursors["C1"].split()[0] >= cursors[f"C1/{top}"] == top
    slack_sim.say("C1", "missed in a thread", user=8, thread=top, heard=False)
    slack_sim.say("C1", f"{BOT} missed", user=8, heard=False)
    slack_sim.say(9, "a new conversation", heard=False)
    later = await restarted(slack_sim, slack, cursors)
    try:
        caught_up = await batches(later, 3)
        events = [later.normalise(update.raw) for batch in caught_up for update in batch.updates]
        found = [event.text for event in events if isinstance(event, MessageEvent)]
        assert sorted(found) == ["a new conversation", "missed", "missed in a thread"]
        assert found.index("missed in a thread") < found.index("missed")
        for some in (*(batch.cursors for batch in caught_up), await settled(later)):
            cursors |= some
        again = await restarted(slack_sim, later, cursors)
        slack_sim.say(9, "new")
        assert await texts(again, 1) == ["new"]
        await again.aclose()
    finally:
        await later.aclose()


async def test_live_events_wait_behind_their_channels_history(slack_sim: SlackSimulator) -> None:
    first = slack_sim.say(7, "known", heard=False)
    slack_sim.say(7, "missed", heard=False)
    platform = make_slack(slack_sim)
    await platform.connect()
    platform.resume_from({"*": first, "D0007": f"{first} im"})
    await slack_sim.wait_for(lambda: slack_sim.out.sockets)
    slack_sim.say(7, "live")
    assert await texts(platform, 2) == ["missed", "live"]
    await turn_until(platform, lambda: not slack_sim.out.pending)
    await platform.aclose()


async def test_too_many_and_too_old_messages_are_left_out(slack_sim: SlackSimulator) -> None:
    old = slack_sim.say(7, "old", heard=False, at=1_700_000_000.5)
    for number in range(12):
        slack_sim.say(7, f"n{number}", heard=False)
    platform = make_slack(slack_sim, catch_up_messages=5)
    await platform.connect()
    platform.resume_from({"*": old, "D0007": "1600000000.000000 im"})
    assert await texts(platform, 5) == [f"n{number}" for number in range(7, 12)]
    await platform.aclose()


async def test_a_history_that_is_refused_does_not_hold_back_what_comes(slack_sim: SlackSimulator) -> None:
    slack_sim.add_channel("C1")
    known = slack_sim.say("C1", "known", user=8, heard=False)
    slack_sim.faults.add(ApiError(200, "not_in_channel"), endpoint="conversations.history", times=None)
    platform = make_slack(slack_sim)
    platform._history.wait = 0.0
    await platform.connect()
    platform.resume_from({"*": known, "C1": f"{known} channel"})
    await turn_until(platform, lambda: platform._channels.of("C1").attempts > 0)
    slack_sim.say("C1", f"{BOT} live", user=8)
    slack_sim.say(7, "elsewhere")
    platform._channels.of("C1").not_before = 0.0
    assert "elsewhere" in await texts(platform, 1)
    await platform.aclose()


async def test_a_limit_on_histories_is_waited_for(slack_sim: SlackSimulator) -> None:
    known = slack_sim.say(7, "known", heard=False)
    slack_sim.say(7, "missed", heard=False)
    slack_sim.faults.add(
        ApiError(429, "ratelimited", headers={"Retry-After": "1"}), endpoint="conversations.history"
    )
    platform = make_slack(slack_sim)
    await platform.connect()
    platform.resume_from({"*": known, "D0007": f"{known} im"})
    assert await texts(platform, 1) == ["missed"]
    first, second = slack_sim.called("conversations.history")[:2]
    assert second.at - first.at >= 1.0
    await platform.aclose()




async def test_people_are_called_by_their_names_and_each_is_asked_for_once(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    for _ in range(2):
        slack_sim.say("C1", f"{BOT} ask <@U0008>", user=9)
    event = (await take(slack, 4))[0]
    assert (event.identity.display, event.text) == ("U9", "ask @U8")
    asked = [call.params["user"] for call in slack_sim.called("users.info")]
    assert sorted(asked) == ["U0008", "U0009", "U0BOT"]


async def test_a_name_that_cannot_be_had_holds_back_nobody(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.faults.add(ApiError(200, "missing_scope"), endpoint="users.info", times=None)
    slack_sim.say(7, "one")
    slack_sim.say(8, "two")
    assert [event.identity.display for event in await take(slack, 2)] == ["", ""]
    assert len(slack_sim.called("users.info")) == 1
