"""A Telegram simulator and the real adapter in front of it, its limits scaled down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from hermes.platforms.telegram.adapter import TelegramPlatform
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
