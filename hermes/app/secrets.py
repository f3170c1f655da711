"""Where keys come from, and that each is known to the redactor before anybody can log it (R40)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

from pydantic import BaseModel, SecretStr

from hermes.config.adapters import (
    CommandCredential,
    EnvCredential,
    FileCredential,
    KeyedProviderConfig,
    OauthCredential,
    ProviderConfig,
)
from hermes.core.errors import HermesError


class NoCredential(HermesError):
    """A configured credential cannot be had now; the text names the key to edit."""


def secrets_in(model: object) -> Iterator[str]:
    """Every secret value anywhere in a configuration object; of a bot's token also the half that is secret."""
    if isinstance(model, SecretStr):
        value = model.get_secret_value()
        if value:
            yield value
        number, colon, secret = value.partition(":")
        if colon and number.isdigit():
            yield secret
    elif isinstance(model, BaseModel):
        for name in type(model).model_fields:
            yield from secrets_in(getattr(model, name))
    elif isinstance(model, Mapping):
        for value in model.values():
            yield from secrets_in(value)
    elif isinstance(model, tuple | list):
        for value in model:
            yield from secrets_in(value)


def api_key(name: str, config: ProviderConfig, environ: Mapping[str, str]) -> str:
    """The key a provider begins with; empty where none is configured. Raises NoCredential."""
    if not isinstance(config, KeyedProviderConfig):
        return ""
    match config.credential:
        case None:
            pass
        case EnvCredential(name=variable):
            value = environ.get(variable, "")
            if not value:
                raise NoCredential(f"providers.{name}.credential: the variable {variable} is not set")
            return value
        case FileCredential(path=path):
            try:
                return Path(path).expanduser().read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise NoCredential(f"providers.{name}.credential: {path} cannot be read: {error}") from None
        case CommandCredential() | OauthCredential():
            return ""  # fetched when the first call wants it
        case other:
            assert_never(other)
    if config.api_keys:
        return config.api_keys[0].get_secret_value()
    return config.api_key.get_secret_value()
