"""What the configuration says of who stands behind a target, for the planner: nothing is fetched or connected."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import assert_never

from hermes.agent.credentials import ident_of
from hermes.config.adapters import (
    CommandCredential,
    EnvCredential,
    FileCredential,
    KeyedProviderConfig,
    OauthCredential,
    ProviderConfig,
)
from hermes.config.model import Config
from hermes.policy.backends import Backend, plain_address
from hermes.policy.cures import Repair, key_limits
from hermes.policy.recovery import RecoveryTarget


def recovery_targets(config: Config, environ: Mapping[str, str]) -> tuple[RecoveryTarget, ...]:
    """The primary, then the fallbacks, as the planner sees them."""
    found = []
    for choice in (config.model, *config.fallback_providers):
        provider = config.providers[choice.provider]
        spec = provider.models.get(choice.model)
        output = spec.max_output if spec is not None and "max_output" in spec.model_fields_set else None
        found.append(
            RecoveryTarget(
                f"{choice.provider}/{choice.model}",
                spec.context_window if spec is not None else None,
                output,
                backend_of(choice.provider, provider, choice.model, environ),
            )
        )
    return tuple(found)


def backend_of(name: str, config: ProviderConfig, model: str, environ: Mapping[str, str]) -> Backend:
    """Who answers for a model of this provider."""
    if not isinstance(config, KeyedProviderConfig):
        return Backend(config.kind, name, model)  # it answers in this process: each one is itself
    address = plain_address(str(getattr(config, "base_url", "") or name))
    return Backend(config.kind, address, model, key_names(config, environ), _fetched(config))


def repair_limits(config: Config, environ: Mapping[str, str]) -> dict[Repair, int]:
    """How often keys may be turned to and fetched anew in one call, by what is configured."""
    names = {config.model.provider, *(f.provider for f in config.fallback_providers)}
    keyed = [p for p in (config.providers[n] for n in sorted(names)) if isinstance(p, KeyedProviderConfig)]
    return key_limits((len(key_names(p, environ)), _fetched(p)) for p in keyed)


def key_names(config: KeyedProviderConfig, environ: Mapping[str, str]) -> frozenset[str]:
    """A name for each of a provider's keys that does not give it away and outlives a restart."""
    match config.credential:
        case None:
            keys: Iterable[str] = (key.get_secret_value() for key in config.api_keys or (config.api_key,))
        case EnvCredential(name=variable):
            keys = (environ.get(variable, ""),)
        case FileCredential(path=path):
            return frozenset({file_name(path)})
        case CommandCredential(command=command):
            return frozenset({command_name(command)})
        case OauthCredential() as grant:
            return frozenset({grant_name(grant)})
        case other:
            assert_never(other)
    return frozenset(ident_of(key) for key in keys if key)


def file_name(path: str) -> str:
    """The name of a key that a file holds."""
    return _hashed(f"file:{path}")


def command_name(command: Iterable[str]) -> str:
    """The name of a key that a program prints."""
    return _hashed(f"command:{list(command)}")


def grant_name(grant: OauthCredential) -> str:
    """The name of a key that a refresh token buys."""
    return _hashed("\0".join((grant.token_url, grant.client_id, grant.refresh_token.get_secret_value())))


def _fetched(config: KeyedProviderConfig) -> bool:
    return config.credential is not None and not isinstance(config.credential, EnvCredential)


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
