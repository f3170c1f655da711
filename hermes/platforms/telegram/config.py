"""The section ``platforms.telegram``."""

from __future__ import annotations

import re
from typing import ClassVar

from hermes.config.adapters import ChatPlatformConfig
from hermes.config.fields import (
    NO_SECRET,
    BaseUrl,
    Complaint,
    Duration,
    Number,
    Reload,
    Secret,
    Section,
    Text,
    Whole,
    key,
)

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,}\Z")
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}\Z")


class PaceConfig(Section):
    """Fixed rates; 0: open, learns from 429."""

    per_chat_interval: Duration = key(0.0, "Shortest time between two sends to one chat.", ge=0)
    global_per_second: Number = key(0.0, "Most sends a second to all chats.", ge=0)


class WebhookConfig(Section):
    """Telegram calls us instead of being polled."""

    url: BaseUrl = key("", "Public https address that Telegram calls; empty: polling.")
    secret: Secret = key(
        NO_SECRET,
        "Text of 16 to 256 of A-Z a-z 0-9 _ - by which Telegram's calls are known.",
    )
    secret_file: Text = key("", "A file that holds the secret instead.")


class TelegramConfig(ChatPlatformConfig):
    """Telegram, or a Bot API server of one's own."""

    token: Secret = key(NO_SECRET, "The bot's token, as BotFather gave it.")
    token_file: Text = key("", "A file that holds the token instead.")
    base_url: BaseUrl = key("", "Another Bot API server: the address up to and without /bot<token>.")
    pace: PaceConfig = key(PaceConfig, "Fixed rates; 0: open, learns from 429.", reload=Reload.LIVE)
    webhook: WebhookConfig = key(WebhookConfig, "Being called instead of polling.")
    poll_timeout: Duration = key(25.0, "How long the server may hold an empty poll.", ge=0, le=50)
    connect_timeout: Duration = key(10.0, "Longest wait for a connection.", gt=0)
    read_timeout: Duration = key(20.0, "Longest wait for an answer; polls add poll_timeout.", gt=0)
    connections: Whole = key(16, "Most connections for sending.", ge=1)

    user_id: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+\Z")
    user_id_says: ClassVar[str] = "a number, as Telegram numbers its users"

    def complaints(self) -> tuple[Complaint, ...]:
        found = list(super().complaints())
        token = self.token.get_secret_value()
        if not token:
            found.append(
                Complaint(
                    "token", "missing", "the bot's token", "set TELEGRAM_BOT_TOKEN, or token: or token_file:"
                )
            )
        elif not _TOKEN.match(token):
            found.append(
                Complaint(
                    "token",
                    "a text that is no Telegram token",
                    "digits, a colon, letters and digits",
                    "copy the whole token from BotFather",
                )
            )
        if self.webhook.url and not self.webhook.url.startswith("https://"):
            found.append(
                Complaint("webhook.url", "an address without https", "https://", "Telegram calls https only")
            )
        if self.webhook.url and not _WEBHOOK_SECRET.match(self.webhook.secret.get_secret_value()):
            found.append(
                Complaint(
                    "webhook.secret",
                    "missing or not of the right characters",
                    "16 to 256 of A-Z a-z 0-9 _ -",
                    "without it anybody could post updates",
                )
            )
        return tuple(found)
