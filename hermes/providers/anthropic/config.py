"""A provider of kind ``anthropic``."""

from __future__ import annotations

from typing import Literal

from hermes.config.adapters import KeyedProviderConfig
from hermes.config.fields import BaseUrl, Complaint, key

OFFICIAL_URL = "https://api.anthropic.com"


LONG_CONTEXT = "context-1m-2025-08-07"
"""The beta feature of a window above 200,000 tokens (https://docs.anthropic.com/en/docs/build-with-claude/context-windows)."""


class AnthropicConfig(KeyedProviderConfig):
    """A server that speaks Anthropic's messages."""

    kind: Literal["anthropic"] = key("anthropic", "Which adapter speaks to it.")
    base_url: BaseUrl = key(OFFICIAL_URL, "Address without /v1.")

    def complaints(self) -> tuple[Complaint, ...]:
        found = list(super().complaints())
        if not self.base_url:
            found.append(
                Complaint("base_url", "empty", "an address", "remove the line to use Anthropic's own server")
            )
        if self.base_url == OFFICIAL_URL and not self.has_key():
            found.append(
                Complaint(
                    "api_key",
                    "missing",
                    "a key (Anthropic's own server wants one)",
                    "set api_key:, or base_url: if you mean another server",
                )
            )
        return tuple(found)
