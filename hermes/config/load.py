"""From file and variables to one frozen `Config`, or all problems at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hermes.config.adapters import ChatPlatformConfig, PlatformConfig, ProviderConfig
from hermes.config.credentials import settle_credentials
from hermes.config.display import show_path
from hermes.config.document import Unreadable, parse
from hermes.config.errors import ConfigError, Problem
from hermes.config.expand import Expanded, KeyPath, Place, expand, is_open
from hermes.config.explain import Explainer
from hermes.config.fields import NAME_RULE, Section, is_loopback, is_name
from hermes.config.foreign import is_foreign_config
from hermes.config.known import apply_known
from hermes.config.model import Config
from hermes.config.prices import without_price
from hermes.config.references import check_fallbacks, check_transcription, choose_model, fill_compression
from hermes.config.shape import SECTION, subsections
from hermes.config.source import read_source
from hermes.config.unbuilt import without_effect

FILE_NAME = "config.yaml"

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Loaded:
    """``sources``: the file read, if any, and the word ``environment`` if variables took part.
    ``notices``: sentences for the log at start; no secrets."""

    config: Config
    sources: tuple[str, ...]
    notices: tuple[str, ...]


def load_config(
    path: Path | None,
    *,
    home: Path,
    environ: Mapping[str, str],
    platform_models: Mapping[str, type[BaseModel]],
    provider_models: Mapping[str, type[BaseModel]],
    problems: tuple[Problem, ...] = (),
) -> Loaded:
    """Reads ``path``, or ``HERMES_HOME/config.yaml`` if that exists, or nothing but the known variables.

    ``platform_models``: platform name → its section, a subclass of `PlatformConfig`; ``provider_models``:
    kind → a subclass of `ProviderConfig` (R42). ``problems``: of the environment, reported with the file's.
    Raises ConfigError, and nothing else, for whatever may stand in file and variables.
    """
    try:
        expanded = _read(path, home, environ)
    except Unreadable as error:
        raise ConfigError((*problems, *error.problems)) from None
    said = [*apply_known(expanded, environ), *expanded.notices]
    folder = home if path is None else path.absolute().parent
    building = _Building(expanded, Explainer(expanded, tuple(platform_models)), said, environ, folder)
    config = building.build(platform_models, provider_models)
    found = (*problems, *building.explainer.problems)
    if found or config is None:
        raise ConfigError(found)
    sources = dict.fromkeys(place.file for place in expanded.places.values())
    return Loaded(config, tuple(sources), tuple(said))


def _read(path: Path | None, home: Path, environ: Mapping[str, str]) -> Expanded:
    source = read_source(path, home / FILE_NAME)
    if source is None:
        return Expanded({}, places={(): Place("environment", 0)})
    text, name = source
    root, problems = parse(text, name)
    expanded = expand(root, name, environ, Path(name).absolute().parent)
    owner = is_foreign_config(expanded.values)
    if owner is not None:
        raise Unreadable(
            Problem(
                name,
                0,
                "",
                f"this is a configuration of {owner}, which Hermes never changes",
                "a configuration of Hermes",
                f"run `hermes import {owner}`, or use another HERMES_HOME",
            )
        )
    expanded.problems[:0] = problems
    if expanded.holds_secrets() and is_open(Path(name)):
        expanded.notices.append(f"{name} holds secrets and others can read it: chmod 600")
    return expanded


@dataclass(slots=True)
class _Building:
    expanded: Expanded
    explainer: Explainer
    said: list[str]
    environ: Mapping[str, str]
    folder: Path

    def build(
        self, platform_models: Mapping[str, type[BaseModel]], provider_models: Mapping[str, type[BaseModel]]
    ) -> Config | None:
        values = dict(self.expanded.values)
        given = {name: values.pop(name, {}) for name in ("platforms", "providers")}
        config = self._validate(Config, values, ())
        platforms = self._platforms(given["platforms"], platform_models)
        providers = self._providers(given["providers"], provider_models)
        if config is None:
            return None
        config = config.model_copy(update={"platforms": platforms, "providers": providers})
        self._complaints(config)
        if idle := without_effect(config):
            self.said.append(f"set, but without effect in this version: {', '.join(idle)}")
        settled = settle_credentials(providers, self.environ, self.folder, self.explainer)
        config = config.model_copy(update={"providers": settled})
        if not self.expanded.is_broken(("providers",)):
            config = self._resolve(config)
        self._announce(config)
        return config

    def _validate(self, model: type[_Model], values: object, path: KeyPath) -> _Model | None:
        try:
            return model.model_validate(values)
        except ValidationError as error:
            self.explainer.refused(model, path, error)
            return None

    def _platforms(self, given: object, models: Mapping[str, type[BaseModel]]) -> dict[str, PlatformConfig]:
        found: dict[str, PlatformConfig] = {}
        if not isinstance(given, dict):
            self.explainer.wrong_shape(("platforms",), SECTION)
            given = {}
        for name in given:
            if name not in models:
                self.explainer.unknown(("platforms", name), "platform", tuple(models))
        for name, model in models.items():
            one = self._validate(model, given.get(name, {}), ("platforms", name))
            if isinstance(one, PlatformConfig):
                found[name] = one
        return found

    def _providers(self, given: object, models: Mapping[str, type[BaseModel]]) -> dict[str, ProviderConfig]:
        found: dict[str, ProviderConfig] = {}
        if not isinstance(given, dict):
            self.explainer.wrong_shape(("providers",), SECTION)
            given = {}
        for name, section in given.items():
            path: KeyPath = ("providers", name)
            if not isinstance(section, dict):
                self.explainer.wrong_shape(path, SECTION)
                continue
            if not is_name(name):
                self.explainer.say(path, "a name that cannot be used", NAME_RULE, "choose another name")
                continue
            kind = section.get("kind")
            if not isinstance(kind, str) or kind not in models:
                self.explainer.wrong_choice((*path, "kind"), tuple(models))
                continue
            one = self._validate(models[kind], section, path)
            if isinstance(one, ProviderConfig):
                found[name] = one
        return found

    def _complaints(self, config: Config) -> None:
        off: list[KeyPath] = []
        for path, section in subsections(config):
            if getattr(section, "enabled", True) is False:
                off.append(path)
            if not isinstance(section, Section) or any(path[: len(one)] == one for one in off):
                continue
            for name, found, allowed, cure in section.complaints():
                self.explainer.say((*path, *_steps(name)), found, allowed, cure)

    def _resolve(self, config: Config) -> Config:
        """Follows references between sections and fills in what defaults to another key."""
        if self.expanded.is_broken(("model",)):
            return config
        model = choose_model(config.model, config.providers, self.explainer, self.said)
        check_fallbacks(config.fallback_providers, model, config.providers, self.explainer)
        compression = fill_compression(config.compression, model, config.providers, self.explainer)
        check_transcription(config.transcription, config.providers, self.explainer)
        return config.model_copy(update={"model": model, "compression": compression})

    def _announce(self, config: Config) -> None:
        self.said += [
            f"agent.budget: the price of {name} is not known, so no cap on money applies to it "
            "(price_input and price_output in its entry under models)"
            for name in without_price(config)
        ]
        if not is_loopback(config.gateway.bind):
            self.said.append(
                f"gateway.bind {config.gateway.bind} can be reached from other machines, in plain HTTP: "
                "the page asks for its token, but put a proxy with TLS before it"
            )
        for name, one in config.platforms.items():
            place = show_path(("platforms", name))
            section: Any = self.expanded.values.get("platforms", {})
            written = section.get(name, {}) if isinstance(section, dict) else {}
            if not isinstance(one, ChatPlatformConfig):
                continue
            if one.enabled and not one.allowed_users and not one.allow_all_users:
                self.said.append(
                    f"{place}: nobody may talk to the bot yet; whoever tries is shown to you with "
                    f"the line to add to {place}.allowed_users"
                )
            if one.enabled and one.allow_all_users:
                self.said.append(f"{place}: anybody may talk to the bot (allow_all_users)")
            if (
                not one.enabled
                and isinstance(written, dict)
                and "enabled" not in written
                and ({"token", "bot_token"} & set(written))
            ):
                self.said.append(f"{place} has a token but no `enabled: true`: it stays off")


def _steps(name: str) -> KeyPath:
    """``allowed_users.0`` as a path; a number is an item of a list."""
    return tuple(int(step) if step.isdigit() else step for step in name.split(".") if step)
