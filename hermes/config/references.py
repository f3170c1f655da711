"""Names that point from one section to another, and the defaults that follow from them."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.config.adapters import ProviderConfig
from hermes.config.display import show_key
from hermes.config.expand import KeyPath
from hermes.config.explain import Explainer
from hermes.config.known import DEFAULT_MODELS
from hermes.config.nearest import did_you_mean
from hermes.config.sections import CompressionConfig, ModelChoice, TranscriptionConfig


def choose_model(
    model: ModelChoice, providers: Mapping[str, ProviderConfig], explainer: Explainer, said: list[str]
) -> ModelChoice:
    """The model that answers, with what the file left out filled in and announced."""
    usable = [name for name, one in providers.items() if one.enabled]
    name = model.provider
    if not name:
        if not usable:
            explainer.say(("providers",), "no provider is enabled", "at least one", "enable or add one")
            return model
        name = usable[0]
        if len(usable) > 1:
            said.append(f"model.provider is not set: {name} is used (of {', '.join(usable)})")
    elif not check_provider(("model", "provider"), name, providers, explainer):
        return model
    chosen = model.model
    if not chosen:
        one = providers[name]
        listed = DEFAULT_MODELS.get(name) or DEFAULT_MODELS.get(one.kind, "")
        chosen = next(iter(one.models), listed)
        if one.kind != "rehearsal":
            said.append(f"no model is named: {chosen} at {name} is used (set HERMES_MODEL or model.model)")
    return ModelChoice(provider=name, model=chosen)


def check_fallbacks(
    fallbacks: tuple[ModelChoice, ...],
    primary: ModelChoice,
    providers: Mapping[str, ProviderConfig],
    explainer: Explainer,
) -> None:
    """Each fallback names an enabled provider and a model, and none comes twice."""
    seen = {(primary.provider, primary.model): "the primary model"}
    for at, one in enumerate(fallbacks):
        path: KeyPath = ("fallback_providers", at)
        if not one.provider or not one.model:
            lacks = "provider" if not one.provider else "model"
            explainer.say((*path, lacks), "missing", "provider and model", f"add {lacks}:")
        elif check_provider((*path, "provider"), one.provider, providers, explainer):
            before = seen.setdefault((one.provider, one.model), f"fallback number {at + 1}")
            if before != f"fallback number {at + 1}":
                explainer.say(
                    path,
                    f"the same provider and model as {before}",
                    "another provider or model",
                    "remove it: a fallback to the same target helps nothing",
                )


def fill_compression(
    section: CompressionConfig,
    primary: ModelChoice,
    providers: Mapping[str, ProviderConfig],
    explainer: Explainer,
) -> CompressionConfig:
    """The summarising model, which defaults to the primary one."""
    provider = section.provider or primary.provider
    if section.provider and not check_provider(("compression", "provider"), provider, providers, explainer):
        return section
    if provider != primary.provider and not section.model:
        explainer.say(("compression", "model"), "missing", "a model of compression.provider", "add model:")
    return section.model_copy(update={"provider": provider, "model": section.model or primary.model})


def check_transcription(
    section: TranscriptionConfig, providers: Mapping[str, ProviderConfig], explainer: Explainer
) -> None:
    """Its provider has an endpoint for recordings, and a model is named."""
    path: KeyPath = ("transcription", "provider")
    if not section.provider or not check_provider(path, section.provider, providers, explainer):
        return
    kind = providers[section.provider].kind
    if kind != "openai":
        explainer.say(
            path, f"a provider of kind {kind}, which has no transcription", "a provider of kind openai",
            "name another, or remove the section",
        )  # fmt: skip
    elif not section.model:
        explainer.say(("transcription", "model"), "missing", "a model for recordings", "add model:")


def check_provider(
    path: KeyPath, name: str, providers: Mapping[str, ProviderConfig], explainer: Explainer
) -> bool:
    """True when ``name`` is a usable provider; else there is a problem at ``path``."""
    if name not in providers:
        explainer.say(
            path,
            f"found {explainer.found(path)}, which is no provider of this file",
            ", ".join(map(show_key, providers)) + did_you_mean(name, providers),
            "define it under providers, or name another",
        )
        return False
    if not providers[name].enabled:
        explainer.say(
            path,
            "a provider that is disabled",
            ", ".join(show_key(n) for n, p in providers.items() if p.enabled),
            "enable it, or name another",
        )
        return False
    return True
