"""What goes to Slack: threads, edits, buttons, limits, refusals, and looking before a repeat (R18)."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hermes.core.delivery import MARK_PREFIX, DeliveryReason, Operation, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address, ButtonEvent, MessageEvent
from hermes.core.ports import Outgoing
from hermes.platforms.slack.adapter import SlackPlatform
from hermes.policy.delivery import classify_delivery
from hermes.simulators.faults import ApiError, Reply, Reset, Stall, garbage_json, html_page
from hermes.simulators.slack import Flood, SlackSimulator
from tests.wire.platforms.conftest import make_slack
from tests.wire.platforms.test_slack_receiving import batches

pytestmark = pytest.mark.wire
HERE = Address("slack", "U0BOT", "D0007")


def outgoing(platform: SlackPlatform, text: str, nonce: str = "1-0", address: Address = HERE) -> Outgoing:
    (part,) = platform.render(text)
    return Outgoing(address, Operation.CREATE, part.payload, nonce, since=time.time())


@pytest.fixture(autouse=True)
def _conversation(slack_sim: SlackSimulator) -> None:
    slack_sim.place(7)


async def test_an_answer_arrives_as_it_was_written_and_can_be_edited_and_deleted(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    created = outgoing(slack, "hello <you> & me")
    receipt = await slack.send(created)
    (seen,) = slack_sim.chat(7)
    assert (seen.ts, seen.text) == (receipt.message_ref, "hello <you> & me")
    edit = replace(outgoing(slack, "changed"), operation=Operation.EDIT, message_ref=receipt.message_ref)
    assert await slack.send(edit) == receipt
    assert slack_sim.texts(7) == ["changed"]
    await slack.send(replace(edit, operation=Operation.DELETE))
    assert slack_sim.texts(7) == []


async def test_an_answer_in_a_channel_goes_into_the_thread(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    top = slack_sim.say("C1", "<@U0BOT> hello", user=8)
    update = (await batches(slack, 1))[-1].updates[0]
    event = slack.normalise(update.raw)
    assert isinstance(event, MessageEvent)
    await slack.send(outgoing(slack, "hi", address=event.address))
    (seen,) = slack_sim.chat("C1")
    assert seen.thread == top
    await slack.typing(event.address)
    assert slack_sim.world.statuses == [("C1", top, "is thinking…")]


async def test_buttons_are_pressed_after_another_process_has_taken_over(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    parts = slack.with_buttons(slack.render("Which?"), [("Yes", "q:1"), ("No", "q:2")])
    sent = Outgoing(HERE, Operation.CREATE, parts[0].payload, "1-0", since=time.time())
    receipt = await slack.send(sent)
    await slack.aclose()
    later = make_slack(slack_sim)
    await later.connect()
    slack_sim.press(7, receipt.message_ref, "q:2")
    (update,) = [u for batch in await batches(later, 1) for u in batch.updates]
    assert update.message_ref == f"D0007:{receipt.message_ref}"
    assert getattr(later.normalise(update.raw), "data", None) == "q:2"
    await later.aclose()


async def test_whoever_pressed_a_closed_button_is_told_so_alone(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    sent = await slack.send(outgoing(slack, "Which?"))
    slack_sim.press(7, sent.message_ref, "q:9")
    _, update = [u for batch in await batches(slack, 2) for u in batch.updates]
    event = slack.normalise(update.raw)
    assert isinstance(event, ButtonEvent)
    await slack.whisper(event, update.raw, "That is <closed>.")
    assert slack_sim.world.whispers == [("D0007", "U0007", "That is <closed>.")]
    assert slack_sim.texts(7) == ["Which?"]


async def test_a_reaction_is_given_once_and_taken_back(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    ts = slack_sim.say(7, "hello")
    react = Outgoing(HERE, Operation.REACTION, '{"emoji": "👀"}', "n", message_ref=f"D0007:{ts}")
    for _ in range(2):
        await slack.send(react)
    assert slack_sim.world.channels["D0007"].messages[ts]["hermes_reactions"] == ["eyes"]
    for _ in range(2):
        await slack.send(replace(react, payload='{"was": "👀"}'))
    assert slack_sim.world.channels["D0007"].messages[ts]["hermes_reactions"] == []


@pytest.mark.parametrize(
    "fault",
    [Reset(delivered=True), Stall(delivered=True), Reply(500, "oops", "text/plain", delivered=True),
     Reply(200, '{"ok": tru', delivered=True), ApiError(200, "internal_error", delivered=True)],
    ids=["reset", "stall", "500", "garbage", "internal_error"],
)  # fmt: skip
async def test_what_may_have_arrived_is_looked_for_and_not_sent_twice(
    slack_sim: SlackSimulator, slack: SlackPlatform, fault: object
) -> None:
    slack_sim.faults.add(fault, endpoint="chat.postMessage")  # type: ignore[arg-type]
    sent = outgoing(slack, "once")
    with pytest.raises(PlatformFailure) as caught:
        await slack.send(sent)
    assert caught.value.facts.sent is Sent.MAYBE_SENT
    receipt = await slack.send(sent)
    (seen,) = slack_sim.chat(7)
    assert (seen.text, seen.ts) == ("once", receipt.message_ref)
    assert len(slack_sim.called("chat.postMessage")) == 1
    assert not slack_sim.called("chat.update")


@pytest.mark.parametrize("fault", [Reset(), Stall(), Reply(503, "busy", "text/plain"), garbage_json()], ids=repr)
async def test_what_did_not_arrive_is_sent_after_the_look_without_a_mark(
    slack_sim: SlackSimulator, slack: SlackPlatform, fault: object
) -> None:
    slack_sim.faults.add(fault, endpoint="chat.postMessage")  # type: ignore[arg-type]
    sent = outgoing(slack, "once")
    with pytest.raises(PlatformFailure):
        await slack.send(sent)
    await slack.send(sent)
    assert slack_sim.texts(7) == ["once"]


async def test_what_an_earlier_process_may_have_sent_is_looked_for_in_its_thread(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.add_channel("C1")
    top = slack_sim.say("C1", "<@U0BOT> hello", user=8)
    sent = outgoing(slack, "draft", address=Address("slack", "U0BOT", "C1", top))
    await slack.send(sent)
    later = make_slack(slack_sim)
    await later.connect()
    receipt = await later.send(replace(outgoing(later, "whole answer", address=sent.address), since=sent.since))
    (seen,) = slack_sim.chat("C1")
    assert (seen.ts, seen.text) == (receipt.message_ref, "whole answer")
    await later.aclose()


async def test_where_we_may_not_look_a_repeat_is_marked(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    slack_sim.faults.add(Reset(delivered=True), endpoint="chat.postMessage")
    slack_sim.world.scopes = {"chat:write"}
    sent = outgoing(slack, "once")
    with pytest.raises(PlatformFailure):
        await slack.send(sent)
    await slack.send(sent)
    assert slack_sim.texts(7) == ["once", MARK_PREFIX + "once"]


async def test_another_nonce_is_another_message(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    await slack.send(outgoing(slack, "same words", "1-0"))
    await slack.send(replace(outgoing(slack, "same words", "2-0"), since=0.0))
    assert slack_sim.texts(7) == ["same words", "same words"]


@pytest.mark.parametrize(
    ("fault", "reason", "sent"),
    [
        (ApiError(429, "ratelimited", headers={"Retry-After": "7"}), DeliveryReason.FLOOD_WAIT, Sent.REFUSED),
        (ApiError(200, "msg_too_long"), DeliveryReason.TOO_LONG, Sent.REFUSED),
        (ApiError(200, "channel_not_found"), DeliveryReason.PERMANENT_TARGET, Sent.REFUSED),
        (ApiError(200, "is_archived"), DeliveryReason.PERMANENT_TARGET, Sent.REFUSED),
        (ApiError(200, "not_in_channel"), DeliveryReason.PERMANENT_TARGET, Sent.REFUSED),
        (ApiError(200, "invalid_blocks"), DeliveryReason.FORMATTING, Sent.REFUSED),
        (ApiError(200, "token_revoked"), DeliveryReason.PERMANENT_AUTH, Sent.REFUSED),
        (ApiError(200, "missing_scope", parameters={"needed": "chat:write", "provided": "im:read"}),
         DeliveryReason.FATAL_CONFIG, Sent.REFUSED),
        (html_page(502), DeliveryReason.NETWORK_RETRYABLE, Sent.MAYBE_SENT),
        (Reset(), None, Sent.MAYBE_SENT),
        (Stall(), DeliveryReason.TIMEOUT_AMBIGUOUS, Sent.MAYBE_SENT),
    ],
    ids=lambda value: getattr(value, "message", None) or type(value).__name__,
)  # fmt: skip
async def test_a_refusal_is_told_as_what_it_means(
    slack_sim: SlackSimulator, slack: SlackPlatform, fault: object, reason: DeliveryReason | None, sent: Sent
) -> None:
    slack_sim.faults.add(fault, endpoint="chat.postMessage")  # type: ignore[arg-type]
    with pytest.raises(PlatformFailure) as caught:
        await slack.send(outgoing(slack, "hello"))
    verdict = classify_delivery(caught.value.facts)
    assert caught.value.facts.sent is sent
    assert reason is None or verdict.reason is reason
    assert verdict.retry_after == (7.0 if reason is DeliveryReason.FLOOD_WAIT else None)
    assert slack_sim.token not in str(caught.value.facts)


async def test_a_connection_that_is_refused_sent_nothing(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    slack_sim.unlisten()
    slack_sim.drop_connections()
    with pytest.raises(PlatformFailure) as caught:
        await slack.send(outgoing(slack, "hello"))
    assert caught.value.facts.sent is Sent.NOT_SENT
    await slack_sim.listen()


async def test_a_flood_is_refused_with_its_wait(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    slack_sim.world.flood = Flood(limit=2, window=10, ban=3)
    for number in range(2):
        await slack.send(outgoing(slack, "hello", f"{number}-0"))
    with pytest.raises(PlatformFailure) as caught:
        await slack.send(outgoing(slack, "hello", "9-0"))
    assert classify_delivery(caught.value.facts).retry_after == 3.0


async def test_refused_markup_goes_as_plain_text(slack_sim: SlackSimulator, slack: SlackPlatform) -> None:
    await slack.send(replace(outgoing(slack, "**a** < b"), plain=True))
    (seen,) = slack_sim.chat(7)
    assert (seen.text, seen.mrkdwn) == ("a < b", False)
