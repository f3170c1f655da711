"""From the section ``platforms.discord`` to the adapter, and what a reload changes in it."""

from __future__ import annotations

from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.discord.create import create, refresh
from hermes.platforms.web.adapter import WebPlatform

TOKEN = "NDI0MjQy.secret.part"


def section(**more: object) -> DiscordConfig:
    return DiscordConfig.model_validate({"enabled": True, "token": TOKEN, **more})


def test_the_sections_bounds_are_the_adapters() -> None:
    platform = create(section(request_timeout=7, stall_after=8, catch_up_messages=9, allowed_roles=["5"]))
    assert (platform.limits.request, platform.limits.stall_after, platform.limits.catch_up_messages) == (7, 8, 9)
    assert platform.limits.roles
    assert platform.account == "424242", "the first part of a token is the bot's id"


def test_a_reload_changes_how_far_back_a_gap_is_read_and_nothing_else() -> None:
    platform = create(section())
    refresh(platform, section(catch_up_messages=5, catch_up_age=60, request_timeout=1))
    assert (platform.limits.catch_up_messages, platform.limits.catch_up_age) == (5, 60)
    assert platform.limits.request == 30
    refresh(WebPlatform(), section())
