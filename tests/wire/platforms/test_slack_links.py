"""A Slack connection that is not what it seems: silent, half open, ghostly, replaced, refused (R5, R25)."""

from __future__ import annotations

import asyncio
import time

import pytest

from hermes.core.delivery import DeliveryReason
from hermes.core.errors import PlatformFailure
from hermes.platforms.slack.adapter import SlackPlatform
from hermes.policy.delivery import classify_delivery
from hermes.simulators.faults import ApiError, Stall, html_page
from hermes.simulators.slack import SlackSimulator
from tests.wire.platforms.conftest import make_slack
from tests.wire.platforms.test_slack_receiving import batches, settled, texts, turn_until

pytestmark = pytest.mark.wire


async def failure(platform: SlackPlatform, within: float = 5.0) -> PlatformFailure:
    """What the next cycles fail with."""
    async with asyncio.timeout(within):
        while True:
            try:
                platform.confirm(await platform.receive())
            except PlatformFailure as failed:
                return failed


async def heard_again(platform: SlackPlatform, count: int) -> list[str]:
    """Messages over cycles of which some may fail, as the link would repeat them."""
    found: list[str] = []
    async with asyncio.timeout(5):
        while len(found) < count:
            try:
                found += await texts(platform, count - len(found))
            except PlatformFailure:
                continue
    return found


