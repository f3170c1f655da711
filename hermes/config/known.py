"""Known variables: what they fill in where the file says nothing, and the two that override it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermes.config.expand import Expanded, FromVariable, KeyPath, Place

DEFAULT_MODELS: Mapping[str, str] = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "openrouter": "openai/gpt-5-mini",
    "rehearsal": "rehearsal",
}
"""The listed default model of each provider made by a variable, and of each kind."""

OPENROUTER_URL = "https://openrouter.ai/api/v1"

_SECRETS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "telegram": (("token", "TELEGRAM_BOT_TOKEN"),),
    "discord": (("token", "DISCORD_BOT_TOKEN"),),
    "slack": (("bot_token", "SLACK_BOT_TOKEN"), ("app_token", "SLACK_APP_TOKEN")),
}
_LISTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    name: (
        ("allowed_users", f"{name.upper()}_ALLOWED_USERS"),
        ("allow_all_users", f"{name.upper()}_ALLOW_ALL_USERS"),
        ("home_channel", f"{name.upper()}_HOME_CHANNEL"),
    )
    for name in _SECRETS
}


@dataclass(frozen=True, slots=True)
class Provided:
    """A provider that a variable makes: its name, its kind, its key and the address to use."""

    name: str
    kind: str
    key: str
    url: str
    url_variable: str = ""


_PROVIDERS = (
    Provided("openai", "openai", "OPENAI_API_KEY", "", "OPENAI_BASE_URL"),
    Provided("anthropic", "anthropic", "ANTHROPIC_API_KEY", "", "ANTHROPIC_BASE_URL"),
    Provided("openrouter", "openai", "OPENROUTER_API_KEY", OPENROUTER_URL),
)

KNOWN = frozenset(
    [name for pairs in (*_SECRETS.values(), *_LISTS.values()) for _, name in pairs]
    + [name for one in _PROVIDERS for name in (one.key, one.url_variable) if name]
    + ["HERMES_MODEL", "HERMES_MAX_ITERATIONS", "HERMES_BIND"]
)
"""Every variable that has a meaning without being named in the file."""


def apply_known(expanded: Expanded, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Fills ``expanded`` from the known variables and says what they did, for the log at start.

    The file wins; variables fill what it leaves out; HERMES_MAX_ITERATIONS and HERMES_BIND override.
    An empty variable counts as unset.
    """
    filling = _Filling(expanded, {name: value for name in KNOWN if (value := environ.get(name, "").strip())})
    for platform in _SECRETS:
        filling.platform(platform)
    filling.providers()
    filling.overrides()
    return tuple(filling.said)


@dataclass(slots=True)
class _Filling:
    out: Expanded
    known: dict[str, str]
    said: list[str]

    def __init__(self, out: Expanded, known: dict[str, str]) -> None:
        self.out, self.known, self.said = out, known, []

    def section(self, *path: str) -> dict[str, Any] | None:
        """The mapping at ``path``, made if absent; None when the file has something else there."""
        here: Any = self.out.values
        for step in path:
            if tuple(path) in self.out.broken:
                return None
            here = here.setdefault(step, {})
            if not isinstance(here, dict):
                return None
        found: dict[str, Any] = here
        return found

    def put(self, section: dict[str, Any], path: KeyPath, variable: str, value: object | None = None) -> None:
        section[str(path[-1])] = FromVariable(self.known[variable]) if value is None else value
        self.out.places[path] = Place("environment", 0, name=variable, hidden=True)

    def platform(self, name: str) -> None:
        given = [pair for pair in _SECRETS[name] if pair[1] in self.known]
        platforms = self.out.values.get("platforms")
        written = isinstance(platforms, dict) and name in platforms
        if not given and not written:
            return
        section = self.section("platforms", name)
        if section is None:
            return
        for key, variable in given:
            if not {key, f"{key}_file"} & self._keys("platforms", name, section):
                self.put(section, ("platforms", name, key), variable)
        if given and "enabled" not in self._keys("platforms", name, section):
            section["enabled"] = True
            self.said.append(f"{name} is on because {given[0][1]} is set")
        for key, variable in _LISTS[name]:
            if variable in self.known and key not in self._keys("platforms", name, section):
                self.put(section, ("platforms", name, key), variable)

    def _keys(self, *where: Any) -> set[str]:
        """Keys written in the file below the section, those that could not be expanded included."""
        *path, section = where
        prefix = tuple(path)
        written = {
            str(one[-1]) for one in self.out.places if len(one) == len(prefix) + 1 and one[:-1] == prefix
        }
        return written | set(section)

    def providers(self) -> None:
        written = self.out.values.get("providers")
        if isinstance(written, dict) and written:
            for name, one in written.items():
                if isinstance(one, dict):
                    self._fill_provider(name, one)
            return
        if (written is not None and not isinstance(written, dict)) or self.out.is_broken(("providers",)):
            return
        providers = self.section("providers")
        if providers is None:
            return
        for source in _PROVIDERS:
            if source.key not in self.known and source.url_variable not in self.known:
                continue
            made: dict[str, Any] = {"kind": source.kind}
            providers[source.name] = made
            path = ("providers", source.name)
            self.out.places[path] = Place("environment", 0, name=source.key)
            if source.url:
                made["base_url"] = source.url
            self._fill(source, path, made)
        if not providers:
            providers["rehearsal"] = {"kind": "rehearsal"}
            self.said.append(
                "no provider is configured: the built-in rehearsal provider answers (it is no model)"
            )

    def _fill_provider(self, name: str, one: dict[str, Any]) -> None:
        """A written provider that says neither address nor key: a key never goes to another server."""
        for source in _PROVIDERS[:2]:
            own = {"api_key", "api_key_file", "api_keys", "credential", "base_url"}
            if one.get("kind") == source.kind and not own & self._keys("providers", name, one):
                self._fill(source, ("providers", name), one)

    def _fill(self, source: Provided, path: tuple[str, str], section: dict[str, Any]) -> None:
        if source.key in self.known:
            self.put(section, (*path, "api_key"), source.key)
        if source.url_variable in self.known:
            self.put(section, (*path, "base_url"), source.url_variable)

    def overrides(self) -> None:
        if "HERMES_MAX_ITERATIONS" in self.known and (agent := self.section("agent")) is not None:
            self.put(agent, ("agent", "max_turns"), "HERMES_MAX_ITERATIONS")
        if "HERMES_BIND" in self.known and (gateway := self.section("gateway")) is not None:
            text = self.known["HERMES_BIND"]
            if _is_host(text):
                port = str(gateway.get("bind", ":8642")).rpartition(":")[2]
                text = f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
            self.put(gateway, ("gateway", "bind"), "HERMES_BIND", FromVariable(text))
        if (
            "HERMES_MODEL" in self.known
            and (model := self.section("model")) is not None
            and "model" not in (self._keys("model", model))
        ):
            self.put(model, ("model", "model"), "HERMES_MODEL")


def _is_host(text: str) -> bool:
    """A host without a port: a name, an IPv4 address, or an IPv6 address without brackets."""
    return ":" not in text or (text.count(":") > 1 and not text.startswith("["))
