"""What Discord tells, against the wire: order, gaps, histories, files, interactions (R1, R2, R4, R5)."""

from __future__ import annotations

import asyncio
import time

import pytest

from hermes.core.errors import PlatformFailure
from hermes.core.events import AttachmentRef, ButtonEvent, MessageEvent
from hermes.core.principals import ChatKind
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.faults import ApiError, Reply
from tests.wire.platforms.conftest import make_discord
from tests.wire.platforms.discord_reading import cursors, failure, restarted, take, texts

pytestmark = pytest.mark.wire
GUILD, CHANNEL, OTHER, THREAD = 900, 901, 902, 903


async def test_private_and_guild_messages_arrive_in_their_order(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.add_guild(GUILD, [CHANNEL])
    discord_sim.say(7, "one")
    discord_sim.say(CHANNEL, "<@424242> two", user=8)
    discord_sim.say(CHANNEL, "three", user=9, name="Ann")
    one, two, three = await take(discord, 3)
    assert [one.text, two.text, three.text] == ["one", "two", "three"]
    assert (one.chat.kind, two.chat.kind) == (ChatKind.PRIVATE, ChatKind.GROUP)
    assert (one.addressed, two.addressed, three.addressed) == (True, True, False)
    assert three.identity.display == "Ann"
    assert (one.address.reply_to, two.address.chat_id) == (None, str(CHANNEL))
    assert two.address.reply_to == two.message_ref.partition(":")[2]


async def test_a_reply_to_the_bot_is_meant_for_it_and_quotes_it(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.add_guild(GUILD, [CHANNEL])
    own = discord_sim.world.new_id()
    ours = {"id": str(own), "author": discord_sim.world.bot, "content": "an answer", "attachments": []}
    discord_sim.say(CHANNEL, "why?", user=8, extra={"type": 19, "referenced_message": ours})
    (event,) = await take(discord, 1)
    assert event.addressed
    assert event.quoted == "an answer"


async def test_a_thread_belongs_to_its_channel_even_if_nothing_told_of_it(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.add_guild(GUILD, [CHANNEL])
    discord_sim.add_thread(CHANNEL, THREAD)
    discord_sim.say(THREAD, "in the thread", user=8)
    (event,) = await take(discord, 1)
    assert (event.chat.chat_id, event.chat.thread_id) == (str(CHANNEL), str(THREAD))
    discord._channels.known.pop(str(THREAD))
    discord_sim.say(THREAD, "in a thread that was archived", user=8)
    (event,) = await take(discord, 1)
    assert (event.chat.chat_id, event.chat.thread_id) == (str(CHANNEL), str(THREAD))


async def test_own_messages_bots_joins_and_added_embeds_are_told_apart(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    said = discord_sim.say(7, "https://example.org")
    discord_sim.unfurl(7, said)
    discord_sim.say(7, "mine", extra={"author": discord_sim.world.bot})
    discord_sim.say(7, "joined", extra={"type": 7})
    discord_sim.say(7, "beep", user=66, bot=True)
    discord_sim.edit(7, said, "edited")
    first, robot, edit = await take(discord, 3)
    assert [first.text, robot.text, edit.text] == ["https://example.org", "beep", "edited"]
    assert robot.identity.is_bot
    assert (first.edited, edit.edited) == (False, True)
    assert edit.message_ref == first.message_ref


async def test_an_unconfirmed_batch_comes_again(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    discord_sim.say(7, "one")
    assert [event.text for event in await take(discord, 1, confirm=False)] == ["one"]
    discord_sim.say(7, "two")
    assert await texts(discord, 2) == ["one", "two"]


async def test_poison_goes_along_and_stops_nobody(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    discord_sim.inject("MESSAGE_CREATE", {"id": 5, "channel_id": {}, "author": "me"})
    discord_sim.inject("MESSAGE_CREATE", {"id": "5", "channel_id": "7", "content": "no author"})
    discord_sim.inject("GUILD_CREATE", {"id": "x", "channels": [None, 5]})
    discord_sim.inject("INTERACTION_CREATE", {"id": "9"})
    discord_sim.say(7, "after")
    updates = []
    async with asyncio.timeout(5):
        while len(updates) < 4:
            batch = await discord.receive()
            discord.confirm(batch)
            updates += batch.updates
    assert [update.identity is None for update in updates] == [True, True, True, False]
    assert len({update.dedup_key for update in updates}) == 4


async def test_what_was_said_while_the_process_was_down_is_read_from_the_cursors(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(CHANNEL + 50, "before we came", user=8)
    discord_sim.add_guild(GUILD, [CHANNEL, OTHER])
    discord_sim.say(7, "one")
    found = await cursors(discord, lambda seen: "7" in seen and str(OTHER) in seen)
    await discord.aclose()
    for number in range(150):
        discord_sim.say(7, f"private {number}")
    discord_sim.say(OTHER, "in the guild", user=8)
    later = await restarted(discord_sim, discord, found)
    heard = await texts(later, 151)
    assert [text for text in heard if text.startswith("private")] == [f"private {n}" for n in range(150)]
    assert "in the guild" in heard
    await later.aclose()


async def test_a_guild_that_is_new_to_us_begins_with_what_comes(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.add_guild(GUILD, [CHANNEL])
    discord_sim.say(CHANNEL, "said before the bot came", user=8, heard=False)
    await discord.aclose()
    first = make_discord(discord_sim)
    await first.connect()
    first.resume_from({})
    discord_sim.say(CHANNEL, "said now", user=8)
    assert await texts(first, 1) == ["said now"]
    await first.aclose()


async def test_a_channel_made_while_the_process_was_down_is_read_from_its_beginning(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.add_guild(GUILD, [CHANNEL])
    found = await cursors(discord, lambda seen: str(CHANNEL) in seen)
    await discord.aclose()
    discord_sim.add_guild(GUILD, [OTHER])
    discord_sim.say(OTHER, "a new channel", user=8)
    later = await restarted(discord_sim, discord, found)
    assert await texts(later, 1) == ["a new channel"]
    await later.aclose()


async def test_roles_are_known_live_and_are_asked_after_for_the_history(discord_sim: DiscordSimulator) -> None:
    discord_sim.world.roles[8] = ["77", "78"]
    discord_sim.add_guild(GUILD, [CHANNEL])
    discord_sim.say(CHANNEL, "old", user=8, heard=False)
    later = make_discord(discord_sim, roles=True)
    await later.connect()
    later.resume_from({f"guild {GUILD}": "known", str(CHANNEL): f"1 {GUILD}"})
    discord_sim.say(CHANNEL, "live", user=8)
    old, live = await take(later, 2)
    assert [old.text, live.text] == ["old", "live"]
    assert old.identity.roles == live.identity.roles == {"77", "78"}
    assert not old.addressed
    await later.aclose()


async def test_catching_up_is_bounded_in_count_and_in_age(discord_sim: DiscordSimulator) -> None:
    now = time.time()
    discord_sim.say(7, "long ago", at=now - 7200)
    for number in range(30):
        discord_sim.say(7, f"{number}", heard=False)
    later = make_discord(discord_sim, catch_up_messages=10, catch_up_age=3600.0)
    await later.connect()
    later.resume_from({"7": "1 private"})
    assert await texts(later, 10) == [str(n) for n in range(20, 30)]
    await later.aclose()


async def test_live_messages_of_a_channel_wait_behind_its_history_and_those_of_others_do_not(
    discord_sim: DiscordSimulator,
) -> None:
    discord_sim.say(7, "old", heard=False)
    discord_sim.faults.add(Reply(500, "no", "text/plain"), endpoint="history")
    later = make_discord(discord_sim)
    await later.connect()
    later.resume_from({"7": "1 private"})
    discord_sim.say(7, "live")
    discord_sim.say(8, "of another")
    assert (await failure(later)).facts.status == 500
    assert await texts(later, 3) == ["of another", "old", "live"]
    await later.aclose()


async def test_a_gap_is_closed_while_others_go_on_talking(discord_sim: DiscordSimulator) -> None:
    discord_sim.say(7, "old", heard=False)
    later = make_discord(discord_sim)
    await later.connect()
    later.resume_from({"7": "1 private"})
    heard: list[str] = []
    async with asyncio.timeout(5):
        for number in range(40):
            discord_sim.say(8, f"{number}")
            await discord_sim.wait_for(lambda: discord_sim._outgoing.empty())
            heard += await texts(later, 1)
            if "old" in heard:
                break
    assert "old" in heard
    await later.aclose()


async def test_what_came_before_a_cut_is_handed_on_before_the_cut_is_told(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "one")
    assert await texts(discord, 1) == ["one"]
    discord_sim.say(7, "two")
    await discord_sim.wait_for(lambda: discord_sim._outgoing.empty())
    discord_sim.close_sockets(4000)
    await discord_sim.wait_for(lambda: not discord_sim.gateway.sockets)
    assert await texts(discord, 1) == ["two"]
    with pytest.raises(PlatformFailure):
        await discord.receive()


async def test_a_history_that_is_refused_is_given_up_and_its_cursor_stays(discord_sim: DiscordSimulator) -> None:
    discord_sim.say(7, "old", heard=False)
    discord_sim.faults.add(ApiError(403, "Missing Access", code="50001"), endpoint="history", times=3)
    later = make_discord(discord_sim)
    later._history.wait = 0.0
    await later.connect()
    later.resume_from({"7": "1 private"})
    discord_sim.say(7, "live")
    async with asyncio.timeout(10):
        while not later._channels.known["7"].stuck:
            later.confirm(await later.receive())
            later._channels.known["7"].not_before = 0.0
    assert await texts(later, 1) == ["live"]
    assert "7" not in later._channels.cursors()
    await later.aclose()


async def test_a_pressed_button_and_a_command_are_answered_only_when_they_are_on_disk(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    said = discord_sim.say(7, "question")
    await take(discord, 1)
    pressed = discord_sim.press(7, said, "yes", user=8)
    async with asyncio.timeout(5):
        while not (batch := await discord.receive()).updates:
            discord.confirm(batch)
    (update,) = batch.updates
    event = discord.normalise(update.raw)
    assert isinstance(event, ButtonEvent)
    assert (event.data, event.identity.user_id, event.message_ref) == ("yes", "8", f"7:{said}")
    assert "token" not in update.raw
    assert pressed not in discord_sim.world.answered
    discord.confirm(batch)
    discord.confirm(await discord.receive())
    assert discord_sim.world.answered[pressed] == {"type": 6}
    given = discord_sim.command(7, "status", "now")
    (command,) = await take(discord, 1)
    assert command.text == "/status now"
    discord.confirm(await discord.receive())
    assert discord_sim.world.answered[given]["type"] == 4


async def test_files_are_kept_by_name_and_fetched_at_the_address_they_have_then(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "look", files=[("a.png", b"picture"), ("b.txt", b"text")])
    batch = await discord.receive()
    while not batch.updates:
        discord.confirm(batch)
        batch = await discord.receive()
    (update,) = batch.updates
    assert "http" not in update.raw
    event = discord.normalise(update.raw)
    assert isinstance(event, MessageEvent)
    assert [(file.kind, file.name, file.mime) for file in event.attachments] == [
        ("photo", "a.png", "image/png"),
        ("document", "b.txt", "text/plain"),
    ]
    assert [await discord.download(file, 100) for file in event.attachments] == [b"picture", b"text"]
    for file, limit in ((event.attachments[0], 3), (AttachmentRef("photo", "7:1:2"), 100)):
        with pytest.raises(PlatformFailure):
            await discord.download(file, limit)
