"""From the section of the configuration to the adapter; loads the SDK."""

from __future__ import annotations

from dataclasses import replace

from aiohttp.abc import AbstractResolver

from hermes.core.ports import Platform
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.discord.limits import Limits


def refresh(platform: Platform, config: DiscordConfig) -> None:
    """The keys that are read anew: how far back a gap is read."""
    if isinstance(platform, DiscordPlatform):
        platform.limits = replace(
            platform.limits,
            catch_up_messages=config.catch_up_messages,
            catch_up_age=config.catch_up_age,
            roles=bool(config.allowed_roles),
        )


def create(
    config: DiscordConfig, *, resolver: AbstractResolver | None = None, proxy: str | None = None
) -> DiscordPlatform:
    """The adapter; opens no socket."""
    limits = Limits(
        request=config.request_timeout,
        connect=config.connect_timeout,
        stall_after=config.stall_after,
        catch_up_messages=config.catch_up_messages,
        catch_up_age=config.catch_up_age,
        connections=config.connections,
        audit=config.audit_interval,
        roles=bool(config.allowed_roles),
    )
    return DiscordPlatform(
        config.token.get_secret_value(),
        api_url=config.api_url,
        gateway_url=config.gateway_url,
        limits=limits,
        resolver=resolver,
        proxy=proxy,
    )
