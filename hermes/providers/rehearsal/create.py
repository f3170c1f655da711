"""The way in, alike for every kind of provider."""

from __future__ import annotations

from hermes.core.ports import Provider
from hermes.providers.rehearsal.adapter import RehearsalProvider, RehearsalSettings


def create(name: str, config: RehearsalSettings) -> Provider:
    """A provider of kind ``rehearsal``: no key, no network."""
    return RehearsalProvider(name, config)
