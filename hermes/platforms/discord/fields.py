"""Reading a Discord object without trusting it: what only Discord has, ids and times; each may raise Poison."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import datetime

from hermes.core.errors import Poison
from hermes.platforms.fields import Fields, words

EPOCH_MS = 1_420_070_400_000
_DIGITS = 20


def kind_of(of: Fields) -> int | None:
    """The number ``of["type"]``; None for anything else. A thing without one is of kind 0."""
    value = of.get("type", 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mappings(value: object) -> list[Fields]:
    """The objects in a list; none in anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def is_snowflake(value: object) -> bool:
    """Whether this is an id as Discord writes it: decimal digits in a text, of 64 bits."""
    return isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS


def snowflake(of: Fields, name: str) -> str:
    """The id ``of[name]``. Raises Poison."""
    value = of.get(name)
    if not is_snowflake(value):
        raise Poison(f"{name} is not an id")
    return str(value)


def optional_snowflake(of: Fields, name: str) -> str | None:
    """The id ``of[name]``, None when absent. Raises Poison when it is something else."""
    return None if of.get(name) is None else snowflake(of, name)


def made_at(number: str) -> float:
    """When the thing of this id was made, in unix seconds. Source: Discord's documentation, "Snowflakes"."""
    return ((int(number) >> 22) + EPOCH_MS) / 1000


def account_of(token: str) -> str:
    """The bot's id as its token says it; empty for what is no token."""
    head = token.partition(".")[0]
    try:
        found = urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode("ascii")
    except ValueError:
        return ""
    return found if is_snowflake(found) else ""


def first_id_at(seconds: float) -> int:
    """The lowest id that can be made at that time (unix seconds)."""
    return max(0, int(seconds * 1000) - EPOCH_MS) << 22


def moment(of: Fields, name: str) -> float | None:
    """The ISO timestamp ``of[name]`` in unix seconds, None when absent. Raises Poison."""
    text = words(of, name)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise Poison(f"{name} is not a time") from None
