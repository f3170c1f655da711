"""Reading a Bot API object without trusting it: each reader returns its type or raises Poison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.core.errors import Poison
from hermes.core.transcript import without_lone_surrogates

Fields = Mapping[str, Any]

BIGGEST_ID = 2**63


def fields(value: object, name: str) -> Fields:
    """``value`` as an object. Raises Poison."""
    if not isinstance(value, dict):
        raise Poison(f"{name} is not an object but {type(value).__name__}")
    return value


def inner(of: Fields, name: str) -> Fields:
    """The object ``of[name]``. Raises Poison when it is absent or something else."""
    return fields(of.get(name), name)


def optional(of: Fields, name: str) -> Fields | None:
    """The object ``of[name]``, None when absent. Raises Poison when it is something else."""
    return None if of.get(name) is None else inner(of, name)


def number(of: Fields, name: str) -> int:
    """The integer ``of[name]``, of 64 bits at most. Raises Poison."""
    value = of.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= BIGGEST_ID:
        raise Poison(f"{name} is not an integer of 64 bits")
    return value


def optional_number(of: Fields, name: str) -> int | None:
    """The integer ``of[name]``, None when absent. Raises Poison when it is something else."""
    return None if of.get(name) is None else number(of, name)


def words(of: Fields, name: str) -> str:
    """The text ``of[name]``, empty when absent, lone surrogates replaced. Raises Poison."""
    value = of.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Poison(f"{name} is not a text but {type(value).__name__}")
    return without_lone_surrogates(value)
