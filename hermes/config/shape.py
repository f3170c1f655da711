"""Finding one's way in the models: which field a path means, and what it allows in words."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hermes.config.fields import Means

SECTION = "a section (`key: value` lines, indented)"


@dataclass(frozen=True, slots=True)
class Target:
    """What a location of pydantic's means. ``owner``: the section; ``field``: None for an unknown key;
    ``annotation``: type of the value; ``metadata``: of the innermost Annotated; ``path``: without tags."""

    owner: type[BaseModel] | None
    field: FieldInfo | None
    annotation: Any
    metadata: tuple[Any, ...]
    path: tuple[str | int, ...]


def find(model: type[BaseModel], location: tuple[str | int, ...]) -> Target:
    """Follows ``location`` from ``model``; steps that are tags of unions or validators are skipped."""
    target = Target(None, None, model, (), ())
    for step in location:
        target = _follow(target, step)
    return target


def _follow(at: Target, step: str | int) -> Target:
    if step == "[key]":
        return at
    here, path = bare(at.annotation), (*at.path, step)
    if _is_model(here):
        field = here.model_fields.get(str(step))
        if field is None:
            return Target(here, None, None, (), path)
        return Target(here, field, field.annotation, tuple(field.metadata), path)
    if isinstance(here, tuple):
        chosen = next(
            (one for one in here if str(step) in choices(one.model_fields["kind"].annotation)), None
        )
        return Target(at.owner, at.field, chosen, (), at.path) if chosen is not None else at
    origin, arguments = get_origin(here), get_args(here)
    if origin is Mapping:
        return Target(at.owner, at.field, arguments[1], _metadata(arguments[1]), path)
    if origin is tuple and isinstance(step, int):
        return Target(at.owner, at.field, arguments[0], _metadata(arguments[0]), path)
    return at


def bare(annotation: Any) -> Any:
    """Without Annotated and None; a union of several sections becomes a tuple of them."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, types.UnionType}:
        parts = [one for one in get_args(annotation) if one is not type(None)]
        return bare(parts[0]) if len(parts) == 1 else tuple(parts)
    return annotation


def choices(annotation: Any) -> tuple[str, ...]:
    """The words an enum or literal allows; empty for anything else."""
    here = bare(annotation)
    if isinstance(here, type) and issubclass(here, Enum):
        return tuple(str(member.value) for member in here)
    return tuple(str(word) for word in get_args(here)) if get_origin(here) is Literal else ()


def allowed(target: Target) -> str:
    """What the value may be, in words."""
    words = choices(target.annotation)
    if words:
        return " | ".join(words)
    here = bare(target.annotation)
    means = next((one for one in reversed(target.metadata) if isinstance(one, Means)), None)
    if means is not None:
        limits = _range(target.metadata)
        return f"{means.allowed}{', ' + limits if limits else ''}"
    if _is_model(here) or isinstance(here, tuple) or get_origin(here) is Mapping:
        return SECTION
    return "a list (lines that start with `- `)" if get_origin(here) is tuple else "another kind of value"


def cure(target: Target) -> str:
    """The usual cure for a value of the wrong kind; may be empty."""
    means = next((one for one in reversed(target.metadata) if isinstance(one, Means)), None)
    return means.cure if means is not None else ""


def subsections(section: BaseModel) -> Iterator[tuple[tuple[str | int, ...], BaseModel]]:
    """The section itself and all below it, with their paths."""
    yield (), section
    for name in type(section).model_fields:
        for path, inner in _inside(getattr(section, name)):
            yield from ((((name, *path, *below)), one) for below, one in subsections(inner))


def _inside(value: Any) -> Iterator[tuple[tuple[str | int, ...], BaseModel]]:
    if isinstance(value, BaseModel):
        yield (), value
    elif isinstance(value, Mapping):
        yield from (((name,), one) for name, one in value.items() if isinstance(one, BaseModel))
    elif isinstance(value, tuple):
        yield from (((at,), one) for at, one in enumerate(value) if isinstance(one, BaseModel))


def _range(metadata: tuple[Any, ...]) -> str:
    low = next((one for one in metadata if isinstance(one, Ge | Gt)), None)
    high = next((one for one in metadata if isinstance(one, Le | Lt)), None)
    if isinstance(low, Ge) and isinstance(high, Le):
        return f"{low.ge}-{high.le}"
    parts = []
    if low is not None:
        parts.append(f">= {low.ge}" if isinstance(low, Ge) else f"> {low.gt}")
    if high is not None:
        parts.append(f"<= {high.le}" if isinstance(high, Le) else f"< {high.lt}")
    return " and ".join(parts)


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return tuple(get_args(annotation)[1:]) if get_origin(annotation) is Annotated else ()


def _is_model(here: Any) -> bool:
    return isinstance(here, type) and issubclass(here, BaseModel)
