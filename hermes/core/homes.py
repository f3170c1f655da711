"""Where the owner wants to be told things: one chat a platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hermes.core.events import Address


class HomeStore(Protocol):
    """Keeps what /sethome chose."""

    async def all(self) -> Mapping[str, Address]:
        """By platform."""

    async def keep(self, address: Address) -> None:
        """The home channel of its platform from now on."""
