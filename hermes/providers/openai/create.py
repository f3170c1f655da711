"""The way in: the SDK is loaded when the first provider of this kind is made, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.ports import Provider
from hermes.providers.network import Network

if TYPE_CHECKING:
    from hermes.providers.openai.adapter import OpenAISettings


def create(name: str, config: OpenAISettings, *, api_key: str, network: Network | None = None) -> Provider:
    """A provider of kind ``openai``; ``api_key`` is already with the redactor (R40).

    Loading the SDK takes about a second of CPU time: call it before the loop serves anything.
    Raises ValueError for a ``base_url`` that is none.
    """
    from hermes.providers.openai.adapter import OpenAIProvider

    return OpenAIProvider(name, config, api_key=api_key, network=network)
