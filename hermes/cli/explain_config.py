"""``hermes explain config``: the configuration in force, where each value came from, and no secret."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pydantic import BaseModel, SecretStr

from hermes.app.loading import load
from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation
from hermes.cli.screen import console, print_json, table
from hermes.config.display import is_secret_path, show_path, show_value
from hermes.config.document import parse
from hermes.config.environment import Environment
from hermes.config.expand import Expanded, KeyPath, Place, expand
from hermes.config.known import apply_known
from hermes.config.load import FILE_NAME
from hermes.config.source import read_source

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value in force: shown as it may be shown, and its place."""

    path: str
    value: str
    source: str


def explain_config(config_path: Path | None, invocation: Invocation) -> int:
    """Prints every key. Raises ConfigError."""
    found, notices = in_force(Environment.read(), config_path)
    if invocation.json:
        print_json([{"path": one.path, "value": one.value, "source": one.source} for one in found])
        return OK
    for notice in notices:
        sys.stderr.write(f"note: {notice}\n")
    lines = table("key", "value", "from")
    for one in found:
        lines.add_row(one.path, one.value, one.source, style="dim" if one.source == DEFAULT else None)
    console().print(lines)
    return OK


def in_force(environment: Environment, config_path: Path | None) -> tuple[list[Setting], tuple[str, ...]]:
    """Every key ``hermes run`` would run with, and the notices of the load. Raises ConfigError."""
    loaded = load(environment, config_path)
    places = _places(config_path, environment)
    found = [
        Setting(show_path(path), _shown(path, value, places.places), _source(path, places))
        for path, value in leaves(loaded.config)
    ]
    return found, loaded.notices


def leaves(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Every value below sections, mappings and lists of sections; an empty one stands for itself."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from leaves(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from leaves(below, (*path, str(name)))
    elif isinstance(value, tuple) and any(isinstance(one, BaseModel) for one in value):
        for place, below in enumerate(value):
            yield from leaves(below, (*path, place))
    else:
        yield path, value


def _shown(path: KeyPath, value: object, places: Mapping[KeyPath, Place]) -> str:
    match value:
        case SecretStr():
            return "(a secret)" if value.get_secret_value() else "(none)"
        case tuple():
            return f"[{', '.join(_shown((*path, at), one, places) for at, one in enumerate(value))}]"
        case Mapping():
            return "{}"
        case _ if value and (is_secret_path(path) or _from_variable(places.get(path))):
            return "(hidden)"
        case Enum():
            return str(value.value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value:.15g}" if isinstance(value, float) else str(value)
        case None:
            return "(none)"
        case _:
            return show_value(str(value))


def _from_variable(place: Place | None) -> bool:
    """Whether the file fills it in with ``${NAME}``: such a value is never printed."""
    return place is not None and place.hidden and place.scalar is not None


def _places(config_path: Path | None, environment: Environment) -> Expanded:
    """As `load_config` reads them; the file has just been found good."""
    source = read_source(config_path, environment.home / FILE_NAME)
    if source is None:
        expanded = Expanded({}, places={(): Place("environment", 0)})
    else:
        text, name = source
        root, _ = parse(text, name)
        expanded = expand(root, name, environment.variables, Path(name).absolute().parent)
    apply_known(expanded, environment.variables)
    return expanded


def _source(path: KeyPath, expanded: Expanded) -> str:
    place = expanded.places.get(path)
    if place is None:
        below = [one for found, one in expanded.places.items() if found[: len(path)] == path]
        place = below[0] if below else None
    if place is None:
        return DEFAULT
    if place.name:
        return place.name
    return f"{Path(place.file).name}:{place.line}" if place.line else place.file
