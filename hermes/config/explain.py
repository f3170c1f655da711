"""From a refused value to the sentence that names place, finding, what is allowed, and the cure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hermes.config import shape
from hermes.config.display import is_secret_path, show_key, show_path, show_value
from hermes.config.document import Scalar
from hermes.config.errors import Problem
from hermes.config.expand import Expanded, KeyPath
from hermes.config.model import Config
from hermes.config.nearest import did_you_mean, nearest
from hermes.config.yaml_traps import truth


class Explainer:
    """Collects problems about one expanded file."""

    def __init__(self, expanded: Expanded, platforms: Collection[str] = ()) -> None:
        self._expanded = expanded
        self._platforms = platforms
        self.problems: list[Problem] = list(expanded.problems)

    def refused(self, model: type[BaseModel], base: KeyPath, error: ValidationError) -> None:
        """Takes over all problems of one validation."""
        for detail in error.errors(include_url=False, include_input=False):
            self._one(model, base, detail)

    def say(self, path: KeyPath, found: str, allowed: str = "", cure: str = "") -> None:
        """One problem at ``path``, unless there is one already."""
        if self._expanded.is_broken(path):
            return
        place = self._expanded.place(path)
        self._expanded.broken.add(path)
        self.problems.append(
            Problem(place.file, place.line, place.name or show_path(path), found, allowed, cure)
        )

    def unknown(self, path: KeyPath, kind: str, known: tuple[str, ...]) -> None:
        """A name that does not exist, with the one that was meant."""
        name = str(path[-1])
        meant = nearest(name, known)
        advice = f"write {meant}" if meant is not None else self._belongs(path)
        self.say(
            path,
            f"unknown {kind} {show_key(name)}",
            ", ".join(sorted(known)) + did_you_mean(name, known),
            advice,
        )

    def _belongs(self, path: KeyPath) -> str:
        """Where a key of the top level belongs instead."""
        homes = [
            top
            for top, field in Config.model_fields.items()
            if str(path[-1]) in getattr(shape.bare(field.annotation), "model_fields", {})
        ]
        if len(path) == 1 and path[0] in self._platforms:
            homes = ["platforms"]
        if len(path) == 1 and homes:
            return f"it belongs below {' or '.join(f'`{one}:`' for one in homes)}"
        return "remove it, or see all keys in config.example.yaml"

    def wrong_shape(self, path: KeyPath, allowed: str) -> None:
        """A list, text or number where a section belongs."""
        self.say(path, f"found {self.found(path)}", allowed, "indent its keys below it, or remove the line")

    def found(self, path: KeyPath) -> str:
        """What stands at ``path``, as far as it may be shown."""
        place = self._expanded.places.get(path)
        value = _value_at(self._expanded.values, path)
        if isinstance(value, dict):
            return "a section"
        if isinstance(value, list):
            return "a list"
        if place is None or place.scalar is None or place.hidden or is_secret_path(path):
            from_variable = place is not None and place.scalar is not None and "${" in place.scalar.text
            return "the value of a variable (not shown)" if from_variable else "a value that is not shown"
        return _show_scalar(place.scalar)

    def _one(self, model: type[BaseModel], base: KeyPath, detail: ErrorDetails) -> None:
        target = shape.find(model, detail["loc"])
        path = (*base, *target.path)
        context: dict[str, Any] = detail.get("ctx", {})
        if detail["type"] == "extra_forbidden":
            known = tuple(target.owner.model_fields) if target.owner is not None else ()
            self.unknown(path, "key", known)
        elif detail["type"] == "missing":
            self.say(path, "missing", shape.allowed(target), f"add {path[-1]}:")
        elif detail["type"].startswith("union_tag"):
            words = tuple(
                w
                for one in shape.bare(target.annotation)
                for w in shape.choices(one.model_fields["kind"].annotation)
            )
            self.wrong_choice((*path, "kind"), words)
        elif words := shape.choices(target.annotation):
            self.wrong_choice(path, words)
        else:
            found = context.get("found") or f"found {self.found(path)}"
            allowed = context.get("allowed") or shape.allowed(target)
            self.say(path, str(found), str(allowed), str(context.get("cure") or self._cure(path, target)))

    def wrong_choice(self, path: KeyPath, words: tuple[str, ...]) -> None:
        """A word that is not among those allowed, or none at all."""
        value = _value_at(self._expanded.values, path)
        place = self._expanded.places.get(path)
        text = value if isinstance(value, str) and not (place is not None and place.hidden) else ""
        missing = value is None
        found = "missing" if missing else f"found {self.found(path)}"
        self.say(
            path,
            found,
            " | ".join(words) + did_you_mean(text, words),
            f"add {path[-1]}: to the section" if missing else "write one of them",
        )

    def _cure(self, path: KeyPath, target: shape.Target) -> str:
        place = self._expanded.places.get(path)
        if place is not None and place.name:
            return shape.cure(target) or f"correct {place.name}, or unset it"
        if place is not None and place.scalar is not None and place.scalar.kind in {"bool", "int", "float"}:
            allowed = shape.allowed(target)
            if "text" in allowed and not allowed.startswith(("seconds", "bytes")):
                return "put it in quotes if it is meant as text"
        if shape.allowed(target) == shape.SECTION:
            return "write its keys below it, indented, or remove the line"
        return shape.cure(target) or "correct it, or remove the line to use the default"


def _show_scalar(scalar: Scalar) -> str:
    if scalar.kind == "bool" and scalar.text.lower() not in {"true", "false"}:
        return (
            f"{scalar.text} without quotes, which YAML reads as {'true' if truth(scalar.text) else 'false'}"
        )
    if scalar.kind == "text":
        return "an empty text" if not scalar.text else show_value(scalar.text)
    return scalar.text[:40]


def _value_at(values: Any, path: KeyPath) -> Any:
    for step in path:
        if isinstance(values, dict):
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
        else:
            return None
    return values
