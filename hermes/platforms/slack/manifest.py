"""The app manifest: everything that Slack must allow the app, in one text to paste when the app is created.

Source: Slack's documentation, "App manifest reference". Imports no SDK.
"""

from __future__ import annotations

from typing import Any

from hermes.platforms.slack.config import SlackMode

COMMAND = "/hermes"
EVERYDAY = ("help", "status", "stop", "new")
"""Commands that the hint names; `/hermes help` lists all there are."""
SCOPES = (
    "app_mentions:read", "channels:history", "channels:read", "chat:write", "commands", "files:read", "files:write",
    "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read",
    "reactions:write", "users:read",
)  # fmt: skip
EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")


def manifest(mode: SlackMode, *, name: str = "Hermes", address: str = "") -> dict[str, Any]:
    """For a mode; ``address`` is the public one of ``/hooks/slack``, for mode http."""
    by_http = mode is SlackMode.HTTP
    called: dict[str, Any] = {"request_url": address} if by_http else {}
    command = {
        "command": COMMAND,
        "description": "Ask the agent, or give it a command",
        "usage_hint": f"[{' | '.join(EVERYDAY)} | anything you want to say]",
        "should_escape": True,
    }
    return {
        "display_information": {"name": name, "description": "An agent that answers and loses no message"},
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "slash_commands": [command | ({"url": address} if by_http else {})],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**called, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **called},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not by_http,
            "token_rotation_enabled": False,
        },
    }
