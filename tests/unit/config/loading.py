"""What the tests of the configuration share: the real adapters' models, and a file to load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from hermes.config.errors import ConfigError, Problem
from hermes.config.load import Loaded, load_config
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.telegram.config import TelegramConfig
from hermes.platforms.web.config import WebConfig
from hermes.providers.anthropic.config import AnthropicConfig
from hermes.providers.openai.config import OpenaiConfig
from hermes.providers.rehearsal.config import RehearsalConfig

PLATFORMS: dict[str, type[BaseModel]] = {
    "telegram": TelegramConfig,
    "discord": DiscordConfig,
    "slack": SlackConfig,
    "web": WebConfig,
}
PROVIDERS: dict[str, type[BaseModel]] = {
    "openai": OpenaiConfig,
    "anthropic": AnthropicConfig,
    "rehearsal": RehearsalConfig,
}
TOKEN = "424242:AAFakeTokenForTestsOnly0000000000"


def load_file(path: Path | None, home: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    return load_config(
        path, home=home, environ=environ or {}, platform_models=PLATFORMS, provider_models=PROVIDERS
    )


def load_text(text: str | bytes, home: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    """Loads ``text`` as the home's config.yaml."""
    raw = text if isinstance(text, bytes) else text.encode()
    (home / "config.yaml").write_bytes(raw)
    return load_file(None, home, environ)


def problems_of(
    text: str | bytes, home: Path, environ: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """The problems of ``text``; none when it loads."""
    try:
        load_text(text, home, environ)
    except ConfigError as error:
        return error.problems
    return ()
