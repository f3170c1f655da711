"""What can go wrong between slack_sdk and us that neither slack_sdk nor aiohttp has a name for."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):
    """An answer that is no success, of a file server. ``headers`` have lower-case names."""

    def __init__(self, status: int, body: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}")
        self.status, self.body, self.headers = status, body, headers


class Disconnected(Exception):
    """The socket ended, or Slack said that it will; ``reason`` is Slack's word or a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Closed(Exception):
    """The client was closed: nothing was sent."""


class TooLarge(Exception):
    """A file with more bytes than were wanted."""
