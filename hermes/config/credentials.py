"""Credentials that are fetched: what can be known about them before the first call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes.config.adapters import EnvCredential, FileCredential, KeyedProviderConfig, ProviderConfig
from hermes.config.display import show_key
from hermes.config.expand import KeyPath, locate, read_secret
from hermes.config.explain import Explainer


def settle_credentials(
    providers: Mapping[str, ProviderConfig], environ: Mapping[str, str], folder: Path, explainer: Explainer
) -> dict[str, ProviderConfig]:
    """The providers with file credentials named by full paths; what is missing becomes a problem.

    Disabled providers are left alone. ``folder``: what relative paths are relative to.
    """
    settled: dict[str, ProviderConfig] = {}
    for name, one in providers.items():
        settled[name] = one
        if not isinstance(one, KeyedProviderConfig) or not one.enabled:
            continue
        path: KeyPath = ("providers", name, "credential")
        credential = one.credential
        if isinstance(credential, EnvCredential) and credential.name and not environ.get(credential.name):
            explainer.say(
                (*path, "name"),
                f"variable {show_key(credential.name)} is not set",
                "a variable that is set",
                f"set {show_key(credential.name)} (the file .env in HERMES_HOME will do)",
            )
        elif isinstance(credential, FileCredential) and credential.path:
            file = locate(credential.path, folder, environ)
            if problem := _unusable(file):
                explainer.say(
                    (*path, "path"), problem, "a readable file with the secret", "create it, mode 0600"
                )
            moved = credential.model_copy(update={"path": str(file)})
            settled[name] = one.model_copy(update={"credential": moved})
    return settled


def _unusable(file: Path) -> str:
    try:
        read_secret(file)
    except OSError as error:
        return f"the file cannot be used: {error.strerror}"
    except ValueError as error:
        return f"the file cannot be used: {error}"
    return ""
