"""What a changed configuration asks for: nothing more, a link's restart, or the process's (R42)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hermes.config.display import show_path
from hermes.config.expand import KeyPath
from hermes.config.fields import Reload
from hermes.config.model import Config

_LINKED = frozenset({"platforms", "providers", "mcp_servers"})


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths of changed keys by what they need, each sorted. No values, since they may be secret.

    ``links``: (section, name) of each platform, provider or MCP server that must restart, start or end.
    """

    live: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    process: tuple[str, ...] = ()
    links: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.live or self.link or self.process)


def diff(old: Config, new: Config) -> Changes:
    """Compares two configurations key by key. Pure."""
    found: dict[Reload, set[str]] = {reload: set() for reload in Reload}
    links: set[tuple[str, str]] = set()
    for path, reload in _sections(old, new, (), Reload.LIVE):
        found[reload].add(show_path(path))
        if reload is Reload.LINK and len(path) > 1 and path[0] in _LINKED:
            links.add((str(path[0]), str(path[1])))
    paths = {reload: tuple(sorted(names)) for reload, names in found.items()}
    return Changes(paths[Reload.LIVE], paths[Reload.LINK], paths[Reload.PROCESS], frozenset(links))


def reload_of(field: FieldInfo, above: Reload) -> Reload:
    """The class a key declares, else that of the section above it."""
    extra = field.json_schema_extra
    return Reload(str(extra["reload"])) if isinstance(extra, dict) and "reload" in extra else above


def _sections(
    old: BaseModel, new: BaseModel, path: KeyPath, above: Reload
) -> Iterator[tuple[KeyPath, Reload]]:
    if type(old) is not type(new):
        yield path, above
        return
    for name, field in type(new).model_fields.items():
        yield from _values(getattr(old, name), getattr(new, name), (*path, name), reload_of(field, above))


def _values(old: Any, new: Any, path: KeyPath, reload: Reload) -> Iterator[tuple[KeyPath, Reload]]:
    if isinstance(old, BaseModel) and isinstance(new, BaseModel):
        yield from _sections(old, new, path, reload)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            if name not in old or name not in new:
                yield (*path, name), reload
            else:
                yield from _values(old[name], new[name], (*path, name), reload)
    elif old != new:
        yield path, reload
