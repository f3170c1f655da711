"""Reading a Discord adapter as the gateway's link does: cycle after cycle, each confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from hermes.core.errors import PlatformFailure
from hermes.core.events import MessageEvent
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.simulators.discord import DiscordSimulator
from tests.wire.platforms.conftest import make_discord


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


async def restarted(
    sim: DiscordSimulator, platform: DiscordPlatform, found: dict[str, str], *, resumed: bool = False
) -> DiscordPlatform:
    """Another process with the same cursors; unless it may resume the session, it comes too late for that."""
    await platform.aclose()
    if not resumed:
        sim.gateway.forget()
    later = make_discord(sim)
    later.resume_from(found)
    await later.connect()
    later.resume_from(found)
    return later
