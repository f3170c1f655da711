"""Discord's sessions against the wire: cuts, resumes, refusals, silence, the end (R4, R5, R25)."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from hermes.core.delivery import DeliveryReason, Operation
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, Batch
from hermes.core.ports import Outgoing
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.policy.delivery import classify_delivery
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.faults import Reply, Reset, Stall
from tests.wire.platforms.conftest import make_discord
from tests.wire.platforms.discord_reading import cursors, failure, restarted, take, texts

pytestmark = pytest.mark.wire


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


async def test_a_process_that_comes_soon_takes_up_the_session_and_misses_nothing(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    """Edits, presses and a first private message are in no history: only the session offers them."""
    said = discord_sim.say(7, "one")
    assert await texts(discord, 1) == ["one"]
    found = {"session": discord._session.after(discord._seen or ("", 0)) or "", "7": f"{said} private"}
    await discord.aclose()
    discord_sim.edit(7, said, "one, edited")
    discord_sim.say(55, "a person's first words")
    later = await restarted(discord_sim, discord, found, resumed=True)
    edit, first = await take(later, 2)
    assert (edit.text, edit.edited, first.text) == ("one, edited", True, "a person's first words")
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (1, 1)
    await later.aclose()


async def test_the_session_is_written_with_the_messages_and_not_while_something_waits(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "one")
    found = await cursors(discord, lambda seen: "7" in seen)
    assert found["session"].split()[1:3] == ["session-1", "2"]
    discord._channels.known["7"].behind = True
    discord._channels.known["7"].not_before = time.monotonic() + 60
    discord_sim.say(7, "waits behind a gap")
    discord_sim.say(8, "two")
    found = await cursors(discord, lambda seen: "8" in seen)
    assert "session" not in found


@pytest.mark.parametrize(
    "written", ["", "0 session-1 2 ws://x/", "37377 session-1 x ws://x/", "37377 session-1 2 http://x/", "37377"]
)
async def test_a_session_that_cannot_be_taken_up_is_begun_anew(discord_sim: DiscordSimulator, written: str) -> None:
    later = make_discord(discord_sim)
    later.resume_from({"session": written})
    await later.connect()
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (0, 1)
    await later.aclose()


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


async def test_silence_is_looked_into_and_a_ghost_is_found_without_anything_being_sent(
    discord_sim: DiscordSimulator,
) -> None:
    platform = make_discord(discord_sim, audit=0.5)
    await platform.connect()
    platform.resume_from({})
    discord_sim.say(7, "one", at=time.time() - 30)
    assert await texts(platform, 1) == ["one"]
    discord_sim.gateway.ghost = True
    discord_sim.say(7, "told to nobody", at=time.time() - 10)  # too old to be on its way
    assert await texts(platform, 1) == ["told to nobody"]
    failed = await failure(platform)
    assert "tells nothing" in failed.facts.message
    discord_sim.gateway.ghost = False
    discord_sim.say(7, "heard again")
    assert await texts(platform, 1) == ["heard again"]
    assert (discord_sim.gateway.resumes, len(discord_sim.gateway.identifies)) == (0, 2)
    await platform.aclose()


async def test_a_silence_in_which_nothing_was_said_is_healthy(discord_sim: DiscordSimulator) -> None:
    platform = make_discord(discord_sim, audit=0.3)
    await platform.connect()
    platform.resume_from({})
    discord_sim.say(7, "one")
    assert await texts(platform, 1) == ["one"]
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        platform.confirm(await platform.receive())
    assert len(discord_sim.called("history")) >= 2
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
