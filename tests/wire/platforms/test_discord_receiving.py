"""Discord's gateway and history against the wire: order, gaps, sessions, silence, refusals (R1, R2, R4, R5)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping

import pytest

from hermes.core.delivery import DeliveryReason, Operation
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, AttachmentRef, Batch, ButtonEvent, MessageEvent
from hermes.core.ports import Outgoing
from hermes.core.principals import ChatKind
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.policy.delivery import classify_delivery
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.faults import ApiError, Reply, Reset, Stall
from tests.wire.platforms.conftest import make_discord

pytestmark = pytest.mark.wire
GUILD, CHANNEL, OTHER, THREAD = 900, 901, 902, 903


async def take(platform: DiscordPlatform, count: int, *, confirm: bool = True) -> list[MessageEvent]:
    """The next ``count`` messages, in their order."""
    found: list[MessageEvent] = []
    async with asyncio.timeout(5):
        while len(found) < count:
            batch = await platform.receive()
            if confirm or not batch.updates:
                platform.confirm(batch)
            events = [platform.normalise(update.raw) for update in batch.updates]
            found += [event for event in events if isinstance(event, MessageEvent)]
    return found


async def texts(platform: DiscordPlatform, count: int) -> list[str]:
    return [event.text for event in await take(platform, count)]


async def cursors(platform: DiscordPlatform, until: Callable[[Mapping[str, str]], bool]) -> dict[str, str]:
    """The cursors as T1 would have them, once they satisfy a condition."""
    found: dict[str, str] = {}
    async with asyncio.timeout(5):
        while not until(found):
            batch = await platform.receive()
            found |= batch.cursors
            platform.confirm(batch)
    return found


async def failure(platform: DiscordPlatform) -> PlatformFailure:
    """What the next cycles fail with."""
    async with asyncio.timeout(5):
        while True:
            try:
                platform.confirm(await platform.receive())
            except PlatformFailure as failed:
                return failed


async def restarted(sim: DiscordSimulator, platform: DiscordPlatform, found: dict[str, str]) -> DiscordPlatform:
    """Another process with the same cursors."""
    await platform.aclose()
    later = make_discord(sim)
    await later.connect()
    later.resume_from(found)
    return later


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


@pytest.mark.parametrize("code", [4000, 4001, 4002, 1001, 4008])
async def test_a_lost_socket_is_told_and_its_session_resumed(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, code: int
) -> None:
    discord_sim.say(7, "one")
    assert await texts(discord, 1) == ["one"]
    discord_sim.close_sockets(code)
    failed = await failure(discord)
    reason = classify_delivery(failed.facts).reason
    assert reason is (DeliveryReason.FLOOD_WAIT if code == 4008 else DeliveryReason.NETWORK_RETRYABLE)
    discord_sim.say(7, "said in between")
    assert await texts(discord, 1) == ["said in between"]
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (1, 1)


@pytest.mark.parametrize("code", [4007, 4009])
async def test_a_session_that_is_over_is_not_resumed_and_the_gap_is_read(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, code: int
) -> None:
    discord_sim.say(7, "one")
    assert await texts(discord, 1) == ["one"]
    discord_sim.gateway.ghost = True
    discord_sim.say(7, "told to nobody")
    discord_sim.close_sockets(code)
    await failure(discord)
    discord_sim.gateway.ghost = False
    assert await texts(discord, 1) == ["told to nobody"]
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (0, 2)


async def test_a_reconnect_that_discord_asks_for_is_no_failure(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.ask(7)
    discord_sim.say(7, "still here")
    assert await texts(discord, 1) == ["still here"]
    await discord_sim.wait_for(lambda: discord_sim.gateway.resumes == 1)
    assert len(discord_sim.gateway.identifies) == 1


async def test_an_invalid_session_is_identified_anew_and_nothing_is_missed(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "one")
    assert await texts(discord, 1) == ["one"]
    discord_sim.ask(9, False)
    await discord_sim.wait_for(lambda: discord_sim.gateway.listeners == 0)
    discord_sim.say(7, "said to nobody")
    assert await texts(discord, 1) == ["said to nobody"]
    assert len(discord_sim.gateway.identifies) == 2


async def test_a_poisoned_resume_ends_in_a_new_session_and_the_history(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "one")
    assert await texts(discord, 1) == ["one"]
    discord_sim.drop_connections()
    await failure(discord)
    discord_sim.gateway.forget()
    discord_sim.say(7, "in the gap")
    assert await texts(discord, 1) == ["in the gap"]
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (1, 2)


@pytest.mark.parametrize(
    ("code", "reason", "word"),
    [
        (4004, DeliveryReason.PERMANENT_AUTH, "Authentication"),
        (4013, DeliveryReason.FATAL_CONFIG, "intents"),
        (4014, DeliveryReason.FATAL_CONFIG, "MESSAGE CONTENT INTENT"),
    ],
)
async def test_a_refusal_that_only_a_person_can_mend_is_told_as_one(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, code: int, reason: DeliveryReason, word: str
) -> None:
    discord_sim.close_sockets(code)
    failed = await failure(discord)
    assert classify_delivery(failed.facts).reason is reason
    assert word in failed.facts.message


async def test_a_revoked_token_and_a_switched_off_intent_heal_when_they_are_given_back(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    for off, on in (
        (discord_sim.revoke, discord_sim.restore),
        (discord_sim.disallow_content, discord_sim.allow_content),
    ):
        off()
        await failure(discord)
        await discord.rebuild()
        with pytest.raises(PlatformFailure):
            await discord.connect()
        on()
        await discord.rebuild()
        await discord.connect()
        discord_sim.say(7, "again")
        assert await texts(discord, 1) == ["again"]


@pytest.mark.parametrize("how", ["deaf", "mute"])
async def test_a_dead_connection_is_found_within_its_bound(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, how: str
) -> None:
    """Bounds are a ninetieth of the real ones: 1 s for 90 s."""
    setattr(discord_sim.gateway, how, True)
    begun = time.monotonic()
    failed = await failure(discord)
    assert time.monotonic() - begun < 120 / 90 + 1.0
    assert classify_delivery(failed.facts).reason is DeliveryReason.NETWORK_RETRYABLE
    setattr(discord_sim.gateway, how, False)
    discord_sim.say(7, "back")
    assert await texts(discord, 1) == ["back"]


async def test_a_session_that_tells_nothing_of_what_we_send_is_given_up(discord_sim: DiscordSimulator) -> None:
    """A ghost: its heartbeats are acknowledged, and no event comes."""
    discord_sim.say(7, "hello")
    platform = make_discord(discord_sim, echo=0.6)
    await platform.connect()
    platform.resume_from({})
    discord_sim.say(7, "one")
    assert await texts(platform, 1) == ["one"]
    discord_sim.gateway.ghost = True
    discord_sim.say(7, "told to nobody")
    (part,) = platform.render("an answer")
    await platform.send(Outgoing(Address("discord", "424242", "7"), Operation.CREATE, part.payload, "n"))
    failed = await failure(platform)
    assert classify_delivery(failed.facts).reason is DeliveryReason.NETWORK_RETRYABLE
    discord_sim.gateway.ghost = False
    assert await texts(platform, 1) == ["told to nobody"]
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (0, 2)
    await platform.aclose()


async def test_a_session_that_tells_of_what_we_send_goes_on(discord_sim: DiscordSimulator) -> None:
    platform = make_discord(discord_sim, echo=0.6)
    await platform.connect()
    discord_sim.say(7, "one")
    assert await texts(platform, 1) == ["one"]
    (part,) = platform.render("an answer")
    await platform.send(Outgoing(Address("discord", "424242", "7"), Operation.CREATE, part.payload, "n"))
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        platform.confirm(await platform.receive())
    assert len(discord_sim.gateway.identifies) == 1
    await platform.aclose()


async def test_a_quiet_connection_completes_cycles_by_its_heartbeats(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    async with asyncio.timeout(5):
        for _ in range(6):
            batch: Batch = await discord.receive()
            discord.confirm(batch)
            assert batch.updates == ()
    assert sum(socket.heartbeats for socket in discord_sim.gateway.sockets) >= 3


@pytest.mark.parametrize(
    "fault", [Reply(503, "<html>", "text/html"), Stall(30), Reset()], ids=["503", "stall", "reset"]
)
async def test_a_gateway_that_cannot_be_opened_is_a_failure_that_may_pass(
    discord_sim: DiscordSimulator, fault: Reply | Stall | Reset
) -> None:
    later = make_discord(discord_sim)
    discord_sim.faults.add(fault, endpoint="gateway", times=2)  # a pooled connection's reset is tried once more
    with pytest.raises(PlatformFailure) as caught:
        await later.connect()
    reason = classify_delivery(caught.value.facts).reason
    assert reason in (DeliveryReason.NETWORK_RETRYABLE, DeliveryReason.TIMEOUT_AMBIGUOUS)
    discord_sim.faults.clear()
    await later.rebuild()
    await later.connect()
    await later.aclose()


async def test_the_days_last_session_is_not_spent(discord_sim: DiscordSimulator) -> None:
    discord_sim.gateway.session_limit = 0
    later = make_discord(discord_sim)
    with pytest.raises(PlatformFailure) as caught:
        await later.connect()
    verdict = classify_delivery(caught.value.facts)
    assert (verdict.reason, verdict.retry_after) == (DeliveryReason.FLOOD_WAIT, 14_400.0)
    assert not discord_sim.gateway.identifies
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


async def test_nothing_is_left_after_the_end_whatever_the_server_does(discord_sim: DiscordSimulator) -> None:
    before = threading.active_count()
    for silent in (False, True):
        platform = make_discord(discord_sim)
        await platform.connect()
        assert threading.active_count() == before + 1
        discord_sim.gateway.deaf = silent
        begun = time.monotonic()
        await platform.aclose()
        assert time.monotonic() - begun < 2.5
        assert threading.active_count() == before
        discord_sim.gateway.deaf = False
    names = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}  # type: ignore[union-attr]
    assert not {name for name in names if "Discord" in name and "Simulator" not in name}
