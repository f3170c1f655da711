"""Reading a platform's JSON without trusting it: each reader returns its type or raises Poison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.core.errors import Poison
from hermes.core.transcript import without_lone_surrogates

Fields = Mapping[str, Any]


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


def objects(of: Fields, name: str) -> tuple[Fields, ...]:
    """The list of objects ``of[name]``, empty when absent. Raises Poison."""
    value = of.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Poison(f"{name} is not a list but {type(value).__name__}")
    return tuple(fields(one, name) for one in value)


def words(of: Fields, name: str) -> str:
    """The text ``of[name]``, empty when absent, lone surrogates replaced. Raises Poison."""
    value = of.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Poison(f"{name} is not a text but {type(value).__name__}")
    return without_lone_surrogates(value)
