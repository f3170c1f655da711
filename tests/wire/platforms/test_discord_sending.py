"""Sends to Discord against the wire: what the user sees, and what each failure tells (R17, R18, R20)."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from hermes.core.delivery import MARK_PREFIX, DeliveryFacts, DeliveryReason, Operation, Sent
from hermes.core.errors import PlatformFailure, Poison
from hermes.core.events import Address
from hermes.core.ports import MenuEntry, Outgoing
from hermes.core.records import OutgoingPart
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.platforms.discord.calls import with_buttons
from hermes.policy.delivery import classify_delivery
from hermes.simulators.discord import Buckets, DiscordSimulator
from hermes.simulators.faults import ApiError, Delay, Reply, Reset, Stall, html_page
from tests.wire.platforms.conftest import make_discord

pytestmark = pytest.mark.wire
TO = Address("discord", "424242", "7")
R = DeliveryReason


@pytest.fixture(autouse=True)
def chats(discord_sim: DiscordSimulator) -> None:
    """People who have written before."""
    discord_sim.say(7, "hello")
    discord_sim.say(8, "hello")


def create(platform: DiscordPlatform, text: str, to: Address = TO, nonce: str = "n", **more: Any) -> Outgoing:
    (part,) = platform.render(text)
    return Outgoing(to, Operation.CREATE, part.payload, nonce, **more)


def edit(platform: DiscordPlatform, text: str, ref: str) -> Outgoing:
    (part,) = platform.render(text)
    return Outgoing(TO, Operation.EDIT, part.payload, "n", message_ref=ref)


async def failure(platform: DiscordPlatform, outgoing: Outgoing) -> DeliveryFacts:
    with pytest.raises(PlatformFailure) as caught:
        await platform.send(outgoing)
    return caught.value.facts


async def test_an_answer_pings_nobody_shows_no_previews_and_carries_an_enforced_nonce(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    receipt = await discord.send(create(discord, "**bold** @everyone https://example.org"))
    (seen,) = discord_sim.chat(7)
    assert (str(seen.message_id), seen.text) == (receipt.message_ref, "**bold** @everyone https://example.org")
    (call,) = discord_sim.called("create")
    body = call.params["body"]
    assert body["allowed_mentions"] == {"parse": [], "replied_user": True}
    assert (body["flags"], body["enforce_nonce"], len(body["nonce"])) == (4, True, 25)


async def test_a_repeated_create_makes_one_message(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    first = await discord.send(create(discord, "once"))
    again = await discord.send(create(discord, "once"))
    other = await discord.send(create(discord, "once", nonce="another"))
    assert first == again != other
    assert discord_sim.texts(7) == ["once", "once"]


@pytest.mark.parametrize("fault", [Reset(delivered=True), Stall(30, delivered=True), Reply(500, "", delivered=True)])
async def test_a_send_whose_answer_was_lost_may_be_repeated_and_nothing_is_doubled(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, fault: Reset | Stall | Reply
) -> None:
    discord_sim.faults.add(fault, endpoint="create")
    facts = await failure(discord, create(discord, "once"))
    assert facts.sent is Sent.MAYBE_SENT
    assert discord_sim.texts(7) == ["once"]
    await discord.send(create(discord, "once"))
    assert discord_sim.texts(7) == ["once"]


async def test_an_old_create_is_looked_for_when_its_nonce_is_forgotten(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    long_ago = time.time() - 600
    made = await discord.send(create(discord, "once"))
    discord_sim.world.nonces.clear()
    assert await discord.send(create(discord, "once", since=long_ago)) == made
    assert await discord.send(create(discord, "once", marked=True, since=long_ago)) == made
    assert discord_sim.texts(7) == ["once"]


async def test_a_doubtful_create_that_certainly_was_not_made_carries_no_mark(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    await discord.send(create(discord, "new", marked=True, since=time.time()))
    assert discord_sim.texts(7) == ["new"]
    discord_sim.faults.add(ApiError(403, "Missing Access", code="50001"), endpoint="history")
    await discord.send(create(discord, "unseen", marked=True, since=time.time(), nonce="m"))
    assert discord_sim.texts(7) == ["new", f"{MARK_PREFIX}unseen"]


async def test_an_equal_message_of_an_earlier_delivery_is_not_taken_for_this_one(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "Done.", extra={"author": discord_sim.world.bot}, at=time.time() - 60)
    await discord.send(create(discord, "Done.", marked=True, since=time.time() - 30))
    assert discord_sim.texts(7) == ["Done."]


async def test_a_draft_that_was_made_already_gets_the_final_text(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    draft = await discord.send(create(discord, "The ans"))
    final = await discord.send(create(discord, "The answer is 42.", marked=True))
    assert draft == final
    (seen,) = discord_sim.chat(7)
    assert (seen.text, seen.edits) == ("The answer is 42.", ["The ans"])


async def test_two_stores_with_one_bot_do_not_take_each_others_nonces(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    other = make_discord(discord_sim)
    await other.connect()
    other.resume_from({})
    await discord.send(create(discord, "of the first", nonce="1-0"))
    await other.send(create(other, "of the second", nonce="1-0"))
    assert discord_sim.texts(7) == ["of the first", "of the second"]
    await other.aclose()


async def test_edits_deletes_and_reactions(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    ref = (await discord.send(create(discord, "first"))).message_ref
    await discord.send(edit(discord, "second", ref))
    await discord.send(edit(discord, "second", f"7:{ref}"))
    (seen,) = discord_sim.chat(7)
    assert (seen.text, seen.edits) == ("second", ["first", "second"])
    for payload, left in (('{"emoji": "👍"}', ["👍"]), ('{"was": "👍"}', [])):
        await discord.send(Outgoing(TO, Operation.REACTION, payload, "n", message_ref=ref))
        assert discord_sim.world.reactions[(7, int(ref))] == left
    await discord.send(Outgoing(TO, Operation.DELETE, "{}", "n", message_ref=ref))
    assert discord_sim.texts(7) == []
    gone = await failure(discord, edit(discord, "third", ref))
    assert classify_delivery(gone).detail == "message_gone"


async def test_an_answer_in_a_guild_replies_and_one_in_a_thread_stays_there(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.add_guild(900, [901])
    discord_sim.add_thread(901, 903)
    asked = discord_sim.say(901, "question", user=8)
    await discord.send(create(discord, "answer", Address("discord", "424242", "901", None, str(asked))))
    await discord.send(create(discord, "to nobody", Address("discord", "424242", "901", None, "12345"), "m"))
    await discord.send(create(discord, "inside", Address("discord", "424242", "901", "903"), "o"))
    assert [(seen.text, seen.reply_to) for seen in discord_sim.chat(901)] == [("answer", asked), ("to nobody", None)]
    assert discord_sim.texts(903) == ["inside"]
    await discord.typing(Address("discord", "424242", "901", "903"))
    assert discord_sim.world.typing == [903]


CASES: list[tuple[Any, R, str | None]] = [
    (ApiError(403, "Cannot send messages to this user", code="50007"), R.PERMANENT_TARGET, None),
    (ApiError(404, "Unknown Channel", code="10003"), R.PERMANENT_TARGET, None),
    (ApiError(403, "Missing Permissions", code="50013"), R.PERMANENT_TARGET, None),
    (ApiError(401, "401: Unauthorized", code="0"), R.PERMANENT_AUTH, None),
    (ApiError(400, "Cannot send an empty message", code="50006"), R.FORMATTING, None),
    (html_page(502), R.NETWORK_RETRYABLE, "server"),
    (Reply(503, "upstream connect error", "text/plain"), R.NETWORK_RETRYABLE, "server"),
    (Reply(200, "<html>", "text/html"), R.UNKNOWN, None),
    (Stall(30), R.TIMEOUT_AMBIGUOUS, "no_answer"),
]


@pytest.mark.parametrize(("fault", "reason", "detail"), CASES)
async def test_each_refusal_is_told_once_and_means_what_it_says(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, fault: Any, reason: R, detail: str | None
) -> None:
    discord_sim.faults.add(fault, endpoint="create", times=None)
    verdict = classify_delivery(await failure(discord, create(discord, "text")))
    assert (verdict.reason, verdict.detail or None) == (reason, detail or verdict.detail)
    assert len(discord_sim.called("create")) == 1


async def test_what_is_too_long_is_told_as_such(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    long = Outgoing(TO, Operation.CREATE, '{"text": "' + "x" * 2001 + '"}', "n")
    assert classify_delivery(await failure(discord, long)).reason is R.TOO_LONG


async def test_a_blocked_person_and_a_channel_that_is_gone(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.block(7)
    for address in (TO, Address("discord", "424242", "5")):
        facts = await failure(discord, create(discord, "text", address))
        assert classify_delivery(facts).reason is R.PERMANENT_TARGET
    discord_sim.reopen(7)
    await discord.send(create(discord, "text"))


async def test_a_refused_connection_and_a_closed_client_sent_nothing(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.unlisten()
    discord_sim.drop_connections()
    await discord._rest.close()
    await discord._rest.open()
    facts = await failure(discord, create(discord, "text"))
    assert (facts.sent, classify_delivery(facts).reason) == (Sent.NOT_SENT, R.NETWORK_RETRYABLE)
    await discord.aclose()
    assert (await failure(discord, create(discord, "text"))).sent is Sent.NOT_SENT


async def test_a_limit_is_told_with_its_seconds_and_not_tried_again_before(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.world.buckets = Buckets(limit=2, window=30.0, ban=5.0)
    for number in range(2):
        await discord.send(create(discord, f"{number}", nonce=f"{number}"))
    told = classify_delivery(await failure(discord, create(discord, "2", nonce="2")))
    assert told.reason is R.FLOOD_WAIT
    assert told.retry_after is not None
    assert 25 < told.retry_after <= 30
    await discord.send(create(discord, "elsewhere", Address("discord", "424242", "8"), "3"))
    assert (discord_sim.world.buckets.violations, len(discord_sim.called("create"))) == (0, 3)


async def test_a_ban_that_no_header_announced_is_obeyed_once_told(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    body = {"retry_after": 7.25, "global": False}
    discord_sim.faults.add(
        ApiError(429, "You are being rate limited.", parameters=body, headers={"Retry-After": "8"}), endpoint="create"
    )
    first = await failure(discord, create(discord, "text"))
    assert (first.retry_after, first.headers["retry-after"]) == (7.25, "8")
    second = await failure(discord, create(discord, "text"))
    assert second.retry_after is not None
    assert 6 < second.retry_after <= 7.25
    assert len(discord_sim.called("create")) == 1


async def test_a_global_limit_closes_every_channel(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    body = {"retry_after": 3.0, "global": True}
    discord_sim.faults.add(ApiError(429, "You are being rate limited.", parameters=body), endpoint="create")
    await failure(discord, create(discord, "text"))
    elsewhere = await failure(discord, create(discord, "text", Address("discord", "424242", "8")))
    assert classify_delivery(elsewhere).reason is R.FLOOD_WAIT
    assert len(discord_sim.called("create")) == 1


async def test_a_slow_answer_is_waited_for(discord_sim: DiscordSimulator, discord: DiscordPlatform) -> None:
    discord_sim.faults.add(Delay(0.3), endpoint="create")
    await discord.send(create(discord, "text"))
    assert discord_sim.texts(7) == ["text"]


async def test_buttons_stand_under_the_last_part_and_are_taken_away_by_an_edit(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    parts = with_buttons(discord.render("Which?"), [("Yes", "q:1:yes"), ("No", "q:1:no")])
    ref = (await discord.send(Outgoing(TO, Operation.CREATE, parts[-1].payload, "n"))).message_ref
    (seen,) = discord_sim.chat(7)
    (row,) = seen.components
    assert [(b["label"], b["custom_id"]) for b in row["components"]] == [("Yes", "q:1:yes"), ("No", "q:1:no")]
    await discord.send(edit(discord, "Answered: yes", ref))
    assert discord_sim.chat(7)[0].components == []


def test_buttons_keep_within_discords_bounds() -> None:
    part = OutgoingPart('{"text": "?"}')
    (filled,) = with_buttons((part,), [("label " * 40, f"data-{n}") for n in range(30)])
    assert filled.payload.count('"custom_id"') == 25
    with pytest.raises(Poison):
        with_buttons((part,), [("label", "x" * 101)])


@pytest.mark.parametrize("payload", ["", "[]", "{}", '{"text": 5}'])
async def test_a_payload_that_is_not_ours_is_poison(discord: DiscordPlatform, payload: str) -> None:
    with pytest.raises(Poison):
        await discord.send(Outgoing(TO, Operation.CREATE, payload, "n"))


async def test_the_commands_are_written_only_when_discord_shows_others(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    entries = [MenuEntry("stop", "stop what I am doing"), MenuEntry("queue", "TEXT – " + "x" * 200)]
    assert await discord.publish_commands(entries)
    assert not await discord.publish_commands(entries)
    assert await discord.publish_commands(entries[:1])
    assert discord_sim.world.command_writes == 2
    assert [command["name"] for command in discord_sim.world.commands] == ["stop"]


async def test_no_list_of_commands_is_refused_for_its_size_or_its_names(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    many = [MenuEntry(f"c{n}", "") for n in range(150)]
    await discord.publish_commands([MenuEntry("Two Words", "x"), MenuEntry("", "x"), *many])
    assert len(discord_sim.world.commands) == 100


async def test_no_fact_and_no_log_holds_the_token(
    discord_sim: DiscordSimulator, discord: DiscordPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    discord_sim.faults.add(ApiError(400, f"odd {discord_sim.token}", code="1"), endpoint="create")
    told = [await failure(discord, create(discord, "text"))]
    discord_sim.faults.add(Reply(200, discord_sim.token, "text/plain"), endpoint="create")
    told.append(await failure(discord, create(discord, "text")))
    for facts in told:
        assert discord_sim.token not in repr(facts)
    assert discord_sim.token not in caplog.text
