"""A provider of kind ``openai``."""

from __future__ import annotations

from typing import Literal

from hermes.config.adapters import KeyedProviderConfig
from hermes.config.fields import BaseUrl, Complaint, key

OFFICIAL_URL = "https://api.openai.com/v1"


class OpenaiConfig(KeyedProviderConfig):
    """A server that speaks OpenAI's chat completions: OpenAI, OpenRouter, llama.cpp, vLLM and many others."""

    kind: Literal["openai"] = key("openai", "Which adapter speaks to it.")
    base_url: BaseUrl = key(OFFICIAL_URL, "Address with its version, e.g. http://127.0.0.1:8080/v1.")

    def complaints(self) -> tuple[Complaint, ...]:
        found = list(super().complaints())
        if not self.base_url:
            found.append(
                Complaint("base_url", "empty", "an address", "remove the line to use OpenAI's own server")
            )
        if self.base_url == OFFICIAL_URL and not self.has_key():
            found.append(
                Complaint(
                    "api_key",
                    "missing",
                    "a key (OpenAI's own server wants one)",
                    "set api_key:, or base_url: if you mean another server",
                )
            )
        return tuple(found)
