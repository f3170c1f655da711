"""Slack's ids and time stamps. A ``ts`` ("1712345678.000100") is a message's name in its channel and its time."""

from __future__ import annotations

import re

from hermes.core.errors import Poison
from hermes.platforms.fields import Fields

_STAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}\Z")
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


def is_stamp(value: object) -> bool:
    """Whether this is a ``ts``."""
    return isinstance(value, str) and _STAMP.match(value) is not None


def stamp(of: Fields, name: str) -> str:
    """The ``ts`` of that name. Raises Poison."""
    value = of.get(name)
    if not is_stamp(value):
        raise Poison(f"{name} is not a time stamp of Slack's")
    return str(value)


def optional_stamp(of: Fields, name: str) -> str | None:
    """The ``ts`` of that name, None when absent. Raises Poison when it is something else."""
    return None if of.get(name) is None else stamp(of, name)


def identifier(of: Fields, name: str) -> str:
    """The id of that name (of a user, channel, team, file). Raises Poison."""
    value = of.get(name)
    if not isinstance(value, str) or _ID.match(value) is None:
        raise Poison(f"{name} is not an id of Slack's")
    return value


def order(ts: str) -> tuple[int, int]:
    """What time stamps are compared by: as numbers they would lose their last digits."""
    whole, _, part = ts.partition(".")
    return int(whole), int(part.ljust(6, "0")[:9])


def later(one: str | None, other: str) -> bool:
    """Whether ``one`` is after ``other``; None is before everything."""
    return one is not None and order(one) > order(other)


def stamp_of(seconds: float) -> str:
    """The ``ts`` of a time in unix seconds."""
    return f"{max(0.0, seconds):.6f}"
