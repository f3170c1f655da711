"""A provider of kind ``rehearsal``."""

from __future__ import annotations

from typing import Literal

from hermes.config.adapters import ProviderConfig
from hermes.config.fields import Number, key


class RehearsalConfig(ProviderConfig):
    """No model: plays answers, faults and recoveries on order, and says so."""

    kind: Literal["rehearsal"] = key("rehearsal", "Which adapter speaks to it.")
    speed: Number = key(1.0, "Factor on its waits; 0: none.", ge=0)
