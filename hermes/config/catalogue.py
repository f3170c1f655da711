"""Every key there is: for ``hermes explain config``, and for the tests that keep documents honest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hermes.config import shape
from hermes.config.fields import Reload
from hermes.config.model import Config
from hermes.config.reload import reload_of

NAME = "NAME"
"""Stands in paths for a name of the owner's own (a provider, a model, an MCP server)."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``default``: as text, empty for sections; ``section``: True when keys lie below it."""

    path: tuple[str, ...]
    description: str
    allowed: str
    default: str
    reload: Reload
    section: bool

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)


def keys(
    platform_models: Mapping[str, type[BaseModel]], provider_models: Mapping[str, type[BaseModel]]
) -> Iterator[Key]:
    """All keys in the order of the models. Providers appear as ``providers.NAME`` once per kind."""
    for name, field in Config.model_fields.items():
        key = _key((name,), field, Reload.LIVE)
        yield key
        if name == "platforms":
            for platform, model in platform_models.items():
                yield from _below((name, platform), model, key.reload)
        elif name == "providers":
            for model in provider_models.values():
                yield from _below((name, NAME), model, key.reload)
        else:
            yield from _inside((name,), field.annotation, key.reload)


def _below(path: tuple[str, ...], model: type[BaseModel], above: Reload) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        key = _key((*path, name), field, above)
        yield key
        yield from _inside(key.path, field.annotation, key.reload)


def _inside(path: tuple[str, ...], annotation: Any, above: Reload) -> Iterator[Key]:
    here = shape.bare(annotation)
    if isinstance(here, tuple):
        for one in here:
            yield from _below(path, one, above)
    elif isinstance(here, type) and issubclass(here, BaseModel):
        yield from _below(path, here, above)
    elif get_origin(here) is Mapping:
        yield from _inside((*path, NAME), get_args(here)[1], above)
    elif get_origin(here) is tuple:
        yield from _inside(path, get_args(here)[0], above)


def _key(path: tuple[str, ...], field: FieldInfo, above: Reload) -> Key:
    target = shape.Target(None, field, field.annotation, tuple(field.metadata), path)
    section = any(True for _ in _inside(path, field.annotation, above))
    return Key(
        path,
        field.description or "",
        shape.allowed(target),
        _default(field),
        reload_of(field, above),
        section,
    )


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=False)
    if value is PydanticUndefined or value is None or isinstance(value, BaseModel):
        return ""
    if hasattr(value, "get_secret_value"):
        return '""'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[]" if not value else str(list(value))
    if isinstance(value, str):
        return str(getattr(value, "value", value)) or '""'
    return f"{value:.10g}"
