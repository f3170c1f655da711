"""How urgent a call of a model is: who waits for its answer."""

from __future__ import annotations

from enum import IntEnum


class Urgency(IntEnum):
    """Who waits for the answer; a lower number is more urgent (R29)."""

    INTERACTIVE = 0
    BACKGROUND = 1
    SCHEDULE = 2
