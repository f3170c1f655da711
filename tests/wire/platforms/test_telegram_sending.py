"""Sends against the wire: what the user sees, and what each failure tells (SDK_FACTS §1, R17–R20)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any

import pytest
from telegram import InputFile
from telegram.request import RequestData
from telegram.request._requestparameter import RequestParameter

from hermes.core.delivery import MARK_PREFIX, DeliveryFacts, DeliveryReason, Operation, SendMarked, Sent
from hermes.core.errors import PlatformFailure, Poison
from hermes.core.events import Address, ButtonEvent
from hermes.core.ports import Outgoing
from hermes.core.records import OutgoingPart
from hermes.platforms.telegram.adapter import TelegramPlatform
from hermes.platforms.telegram.calls import with_buttons
from hermes.platforms.telegram.transport import AiohttpRequest, ApiBot, NotSent
from hermes.policy.delivery import classify_delivery, decide
from hermes.simulators.faults import ApiError, Drip, Reply, Reset, Stall, flood, garbage_json, html_page
from hermes.simulators.telegram import TelegramSimulator
from tests.wire.platforms.conftest import make_adapter

pytestmark = pytest.mark.wire

TO = Address("telegram", "424242", "7")


def create(adapter: TelegramPlatform, text: str, to: Address = TO, **more: Any) -> Outgoing:
    (part,) = adapter.render(text)
    return Outgoing(to, Operation.CREATE, part.payload, "n", **more)


def edit(adapter: TelegramPlatform, text: str, ref: str) -> Outgoing:
    (part,) = adapter.render(text)
    return Outgoing(TO, Operation.EDIT, part.payload, "n", message_ref=ref)


async def failure(adapter: TelegramPlatform, outgoing: Outgoing) -> DeliveryFacts:
    with pytest.raises(PlatformFailure) as caught:
        await adapter.send(outgoing)
    return caught.value.facts


async def test_a_formatted_answer_arrives_with_its_entities(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    receipt = await adapter.send(create(adapter, "😀 **bold** and `code`"))
    (seen,) = sim.chat(7)
    assert (str(seen.message_id), seen.text) == (receipt.message_ref, "😀 bold and code")
    assert [(e["type"], e["offset"], e["length"]) for e in seen.entities] == [("bold", 3, 4), ("code", 12, 4)]
    (call,) = sim.called("sendMessage")
    assert "parse_mode" not in call.params
    assert json.loads(call.params["link_preview_options"]) == {"is_disabled": True}


async def test_a_marked_repeat_says_so_and_its_entities_still_fit(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    await adapter.send(create(adapter, "an **important** word", marked=True))
    (seen,) = sim.chat(7)
    assert seen.text == f"{MARK_PREFIX}an important word"
    (entity,) = seen.entities
    assert seen.text[entity["offset"] :][: entity["length"]] == "important"


async def test_a_full_part_still_fits_with_its_mark(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    first = adapter.render("😀" * 5000)[0]
    await adapter.send(Outgoing(TO, Operation.CREATE, first.payload, "n", marked=True))
    assert sim.texts(7)[0].startswith(MARK_PREFIX)


async def test_the_plain_fallback_sends_the_whole_text_without_entities(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.faults.add(ApiError(400, "Bad Request: can't parse entities: byte offset 3"), endpoint="sendMessage")
    facts = await failure(adapter, create(adapter, "**b** [x](https://example.org)"))
    assert classify_delivery(facts).reason is DeliveryReason.FORMATTING
    await adapter.send(create(adapter, "**b** [x](https://example.org)", plain=True))
    (seen,) = sim.chat(7)
    assert (seen.text, seen.entities) == ("b x (https://example.org)", [])


async def test_thread_and_reply_go_with_every_message(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    said = sim.say(-100, "question", user=3, thread=44)
    to = Address("telegram", "424242", "-100", "44", str(said))
    await adapter.send(create(adapter, "answer", to))
    (seen,) = sim.chat(-100)
    assert (seen.thread, seen.reply_to) == (44, said)
    await adapter.send(
        create(adapter, "to one that is gone", Address("telegram", "424242", "-100", "44", "999"))
    )
    assert sim.chat(-100)[-1].reply_to is None


async def test_a_missing_thread_is_a_failure_and_never_another_thread(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(-100, "here", user=3, thread=44)
    facts = await failure(adapter, create(adapter, "x", Address("telegram", "424242", "-100", "45")))
    assert facts.status == 400
    assert sim.chat(-100) == []


async def test_an_edit_changes_the_message_and_an_unchanged_one_is_told(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    receipt = await adapter.send(create(adapter, "first"))
    assert await adapter.send(edit(adapter, "second", receipt.message_ref)) == receipt
    assert sim.texts(7) == ["second"]
    facts = await failure(adapter, edit(adapter, "second", receipt.message_ref))
    assert classify_delivery(facts).detail == "not_modified"
    await adapter.send(Outgoing(TO, Operation.DELETE, "", "n", message_ref=receipt.message_ref))
    assert sim.texts(7) == []


async def test_a_reaction_is_set_and_taken_back(sim: TelegramSimulator, adapter: TelegramPlatform) -> None:
    said = sim.say(7, "thanks")
    for payload, shown in (('{"emoji": "👍"}', [{"type": "emoji", "emoji": "👍"}]), ("{}", [])):
        await adapter.send(Outgoing(TO, Operation.REACTION, payload, "n", message_ref=f"7:{said}"))
        assert sim.world.reactions[(7, said)] == shown
    assert sim.chat(7) == []


async def test_a_pressed_button_comes_back_as_its_data_and_stops_waiting(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    parts = adapter.with_buttons(adapter.render("Run `ls`?"), [("Yes", "q1:yes"), ("No", "q1:no")])
    receipt = await adapter.send(Outgoing(TO, Operation.CREATE, parts[0].payload, "n"))
    (seen,) = sim.chat(7)
    assert seen.markup is not None
    assert [[b["text"] for b in row] for row in seen.markup["inline_keyboard"]] == [["Yes"], ["No"]]
    query = sim.press(7, int(receipt.message_ref), "q1:yes")
    batch = await adapter.receive()
    event = adapter.normalise(batch.updates[0].raw)
    assert isinstance(event, ButtonEvent)
    assert (event.data, event.identity.user_id) == ("q1:yes", "7")
    assert sim.called("answerCallbackQuery") == []
    adapter.confirm(batch)
    await adapter.receive()
    assert [call.params["callback_query_id"] for call in sim.called("answerCallbackQuery")] == [query]


async def test_a_button_that_is_too_old_to_be_answered_does_not_stop_the_poll(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.press(7, 1, "old")
    adapter.confirm(await adapter.receive())
    too_old = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    sim.faults.add(ApiError(400, too_old), endpoint="answerCallbackQuery")
    sim.say(7, "hello")
    assert len((await adapter.receive()).updates) == 1


def test_a_buttons_data_is_bounded() -> None:
    with pytest.raises(Poison):
        with_buttons((OutgoingPart('{"text": "x"}'),), [("Yes", "x" * 65)])


async def test_typing_is_shown_in_the_chat_and_its_thread(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(-100, "here", user=3, thread=44)
    await adapter.typing(TO)
    await adapter.typing(Address("telegram", "424242", "-100", "44"))
    assert sim.world.actions == [(7, "typing", None), (-100, "typing", 44)]


@pytest.mark.parametrize("payload", ["", "[]", "{", '{"entities": []}', "null"])
async def test_a_payload_that_is_not_ours_is_poison(adapter: TelegramPlatform, payload: str) -> None:
    with pytest.raises(Poison):
        await adapter.send(Outgoing(TO, Operation.CREATE, payload, "n"))


@pytest.mark.parametrize("ref", [None, "", "x", "7:"])
async def test_an_edit_of_nothing_is_poison(adapter: TelegramPlatform, ref: str | None) -> None:
    with pytest.raises(Poison):
        await adapter.send(Outgoing(TO, Operation.EDIT, '{"text": "x"}', "n", message_ref=ref))


CASES: dict[str, tuple[Any, int | None, Sent, DeliveryReason]] = {
    "429 with a wait": (flood(7), 429, Sent.REFUSED, DeliveryReason.FLOOD_WAIT),
    "429 with nothing": (
        ApiError(429, "Too Many Requests"), 429, Sent.REFUSED, DeliveryReason.FLOOD_WAIT),
    "429 with a header": (
        Reply(429, "slow down", "text/plain", headers={"Retry-After": "9"}), 429, Sent.REFUSED,
        DeliveryReason.FLOOD_WAIT),
    "400 chat not found": (
        ApiError(400, "Bad Request: chat not found"), 400, Sent.REFUSED, DeliveryReason.PERMANENT_TARGET),
    "400 too long": (
        ApiError(400, "Bad Request: message is too long"), 400, Sent.REFUSED, DeliveryReason.TOO_LONG),
    "403 blocked": (
        ApiError(403, "Forbidden: bot was blocked by the user"), 403, Sent.REFUSED,
        DeliveryReason.PERMANENT_TARGET),
    "401": (ApiError(401, "Unauthorized"), 401, Sent.REFUSED, DeliveryReason.PERMANENT_AUTH),
    "413": (Reply(413, "<html>", "text/html"), 413, Sent.REFUSED, DeliveryReason.TOO_LONG),
    "500": (ApiError(500, "Internal Server Error"), 500, Sent.REFUSED, DeliveryReason.NETWORK_RETRYABLE),
    "502 html": (html_page(502), 502, Sent.REFUSED, DeliveryReason.NETWORK_RETRYABLE),
    "504": (Reply(504, "", "text/plain"), 504, Sent.MAYBE_SENT, DeliveryReason.TIMEOUT_AMBIGUOUS),
    "503": (Reply(503, "", "text/plain"), 503, Sent.REFUSED, DeliveryReason.NETWORK_RETRYABLE),
    "reset before": (Reset(), None, Sent.MAYBE_SENT, DeliveryReason.TIMEOUT_AMBIGUOUS),
    "reset after delivery": (
        Reset(delivered=True), None, Sent.MAYBE_SENT, DeliveryReason.TIMEOUT_AMBIGUOUS),
    "no answer": (Stall(delivered=True), None, Sent.MAYBE_SENT, DeliveryReason.TIMEOUT_AMBIGUOUS),
    "half an answer": (
        Stall(after_headers=True, delivered=True), None, Sent.MAYBE_SENT, DeliveryReason.TIMEOUT_AMBIGUOUS),
    "200 garbage": (garbage_json(), 200, Sent.MAYBE_SENT, DeliveryReason.UNKNOWN),
    "200 {}": (Reply(200, "{}"), 200, Sent.MAYBE_SENT, DeliveryReason.UNKNOWN),
    "200 html": (html_page(200), 200, Sent.MAYBE_SENT, DeliveryReason.UNKNOWN),
    "200 without id": (
        Reply(200, '{"ok":true,"result":{}}'), 200, Sent.MAYBE_SENT, DeliveryReason.UNKNOWN),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "status", "sent", "reason"), CASES.values(), ids=CASES.keys())
async def test_each_failure_of_a_send_tells_what_the_wire_showed(
    sim: TelegramSimulator,
    adapter: TelegramPlatform,
    fault: Any,
    status: int | None,
    sent: Sent,
    reason: DeliveryReason,
) -> None:
    sim.faults.add(fault, endpoint="sendMessage")
    facts = await failure(adapter, create(adapter, "hello"))
    assert (facts.status, facts.sent) == (status, sent)
    verdict = classify_delivery(facts)
    assert verdict.reason is reason
    decision = decide(verdict, facts, attempt=0, operation=Operation.CREATE, nonce_enforced=False, u=0.5)
    assert isinstance(decision, SendMarked) == (sent is Sent.MAYBE_SENT)
    assert sim.token.partition(":")[2] not in repr(facts)
    assert not adapter.failures.unmapped
    sim.faults.clear()
    await adapter.send(create(adapter, "well again"))
    assert sim.texts(7)[-1] == "well again"


async def test_flood_wait_and_header_give_their_seconds(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    for fault, wait in (
        (flood(7), 7.0),
        (ApiError(429, "Too Many Requests", parameters={"retry_after": 1.5}), 2.0),
        (Reply(429, "", headers={"Retry-After": "9"}), 9.0),
        (ApiError(429, "Too Many Requests", parameters={"retry_after": "soon"}), None),
    ):
        sim.faults.add(fault, endpoint="sendMessage")
        assert (await failure(adapter, create(adapter, "x"))).retry_after == wait


async def test_a_migrated_group_names_its_new_chat(sim: TelegramSimulator, adapter: TelegramPlatform) -> None:
    text = "Bad Request: group chat was upgraded to a supergroup chat"
    sim.faults.add(ApiError(400, text, parameters={"migrate_to_chat_id": -1001}), endpoint="sendMessage")
    facts = await failure(adapter, create(adapter, "x"))
    assert facts.migrate_to == "-1001"
    assert classify_delivery(facts).new_chat == "-1001"


async def test_a_refused_connection_a_dead_name_and_a_closed_pool_are_not_sent(
    sim: TelegramSimulator,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    for base, how in ((f"http://127.0.0.1:{port}", "refused"), ("http://nowhere.invalid", "dns")):
        adapter = TelegramPlatform(sim.token, base_url=base, connect_timeout=5)
        with pytest.raises(PlatformFailure) as caught:
            await adapter.connect()
        assert (caught.value.facts.sent, caught.value.facts.code) == (Sent.NOT_SENT, how)
        await adapter.aclose()
        facts = await failure(adapter, create(adapter, "x"))
        assert (facts.sent, facts.code) == (Sent.NOT_SENT, "closed")


async def test_a_connection_that_is_never_accepted_times_out_as_not_sent(sim: TelegramSimulator) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        port = deaf.getsockname()[1]
        fill = [socket.socket() for _ in range(4)]
        for one in fill:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        adapter = TelegramPlatform(sim.token, base_url=f"http://127.0.0.1:{port}", connect_timeout=0.3)
        with pytest.raises(PlatformFailure) as caught:
            await adapter.connect()
        facts = caught.value.facts
        assert (facts.sent, facts.code) == (Sent.NOT_SENT, "connect_timeout")
        assert sim.token not in repr(facts)
        await adapter.aclose()
        for one in fill:
            one.close()


async def test_an_exhausted_pool_is_not_sent(sim: TelegramSimulator) -> None:
    request = AiohttpRequest(connections=1, connect_timeout=0.1, pool_timeout=0.1, read_timeout=3)
    await request.initialize()
    bot = ApiBot(sim.token, base_url=sim.base_url, request=request, get_updates_request=request)
    sim.faults.add(Stall(), endpoint="sendMessage")
    held = asyncio.get_running_loop().create_task(bot.call("sendMessage", {"chat_id": 7, "text": "held"}))
    await sim.wait_for(lambda: sim.called("sendMessage"))
    with pytest.raises(NotSent) as caught:
        await bot.call("sendMessage", {"chat_id": 7, "text": "waits"})
    assert caught.value.how == "connect_timeout"
    held.cancel()
    await asyncio.gather(held, return_exceptions=True)
    assert sim.chat(7) == []
    await request.shutdown()


async def test_an_answer_in_drips_is_read_whole(sim: TelegramSimulator, adapter: TelegramPlatform) -> None:
    sim.faults.add(Drip(gap=0.001, size=40), endpoint="sendMessage")
    receipt = await adapter.send(create(adapter, "hello"))
    assert receipt.message_ref == str(sim.chat(7)[0].message_id)


async def test_a_file_goes_out_as_multipart(sim: TelegramSimulator) -> None:
    request = AiohttpRequest(connections=1)
    await request.initialize()
    parameters = [
        RequestParameter.from_input("chat_id", 7),
        RequestParameter.from_input("document", InputFile(b"content", filename="a.txt")),
    ]
    answer = await request.post(f"{sim.base_url}{sim.token}/sendDocument", RequestData(parameters))
    assert isinstance(answer, dict)
    assert sim.called("sendDocument")[0].files == {"document": b"content"}
    await request.shutdown()


async def test_sends_share_connections_and_a_rebuild_makes_new_ones(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    for _ in range(5):
        await adapter.send(create(adapter, "x"))
    assert sim.connections == 1
    await adapter.rebuild()
    await adapter.connect()
    await adapter.send(create(adapter, "x"))
    assert sim.connections == 2


async def test_the_token_is_in_no_log_line_at_any_level(
    sim: TelegramSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = make_adapter(sim)
    await adapter.connect()
    sim.faults.add(Reply(502, f"<html>no route to /bot{sim.token}/sendMessage"), endpoint="sendMessage")
    facts = await failure(adapter, create(adapter, "hello"))
    sim.faults.add(Reset(), endpoint="sendMessage")
    await failure(adapter, create(adapter, "hello"))
    await adapter.aclose()
    secret = sim.token.partition(":")[2]
    assert secret not in caplog.text
    assert secret not in repr(facts)
