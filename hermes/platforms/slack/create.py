"""From the section of the configuration to the adapter; loads the SDK."""

from __future__ import annotations

from dataclasses import replace

from aiohttp.abc import AbstractResolver

from hermes.core.ports import Platform
from hermes.platforms.slack.adapter import Keys, Limits, SlackPlatform
from hermes.platforms.slack.config import SlackConfig, SlackMode


def create(
    config: SlackConfig, *, resolver: AbstractResolver | None = None, proxy: str | None = None
) -> SlackPlatform:
    """The adapter; opens no socket."""
    by_socket = config.mode is SlackMode.SOCKET
    keys = Keys(
        config.bot_token.get_secret_value(),
        app_token=config.app_token.get_secret_value() if by_socket else "",
        signing_secret="" if by_socket else config.signing_secret.get_secret_value(),
    )
    return SlackPlatform(keys, base_url=config.base_url, limits=_limits(config), resolver=resolver, proxy=proxy)


def refresh(platform: Platform, config: SlackConfig) -> None:
    """Keys that are read anew by the next cycle (R42)."""
    if isinstance(platform, SlackPlatform):
        messages, age = config.catch_up_messages, config.catch_up_age
        platform.use(replace(platform.limits, catch_up_messages=messages, catch_up_age=age))


def _limits(config: SlackConfig) -> Limits:
    return Limits(
        request=config.request_timeout,
        ping_interval=config.ping_interval,
        catch_up_messages=config.catch_up_messages,
        catch_up_age=config.catch_up_age,
        audit=config.audit_interval,
    )
