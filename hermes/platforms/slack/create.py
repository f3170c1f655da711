"""From the section of the configuration to the adapter; loads the SDK."""

from __future__ import annotations

from aiohttp.abc import AbstractResolver

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
    limits = Limits(
        request=config.request_timeout,
        ping_interval=config.ping_interval,
        catch_up_messages=config.catch_up_messages,
        catch_up_age=config.catch_up_age,
        audit=config.audit_interval,
    )
    return SlackPlatform(keys, base_url=config.base_url, limits=limits, resolver=resolver, proxy=proxy)
