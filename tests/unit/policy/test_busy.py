from __future__ import annotations

import pytest

from hermes.policy.busy import Begin, Busy, BusyMode, Interrupt, Queue, Refuse, Steer, when_busy


@pytest.mark.parametrize(
    ("mode", "running", "waiting", "expected"),
    [
        (BusyMode.QUEUE, False, 0, Begin()),
        (BusyMode.QUEUE, False, 2, Begin()),
        (BusyMode.QUEUE, True, 0, Queue(1)),
        (BusyMode.QUEUE, True, 2, Queue(3)),
        (BusyMode.STEER, True, 0, Steer()),
        (BusyMode.STEER, False, 0, Begin()),
        (BusyMode.INTERRUPT, True, 0, Interrupt()),
        (BusyMode.INTERRUPT, False, 0, Begin()),
        *((mode, running, 3, Refuse(3)) for mode in BusyMode for running in (True, False)),
    ],
)
def test_what_becomes_of_a_message(mode: BusyMode, running: bool, waiting: int, expected: Busy) -> None:
    assert when_busy(mode, running=running, waiting=waiting, limit=3) == expected
