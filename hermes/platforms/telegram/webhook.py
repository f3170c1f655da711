"""Being called instead of polling: how we know that it is Telegram (see ``platforms.mailbox`` for the rest)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from hermes.platforms.mailbox import WAITING, Delivery, Mailbox

__all__ = ["SECRET_HEADER", "WAITING", "Delivery", "Mailbox", "Webhook"]

SECRET_HEADER = "x-telegram-bot-api-secret-token"


@dataclass(frozen=True, slots=True)
class Webhook:
    """The public https address, and the text in ``X-Telegram-Bot-Api-Secret-Token`` by which we know it."""

    url: str
    secret: str

    def knows(self, shown: str) -> bool:
        """Whether the header of a request is our secret; takes the same time for any other text."""
        return bool(self.secret) and hmac.compare_digest(shown.encode("utf-8", "replace"), self.secret.encode())
