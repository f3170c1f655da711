"""From a file's tree to plain values: variables, secret files, YAML's traps; and where each came from."""

from __future__ import annotations

import re
from collections.abc import Mapping as Values
from dataclasses import dataclass, field
from pathlib import Path

from hermes.config.display import SECRET_NAMES, is_secret_path, show_key, show_path, show_value
from hermes.config.document import Mapping, Node, Scalar, Sequence
from hermes.config.errors import Problem
from hermes.config.nearest import did_you_mean
from hermes.config.yaml_traps import sexagesimal_value, truth

MAX_SECRET_FILE = 64 * 1024
_MAX_DEPTH = 64
_MAX_DIGITS = 18
_VARIABLE = re.compile(r"\$(\$?)\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\})?")

KeyPath = tuple[str | int, ...]


class FromVariable(str):
    """Text that came, in part or whole, from a variable or a secret file. Never printed; read as any type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands. ``scalar`` is its text in the file, None for sections and for given values.

    ``name``: the variable or key to name instead of the path, when the value was given elsewhere.
    """

    file: str
    line: int
    scalar: Scalar | None = None
    name: str = ""
    hidden: bool = False


@dataclass(slots=True)
class Expanded:
    """``values`` holds only dict, list, str, bool, int, float. ``broken`` paths have a problem already."""

    values: dict[str, object]
    places: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    broken: set[KeyPath] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)

    def place(self, path: KeyPath) -> Place:
        """The nearest place at or above ``path``."""
        for end in range(len(path), -1, -1):
            found = self.places.get(path[:end])
            if found is not None:
                return found
        return Place("configuration", 0)

    def holds_secrets(self) -> bool:
        """True when a secret stands in the file itself, not in a variable or a file of its own."""
        return any(
            place.scalar is not None
            and place.scalar.text not in {"", "none"}
            and "${" not in place.scalar.text
            for path, place in self.places.items()
            if is_secret_path(path)
        )

    def is_broken(self, path: KeyPath) -> bool:
        """True when a problem at, above or below this path makes a second one noise."""
        return any(path[: len(one)] == one or one[: len(path)] == path for one in self.broken)


class _Skip(Exception):
    """This value cannot be had; its problem is noted (or its section is off)."""


def expand(root: Mapping, file: str, environ: Values[str, str], folder: Path) -> Expanded:
    """Plain values of ``root``. ``folder`` is what relative secret files are relative to."""
    walk = _Walk(Expanded({}), file, environ, folder)
    walk.out.places[()] = Place(file, 0)
    walk.out.values = walk.mapping(root, (), False)
    return walk.out


