"""What becomes of a message that comes while its session is at work. Pure.

    idle ─► Begin
    at work ─┬─ queue ─────► Queue(place)
             ├─ steer ─────► Steer        joins the running turn at its next step
             └─ interrupt ─► Interrupt    the running turn ends, this message begins the next
    too many waiting ─► Refuse(waiting)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BusyMode(StrEnum):
    """``agent.busy_mode``; ``/queue`` and ``/steer`` choose for one message."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class Begin:
    """Nothing runs: the message's turn begins."""


@dataclass(frozen=True, slots=True)
class Queue:
    """It waits; ``place`` counts from 1."""

    place: int


@dataclass(frozen=True, slots=True)
class Steer:
    """It joins the running turn; if that ends first, it is an ordinary message."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The running turn is ended for it."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The bound is reached: it is told so and not kept waiting."""

    waiting: int


Busy = Begin | Queue | Steer | Interrupt | Refuse


def when_busy(mode: BusyMode, *, running: bool, waiting: int, limit: int) -> Busy:
    """``running``: a turn of the session is under way. ``waiting``: its messages that are in no turn yet.

    The bound holds in every mode, also for a session that waits for a person or an outage.
    """
    if waiting >= limit:
        return Refuse(waiting)
    if not running:
        return Begin()
    match mode:
        case BusyMode.STEER:
            return Steer()
        case BusyMode.INTERRUPT:
            return Interrupt()
        case BusyMode.QUEUE:
            return Queue(waiting + 1)


QUEUED = "I am still busy with what you asked before; this comes next ({place} waiting). /stop ends it all."
REFUSED = (
    "{waiting} messages are waiting here already, so I did not take this one. Send it again later, "
    "or /stop to drop what is waiting."
)
