"""The section ``platforms.slack``."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import ClassVar

from hermes.config.adapters import ChatPlatformConfig
from hermes.config.fields import NO_SECRET, BaseUrl, Complaint, Duration, Reload, Secret, Text, Whole, key


class SlackMode(StrEnum):
    SOCKET = "socket"
    HTTP = "http"


class SlackConfig(ChatPlatformConfig):
    """Slack, or a server that speaks its protocol."""

    mode: SlackMode = key(SlackMode.SOCKET, "socket: we call Slack; http: Slack calls us.")
    bot_token: Secret = key(NO_SECRET, "Bot token, xoxb-….")
    bot_token_file: Text = key("", "A file that holds the bot token instead.")
    app_token: Secret = key(NO_SECRET, "App-level token, xapp-…, for mode socket.")
    app_token_file: Text = key("", "A file that holds the app-level token instead.")
    signing_secret: Secret = key(NO_SECRET, "Signing secret, for mode http.")
    signing_secret_file: Text = key("", "A file that holds the signing secret instead.")
    base_url: BaseUrl = key("", "Another Web API address; empty: Slack's.")
    catch_up_messages: Whole = key(
        200, "Most messages read per channel after a gap.", reload=Reload.LIVE, ge=0
    )
    catch_up_age: Duration = key(86_400.0, "Oldest message read after a gap.", reload=Reload.LIVE, ge=0)
    request_timeout: Duration = key(30.0, "Longest wait for an answer.", gt=0)
    ping_interval: Duration = key(10.0, "Time between two pings of the socket.", gt=0)
    audit_interval: Duration = key(
        60.0, "Silence after which the history is looked at for messages that no event told of.", gt=0
    )

    user_id: ClassVar[re.Pattern[str]] = re.compile(r"[UW][A-Z0-9]*\Z")
    user_id_says: ClassVar[str] = "U or W and capital letters and digits, e.g. U012AB3CD"

    def complaints(self) -> tuple[Complaint, ...]:
        wanted = [("bot_token", self.bot_token, "xoxb-", "SLACK_BOT_TOKEN")]
        if self.mode is SlackMode.SOCKET:
            wanted.append(("app_token", self.app_token, "xapp-", "SLACK_APP_TOKEN"))
        found = list(super().complaints())
        for name, secret, prefix, variable in wanted:
            text = secret.get_secret_value()
            if not text:
                found.append(
                    Complaint(
                        name, "missing", f"a token that starts with {prefix}", f"set {variable} or {name}:"
                    )
                )
            elif not text.startswith(prefix):
                found.append(
                    Complaint(
                        name,
                        f"a text that does not start with {prefix}",
                        f"a token that starts with {prefix}",
                        "bot and app token are two different ones",
                    )
                )
        if self.mode is SlackMode.HTTP and not self.signing_secret.get_secret_value():
            found.append(
                Complaint(
                    "signing_secret",
                    "missing",
                    "the app's signing secret",
                    "add signing_secret:, or use mode: socket",
                )
            )
        return tuple(found)
