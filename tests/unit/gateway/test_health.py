"""What health says of a platform: a green mark needs receive cycles that complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.core.door import Light
from hermes.core.links import Link, LinkState
from hermes.gateway.health import HealthBook, HealthSettings, HealthSources
from hermes.runtime.clock import SystemClock

NOW = 1_800_000_000.0


def measured(state: LinkState, last_cycle: float | None) -> tuple[Light, list[str]]:
    link = Link("discord", state, since=NOW - 700_000, next_try_at=NOW, last_cycle_at=last_cycle)
    nothing: dict[str, Any] = dict.fromkeys(
        ("sessions", "targets", "upstreams", "lag", "output_lost", "running", "draining", "started")
    )
    sources = HealthSources(home=Path(), links=lambda: [link], **nothing)
    not_ready: list[str] = []
    book = HealthBook(sources, SystemClock(), HealthSettings(stall_after=90.0))
    [item] = book._platforms(NOW, not_ready)
    return item.light, not_ready


@pytest.mark.parametrize(
    ("state", "last_cycle", "light", "ready"),
    [
        (LinkState.UP, NOW - 1, Light.OK, True),
        (LinkState.UP, NOW - 89, Light.OK, True),
        (LinkState.UP, NOW - 91, Light.BAD, False),
        (LinkState.UP, None, Light.OK, True),
        (LinkState.RETRYING, NOW - 91, Light.WARN, True),
        (LinkState.LOST, NOW - 91, Light.BAD, False),
    ],
)
def test_a_platform_is_green_while_its_cycles_complete(
    state: LinkState, last_cycle: float | None, light: Light, ready: bool
) -> None:
    found, not_ready = measured(state, last_cycle)
    assert found is light
    assert (not not_ready) is ready
