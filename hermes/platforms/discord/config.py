"""The section ``platforms.discord``."""

from __future__ import annotations

import re
from typing import ClassVar

from hermes.config.adapters import ChatPlatformConfig
from hermes.config.fields import (
    NO_SECRET,
    BaseUrl,
    Complaint,
    Duration,
    Reload,
    Secret,
    SocketUrl,
    Text,
    Whole,
    key,
)


class DiscordConfig(ChatPlatformConfig):
    """Discord, or servers that speak its protocol."""

    token: Secret = key(NO_SECRET, "The bot's token, without the word Bot.")
    token_file: Text = key("", "A file that holds the token instead.")
    api_url: BaseUrl = key("", "Another REST address, with its version; empty: Discord's.")
    gateway_url: SocketUrl = key("", "Another gateway address; empty: Discord's.")
    catch_up_messages: Whole = key(
        200, "Most messages read per channel after a gap.", reload=Reload.LIVE, ge=0
    )
    catch_up_age: Duration = key(86_400.0, "Oldest message read after a gap.", reload=Reload.LIVE, ge=0)
    request_timeout: Duration = key(30.0, "Longest wait for an answer.", gt=0)
    connect_timeout: Duration = key(10.0, "Longest wait for a connection.", gt=0)
    stall_after: Duration = key(
        90.0, "Silence of the gateway, heartbeats included, after which the connection counts as dead.", gt=0
    )
    connections: Whole = key(32, "Most requests at once.", ge=2)
    audit_interval: Duration = key(
        120.0, "Silence after which the history is looked at for messages that no event told of.", gt=0
    )

    user_id: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+\Z")
    user_id_says: ClassVar[str] = "a number, as Discord numbers its users"

    def complaints(self) -> tuple[Complaint, ...]:
        found = super().complaints()
        if not self.token.get_secret_value():
            cure = "set DISCORD_BOT_TOKEN, or token: or token_file:"
            return (*found, Complaint("token", "missing", "the bot's token", cure))
        return found
