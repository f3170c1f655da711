"""The adapter's bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds and counts; see ``config``."""

    request: float = 30.0
    connect: float = 10.0
    stall_after: float = 90.0
    identify_pause: float = 5.0
    catch_up_messages: int = 200
    catch_up_age: float = 86_400.0
    connections: int = 32
    roles: bool = False
    """Whether somebody may talk by a role of theirs: then the history's authors are asked after."""
    audit: float = 120.0
    """Silence after which a history is looked at for messages that no event told of."""
    echo: float = 60.0
    """How soon the gateway tells of what we sent, at the latest; a session that does not is a dead one."""
