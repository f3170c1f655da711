"""The poll loop against the wire: what is confirmed and when, poison, conflicts, stalls (R1–R4)."""

from __future__ import annotations

import asyncio
import time

import pytest

from hermes.core.delivery import DeliveryReason, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.events import MessageEvent
from hermes.platforms.telegram.adapter import OFFSET_LIFETIME, TelegramPlatform
from hermes.policy.delivery import classify_delivery
from hermes.simulators.faults import ApiError, Reply, Reset, Stall, conflict, garbage_json, html_page
from hermes.simulators.telegram import TelegramSimulator
from tests.wire.platforms.conftest import make_adapter

pytestmark = pytest.mark.wire


async def texts(adapter: TelegramPlatform, *, confirm: bool) -> list[str]:
    batch = await adapter.receive()
    if confirm:
        adapter.confirm(batch)
    events = [adapter.normalise(update.raw) for update in batch.updates]
    return [event.text for event in events if isinstance(event, MessageEvent)]


async def test_what_is_not_confirmed_comes_again_and_what_is_does_not(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(1, "one")
    sim.say(2, "two")
    assert await texts(adapter, confirm=False) == ["one", "two"]
    assert await texts(adapter, confirm=True) == ["one", "two"]
    assert list(sim.world.confirmed) == []
    sim.say(1, "three")
    assert await texts(adapter, confirm=True) == ["three"]
    assert len(sim.world.confirmed) == 2


async def test_a_start_polls_without_an_offset_and_sees_what_was_never_confirmed(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(1, "kept")
    assert await texts(adapter, confirm=True) == ["kept"]
    other = make_adapter(sim)
    await other.connect()
    assert await texts(other, confirm=True) == ["kept"]
    assert "offset" not in sim.called("getUpdates")[-1].params
    await other.aclose()


async def test_an_empty_cycle_is_a_completed_one(sim: TelegramSimulator, adapter: TelegramPlatform) -> None:
    begun = time.monotonic()
    batch = await adapter.receive()
    assert batch.updates == ()
    assert time.monotonic() - begun >= 0.9
    adapter.confirm(batch)
    assert sim.polls == 0


async def test_the_offset_survives_a_rebuild(sim: TelegramSimulator, adapter: TelegramPlatform) -> None:
    sim.say(1, "one")
    assert await texts(adapter, confirm=True) == ["one"]
    await adapter.rebuild()
    await adapter.connect()
    sim.say(1, "two")
    assert await texts(adapter, confirm=True) == ["two"]


async def test_a_poison_update_goes_along_and_stops_nobody(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(1, "before")
    sim.inject({"message": {"message_id": "seven", "chat": None}})
    sim.inject({})
    sim.say(1, "after")
    batch = await adapter.receive()
    assert [update.identity is None for update in batch.updates] == [False, True, True, False]
    assert [bool(update.problem) for update in batch.updates] == [False, True, True, False]
    assert len({update.dedup_key for update in batch.updates}) == 4
    adapter.confirm(batch)
    sim.say(1, "next")
    assert await texts(adapter, confirm=True) == ["next"]
    assert len(sim.world.confirmed) == 4


async def test_album_parts_and_edits_and_buttons_arrive_in_order(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    await adapter.connect()
    ids = sim.album(5, [b"a", b"b"], "two photos")
    said = sim.say(5, "frist")
    sim.edit(5, said, "first")
    batch = await adapter.receive()
    assert [u.message_ref for u in batch.updates] == [f"5:{n}" for n in [*ids, said, said]]
    album, edit = {u.merge_key for u in batch.updates[:2]}, batch.updates[3]
    assert len(album) == 1
    assert None not in album
    assert edit.dedup_key != batch.updates[2].dedup_key
    sim.press(5, said, "yes")
    adapter.confirm(batch)
    (button,) = (await adapter.receive()).updates
    assert button.dedup_key.startswith("424242:button:")


async def test_a_webhook_that_was_set_elsewhere_is_removed_and_nothing_is_dropped(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(1, "kept")
    text = (
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it first"
    )
    sim.faults.add(ApiError(409, text), endpoint="getUpdates")
    assert await texts(adapter, confirm=True) == ["kept"]
    (call,) = sim.called("deleteWebhook")
    assert call.params == {"drop_pending_updates": "false"}


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (conflict(), 409, DeliveryReason.CONFLICT),
        (ApiError(401, "Unauthorized"), 401, DeliveryReason.PERMANENT_AUTH),
        (html_page(502), 502, DeliveryReason.NETWORK_RETRYABLE),
        (ApiError(500, "Internal Server Error"), 500, DeliveryReason.NETWORK_RETRYABLE),
        (Reset(), None, None),
        (Stall(), None, None),
        (Stall(after_headers=True), None, None),
        (garbage_json(), 200, None),
        (Reply(200, "{}"), 200, None),
        (Reply(200, "[]"), 200, None),
        (Reply(200, '{"ok": true, "result": 5}'), 200, None),
        (Reply(302, "", headers={"Location": "http://127.0.0.1:1/"}), 302, None),
    ],
    ids=[
        "409",
        "401",
        "502 html",
        "500",
        "reset",
        "stall",
        "stall in body",
        "garbage",
        "{}",
        "[]",
        "5",
        "302",
    ],
)
async def test_a_cycle_that_fails_tells_facts_and_the_next_one_works(
    sim: TelegramSimulator,
    adapter: TelegramPlatform,
    fault: object,
    status: int | None,
    reason: DeliveryReason | None,
) -> None:
    sim.faults.add(fault, endpoint="getUpdates")  # type: ignore[arg-type]
    with pytest.raises(PlatformFailure) as caught:
        await adapter.receive()
    facts = caught.value.facts
    assert facts.status == status
    assert reason is None or classify_delivery(facts).reason is reason
    assert sim.token not in repr(facts)
    sim.say(1, "well again")
    assert await texts(adapter, confirm=True) == ["well again"]
    assert not adapter.failures.unmapped


async def test_a_stalled_poll_ends_at_our_own_limit(sim: TelegramSimulator) -> None:
    adapter = make_adapter(sim, poll_timeout=0, poll_margin=0.3)
    await adapter.connect()
    sim.faults.add(Stall(), endpoint="getUpdates")
    begun = time.monotonic()
    with pytest.raises(PlatformFailure) as caught:
        await adapter.receive()
    assert time.monotonic() - begun < 2
    assert caught.value.facts.sent is Sent.MAYBE_SENT
    await adapter.aclose()


async def test_a_cancelled_poll_leaves_nothing_and_the_next_one_works(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    poll = asyncio.get_running_loop().create_task(adapter.receive())
    await sim.wait_for(lambda: sim.polls == 1)
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    await sim.wait_for(lambda: sim.polls == 0)
    sim.say(1, "still there")
    assert await texts(adapter, confirm=True) == ["still there"]


async def test_a_server_that_does_not_hold_the_poll_does_not_spin_us(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.faults.add(Reply(200, '{"ok": true, "result": []}'), endpoint="getUpdates", times=4)
    begun = time.monotonic()
    for _ in range(4):
        await adapter.receive()
    assert time.monotonic() - begun >= 0.9


async def test_an_old_offset_is_not_used_since_numbers_begin_anew_after_a_week(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(1, "one", update_id=900)
    assert await texts(adapter, confirm=True) == ["one"]
    adapter._offset_at -= OFFSET_LIFETIME
    sim.world.confirm(901)
    sim.say(1, "two", update_id=5)
    assert await texts(adapter, confirm=True) == ["two"]
    assert "offset" not in sim.called("getUpdates")[-1].params


async def test_a_refused_token_is_told_without_it(sim: TelegramSimulator) -> None:
    adapter = make_adapter(sim)
    sim.revoke()
    with pytest.raises(PlatformFailure) as caught:
        await adapter.connect()
    assert classify_delivery(caught.value.facts).reason is DeliveryReason.PERMANENT_AUTH
    assert sim.token.partition(":")[2] not in repr(caught.value.facts) + str(caught.value)
    sim.restore()
    await adapter.connect()
    assert adapter.account == "424242"
    await adapter.aclose()


async def test_a_file_is_downloaded_within_its_bound(
    sim: TelegramSimulator, adapter: TelegramPlatform
) -> None:
    sim.say(1, "look", document=("notes.txt", b"0123456789"))
    (update,) = (await adapter.receive()).updates
    event = adapter.normalise(update.raw)
    assert isinstance(event, MessageEvent)
    (file,) = event.attachments
    assert await adapter.download(file, 10) == b"0123456789"
    with pytest.raises(PlatformFailure) as caught:
        await adapter.download(file, 9)
    assert "over 9" in caught.value.facts.message