async def test_a_quiet_socket_completes_cycles_by_its_pings(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    await settled(slack)
    begun = time.monotonic()
    for _ in range(3):
        assert (await slack.receive()).updates == ()
    assert 0.3 <= time.monotonic() - begun < 2
    assert slack_sim.out.sockets[0].pings >= 3


async def test_a_socket_that_answers_no_ping_is_found_dead_and_nothing_is_missed(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    await settled(slack)
    slack_sim.out.mute = True
    begun = time.monotonic()
    failed = await failure(slack)
    assert time.monotonic() - begun < 1.2
    assert classify_delivery(failed.facts).reason is DeliveryReason.NETWORK_RETRYABLE
    slack_sim.out.mute = False
    slack_sim.say(7, "said in between", heard=False)
    assert await heard_again(slack, 1) == ["said in between"]
    assert len(slack_sim.out.sockets) == 1


async def test_a_connection_that_is_reset_is_opened_again_and_the_gap_is_read(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.say(7, "before")
    assert await texts(slack, 1) == ["before"]
    await settled(slack)
    slack_sim.drop_connections()
    slack_sim.say(7, "in the gap", heard=False)
    await failure(slack)
    slack_sim.say(7, "after")
    assert await heard_again(slack, 2) == ["in the gap", "after"]


async def test_a_ghost_socket_is_found_by_the_history_and_replaced(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.say(7, "before")
    await batches(slack, 1)
    await settled(slack)
    slack_sim.out.ghost = True
    slack_sim.say(7, "unheard")
    failed = await failure(slack)
    assert "did not tell us" in failed.facts.message
    slack_sim.out.ghost = False
    assert await heard_again(slack, 1) == ["unheard"]


async def test_a_refresh_opens_the_new_socket_before_the_old_one_closes_and_loses_nothing(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    await settled(slack)
    slack_sim.say(7, "one")
    slack_sim.disconnect("warning")
    slack_sim.say(7, "two")
    assert await texts(slack, 2) == ["one", "two"]
    await turn_until(slack, lambda: len(slack_sim.called("apps.connections.open")) == 2)
    await turn_until(slack, lambda: len(slack_sim.out.sockets) == 1 and not slack_sim.out.pending)
    slack_sim.say(7, "three")
    assert await texts(slack, 1) == ["three"]
    assert len(slack_sim.called("apps.connections.open")) == 2


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [("link_disabled", DeliveryReason.FATAL_CONFIG), ("too_many_websockets", DeliveryReason.CONFLICT)],
)
async def test_an_end_that_slack_gives_a_reason_for_is_told_with_it(
    slack_sim: SlackSimulator, slack: SlackPlatform, reason: str, meaning: DeliveryReason
) -> None:
    await settled(slack)
    slack_sim.disconnect(reason)
    failed = await failure(slack)
    assert failed.facts.code == reason
    assert classify_delivery(failed.facts).reason is meaning


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        ("invalid_auth", DeliveryReason.PERMANENT_AUTH),
        ("account_inactive", DeliveryReason.PERMANENT_AUTH),
        ("token_revoked", DeliveryReason.PERMANENT_AUTH),
    ],
)
@pytest.mark.parametrize("app", [False, True], ids=["bot token", "app token"])
async def test_a_refused_token_fails_to_connect_at_once_and_heals_when_it_is_good_again(
    slack_sim: SlackSimulator, error: str, meaning: DeliveryReason, *, app: bool
) -> None:
    slack_sim.revoke(error, app=app)
    platform = make_slack(slack_sim)
    with pytest.raises(PlatformFailure) as caught:
        await platform.connect()
    assert classify_delivery(caught.value.facts).reason is meaning
    assert slack_sim.token not in str(caught.value)
    assert slack_sim.app_token not in str(caught.value)
    slack_sim.restore()
    await platform.rebuild()
    await platform.connect()
    await platform.aclose()


async def test_a_missing_scope_is_named(slack_sim: SlackSimulator) -> None:
    slack_sim.world.scopes = {"im:history"}
    platform = make_slack(slack_sim)
    with pytest.raises(PlatformFailure, match="needs the scope chat:write") as caught:
        await platform.connect()
    assert classify_delivery(caught.value.facts).reason is DeliveryReason.FATAL_CONFIG
    await platform.aclose()


async def test_the_wrong_kind_of_token_for_sockets_is_told(slack_sim: SlackSimulator) -> None:
    slack_sim.app_token = "xapp-another"
    platform = make_slack(slack_sim)
    slack_sim.app_token = "xapp-the-right-one"
    with pytest.raises(PlatformFailure, match="invalid_auth"):
        await platform.connect()
    await platform.aclose()


@pytest.mark.parametrize(
    "fault",
    [Stall(), html_page(502), ApiError(500, "internal_error"), ApiError(200, "fatal_error")],
    ids=["stall", "502", "500", "fatal_error"],
)
@pytest.mark.parametrize("endpoint", ["auth.test", "apps.connections.open"])
async def test_a_start_that_fails_in_passing_is_no_refusal(
    slack_sim: SlackSimulator, fault: object, endpoint: str
) -> None:
    slack_sim.faults.add(fault, endpoint=endpoint)  # type: ignore[arg-type]
    platform = make_slack(slack_sim)
    with pytest.raises(PlatformFailure) as caught:
        await platform.connect()
    reason = classify_delivery(caught.value.facts).reason
    assert reason not in (DeliveryReason.PERMANENT_AUTH, DeliveryReason.FATAL_CONFIG)
    await platform.rebuild()
    await platform.connect()
    await platform.aclose()


async def test_a_socket_that_is_opened_and_never_greeted_fails_in_time(slack_sim: SlackSimulator) -> None:
    slack_sim.out.deaf = True
    platform = make_slack(slack_sim)
    begun = time.monotonic()
    with pytest.raises(PlatformFailure):
        await platform.connect()
    assert time.monotonic() - begun < 2
    await platform.aclose()
    await slack_sim.wait_for(lambda: not slack_sim.out.sockets)


async def test_eleven_programs_with_one_token_are_too_many(slack_sim: SlackSimulator) -> None:
    others = [make_slack(slack_sim) for _ in range(10)]
    for other in others:
        await other.connect()
    platform = make_slack(slack_sim)
    with pytest.raises(PlatformFailure) as caught:
        await platform.connect()
    assert classify_delivery(caught.value.facts).reason is DeliveryReason.CONFLICT
    for one in (platform, *others):
        await one.aclose()