@dataclass(slots=True)
class _Walk:
    out: Expanded
    file: str
    environ: Values[str, str]
    folder: Path

    def node(self, node: Node, path: KeyPath, off: bool) -> object:
        if len(path) > _MAX_DEPTH:
            self.fail(path, node.line, f"nesting deeper than {_MAX_DEPTH} levels", "", "use fewer aliases")
        if isinstance(node, Mapping):
            return self.mapping(node, path, off)
        if isinstance(node, Sequence):
            return self.sequence(node, path, off)
        return self.scalar(node, path, off)

    def mapping(self, node: Mapping, path: KeyPath, off: bool) -> dict[str, object]:
        off = off or self._is_off(node)
        values: dict[str, object] = {}
        for key, (line, child) in node.entries.items():
            here = (*path, key)
            scalar = child if isinstance(child, Scalar) else None
            hidden = is_secret_path(here) or (scalar is not None and "${" in scalar.text)
            self.out.places[here] = Place(self.file, line, scalar, hidden=hidden)
            try:
                values[key] = self.node(child, here, off)
            except _Skip:
                continue
        if not off:
            for key in [one for one in values if one.endswith("_file")]:
                if key.removesuffix("_file") in SECRET_NAMES:
                    self._secret_file(key, values, path)
        return values

    def sequence(self, node: Sequence, path: KeyPath, off: bool) -> list[object]:
        values: list[object] = []
        for child in node.items:
            here = (*path, len(values))
            scalar = child if isinstance(child, Scalar) else None
            hidden = is_secret_path(here) or (scalar is not None and "${" in scalar.text)
            self.out.places[here] = Place(self.file, child.line, scalar, hidden=hidden)
            try:
                values.append(self.node(child, here, off))
            except _Skip:
                continue
        return values

    def scalar(self, node: Scalar, path: KeyPath, off: bool) -> object:
        if node.kind == "null":
            self.fail(
                path,
                node.line,
                "found nothing (null)",
                "a value or a section",
                "remove the line to use the default",
            )
        if node.kind == "sexagesimal":
            shown = "" if is_secret_path(path) else f" {node.text}"
            number = "a number" if is_secret_path(path) else f"the number {sexagesimal_value(node.text)}"
            self.fail(
                path,
                node.line,
                f"found{shown} without quotes, which YAML reads as {number} (base 60)",
                "quoted text, or a plain number",
                "put it in quotes if it is text",
            )
        if node.kind == "bool":
            return truth(node.text)
        if node.kind == "int" and len(node.text) <= _MAX_DIGITS:
            return int(node.text)
        if node.kind == "float" and len(node.text) <= 2 * _MAX_DIGITS:
            return float(node.text)
        if "${" in node.text:
            return self._substitute(node, path, off)
        return node.text

    def fail(self, path: KeyPath, line: int, found: str, allowed: str, cure: str) -> None:
        self.out.problems.append(Problem(self.file, line, show_path(path), found, allowed, cure))
        self.out.broken.add(path)
        raise _Skip

    def _substitute(self, node: Scalar, path: KeyPath, off: bool) -> str:
        missing: list[str] = []
        malformed = False
        used = False

        def replace(match: re.Match[str]) -> str:
            nonlocal malformed, used
            if match.group(1):
                return match.group()[1:]
            name, default = match.group(2), match.group(3)
            if name is None:
                malformed = True
                return ""
            used = True
            value = self.environ.get(name)
            if value or (value is not None and default is None):
                return value
            if default is not None:
                return default[2:]
            missing.append(name)
            return ""

        text = _VARIABLE.sub(replace, node.text)
        if malformed:
            self.fail(
                path,
                node.line,
                "${ that is followed by no name and }",
                "${NAME} or ${NAME:-default}",
                "write $${ for the two characters themselves",
            )
        if missing and off:
            raise _Skip
        if missing:
            names = ", ".join(map(show_key, missing))
            meant = did_you_mean(missing[0], self.environ) if len(missing) == 1 else ""
            self.fail(
                path,
                node.line,
                f"variable {names} is not set{meant}",
                "a variable that is set, or a default",
                f"set {names} (the file .env in HERMES_HOME will do), write ${{{show_key(missing[0])}:-}} "
                "for empty, or enabled: false in this section",
            )
        return FromVariable(text) if used else text

    def _is_off(self, node: Mapping) -> bool:
        entry = node.entries.get("enabled")
        if entry is None or not isinstance(entry[1], Scalar):
            return False
        scalar = entry[1]
        if scalar.kind == "bool":
            return not truth(scalar.text)
        probe = _Walk(Expanded({}), self.file, self.environ, self.folder)
        try:
            return str(probe.scalar(scalar, ("enabled",), False)).lower() in {"false", "no", "off", "0"}
        except _Skip:
            return False

    def _secret_file(self, key: str, values: dict[str, object], path: KeyPath) -> None:
        name = values[key]
        target = key.removesuffix("_file")
        here = (*path, key)
        place = self.out.places[here]
        if not isinstance(name, str) or not name:
            return
        if (*path, target) in self.out.places and values.get(target) != "":
            self.out.broken.add(here)
            self.out.problems.append(
                Problem(
                    self.file,
                    place.line,
                    show_path(here),
                    f"{target} is given as well",
                    "one of the two",
                    f"remove {target} or {key}",
                )
            )
            return
        self.out.places[(*path, target)] = Place(self.file, place.line, None, hidden=True)
        try:
            secret = read_secret(locate(name, self.folder, self.environ))
        except (OSError, ValueError) as error:
            self.out.broken.update({here, (*path, target)})
            reason = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
            shown = "the file" if isinstance(name, FromVariable) else f"the file {show_value(name)}"
            self.out.problems.append(
                Problem(
                    self.file,
                    place.line,
                    show_path(here),
                    f"{shown} cannot be used: {reason}",
                    "a readable file with the secret",
                    "create it with mode 0600 and the secret as its only line",
                )
            )
            return
        values[target] = FromVariable(secret)
        if is_open(locate(name, self.folder, self.environ)):
            self.out.notices.append(f"{show_path(here)}: others can read that file: chmod 600")


def is_open(file: Path) -> bool:
    """True when group or others may read the file."""
    try:
        return bool(file.stat().st_mode & 0o044)
    except OSError:
        return False


def locate(name: str, folder: Path, environ: Values[str, str]) -> Path:
    """The file a key names: below the user's home after ``~/``, else relative to ``folder``."""
    home = environ.get("HOME")
    return Path(home, name[2:]) if home and name.startswith("~/") else folder / name


def read_secret(file: Path) -> str:
    """The one line of a secret file. Raises OSError, or ValueError with a sentence that quotes nothing."""
    if file.is_dir():
        raise ValueError("it is a directory")
    if not file.is_file() and file.exists():
        raise ValueError("it is no regular file")
    with file.open("rb") as stream:
        raw = stream.read(MAX_SECRET_FILE + 1)
    if len(raw) > MAX_SECRET_FILE:
        raise ValueError(f"it is larger than {MAX_SECRET_FILE} bytes")
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    if not text:
        raise ValueError("it is empty")
    if "\n" in text or "\x00" in text:
        raise ValueError("it holds more than one line")
    return text
