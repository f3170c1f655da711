"""A simulator and the real adapter in front of it, its limits scaled down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.platforms.discord.limits import Limits as DiscordLimits
from hermes.platforms.slack.adapter import Keys, SlackPlatform
from hermes.platforms.slack.adapter import Limits as SlackLimits
from hermes.platforms.telegram.adapter import TelegramPlatform
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.slack import SlackSimulator
from hermes.simulators.telegram import TelegramSimulator

Connect = Callable[..., TelegramPlatform]


@pytest.fixture
async def sim() -> AsyncIterator[TelegramSimulator]:
    async with TelegramSimulator() as simulator:
        yield simulator


@pytest.fixture
async def adapter(sim: TelegramSimulator) -> AsyncIterator[TelegramPlatform]:
    platform = make_adapter(sim)
    await platform.connect()
    yield platform
    await platform.aclose()


def make_adapter(sim: TelegramSimulator, **more: float) -> TelegramPlatform:
    """An adapter for the simulator; a poll lasts a second and nothing waits longer than another."""
    limits: dict[str, float] = {
        "poll_timeout": 1,
        "poll_margin": 0.5,
        "connect_timeout": 0.5,
        "read_timeout": 0.5,
        **more,
    }
    return TelegramPlatform(sim.token, base_url=sim.url, **limits)  # type: ignore[arg-type]


@pytest.fixture
async def discord_sim() -> AsyncIterator[DiscordSimulator]:
    async with DiscordSimulator(heartbeat_interval=0.4) as simulator:
        yield simulator


@pytest.fixture
async def discord(discord_sim: DiscordSimulator) -> AsyncIterator[DiscordPlatform]:
    platform = make_discord(discord_sim)
    await platform.connect()
    platform.resume_from({})
    yield platform
    await platform.aclose()


def make_discord(sim: DiscordSimulator, **more: float) -> DiscordPlatform:
    """An adapter for the simulator; nothing waits longer than a second."""
    limits: dict[str, float] = {
        "request": 0.5,
        "connect": 0.5,
        "stall_after": 1.0,
        "identify_pause": 0.05,
        **more,
    }
    return DiscordPlatform(
        sim.token,
        api_url=sim.api_url,
        gateway_url=sim.gateway_url,
        limits=DiscordLimits(**limits),  # type: ignore[arg-type]
    )


@pytest.fixture
async def slack_sim() -> AsyncIterator[SlackSimulator]:
    async with SlackSimulator(ack_timeout=0.3) as simulator:
        yield simulator


@pytest.fixture
async def slack(slack_sim: SlackSimulator) -> AsyncIterator[SlackPlatform]:
    platform = make_slack(slack_sim)
    await platform.connect()
    platform.resume_from({})
    yield platform
    await platform.aclose()


def make_slack(sim: SlackSimulator, *, http: bool = False, **more: float) -> SlackPlatform:
    """An adapter for the simulator; nothing waits longer than a second."""
    limits: dict[str, float] = {"request": 0.7, "connect": 1.0, "ping_interval": 0.2, "audit": 0.4, **more}
    secret, app = (sim.out.signing_secret, "") if http else ("", sim.app_token)
    keys = Keys(sim.token, app_token=app, signing_secret=secret)
    return SlackPlatform(keys, base_url=sim.base_url, limits=SlackLimits(**limits))  # type: ignore[arg-type]
