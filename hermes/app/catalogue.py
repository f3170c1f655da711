"""What can be configured: kinds of platforms and providers, their config models, and how each is made.

Config models import no SDK; a constructor imports its SDK when it is called, so only what the
configuration names is ever loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from pydantic import BaseModel

from hermes.config.adapters import PlatformConfig, ProviderConfig
from hermes.core.ports import Platform, Provider
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.telegram.config import TelegramConfig
from hermes.platforms.web.config import WebConfig
from hermes.providers.anthropic.config import AnthropicConfig
from hermes.providers.network import Network
from hermes.providers.openai.config import OpenaiConfig
from hermes.providers.rehearsal.config import RehearsalConfig

PLATFORM_MODELS: Mapping[str, type[BaseModel]] = {
    "telegram": TelegramConfig,
    "discord": DiscordConfig,
    "slack": SlackConfig,
    "web": WebConfig,
}
PROVIDER_MODELS: Mapping[str, type[BaseModel]] = {
    "openai": OpenaiConfig,
    "anthropic": AnthropicConfig,
    "rehearsal": RehearsalConfig,
}


@dataclass(frozen=True, slots=True)
class NotBuilt(Exception):
    """A platform that can be configured and not run here: its SDK is not installed."""

    name: str
    sdk: str

    def __str__(self) -> str:
        return (
            f"platforms.{self.name} is enabled, but {self.sdk} is not installed: "
            f"pip install 'hermes-gateway[{self.name}]', or set enabled: false"
        )


SDKS: Mapping[str, str] = {"discord": "discord", "slack": "slack_sdk"}
"""What is imported for a platform, where it is an extra of the package."""


def require_sdk(name: str) -> None:
    """Raises NotBuilt when an enabled platform's SDK is not installed; loads nothing."""
    sdk = SDKS.get(name)
    if sdk is not None and find_spec(sdk) is None:
        raise NotBuilt(name, sdk)


def make_platform(name: str, config: PlatformConfig, network: Network) -> Platform:
    """The adapter of one enabled platform."""
    match config:
        case TelegramConfig():
            from hermes.platforms.telegram.adapter import TelegramPlatform
            from hermes.platforms.telegram.webhook import Webhook

            hook = config.webhook
            return TelegramPlatform(
                config.token.get_secret_value(),
                base_url=config.base_url,
                poll_timeout=int(config.poll_timeout),
                connections=config.connections,
                connect_timeout=config.connect_timeout,
                read_timeout=config.read_timeout,
                resolver=network.resolver,
                proxy=network.proxy,
                webhook=Webhook(hook.url, hook.secret.get_secret_value()) if hook.url else None,
            )
        case DiscordConfig():
            from hermes.platforms.discord.create import create as create_discord

            return create_discord(config, resolver=network.resolver, proxy=network.proxy)
        case SlackConfig():
            from hermes.platforms.slack.create import create as create_slack

            return create_slack(config, resolver=network.resolver, proxy=network.proxy)
        case WebConfig():
            from hermes.platforms.web.adapter import WebPlatform

            return WebPlatform()
        case _:
            raise TypeError(f"no adapter for {type(config).__name__}, as in platforms.{name}")


def refresh_platform(platform: Platform, config: PlatformConfig) -> None:
    """Gives a running adapter the keys of its section that are read anew (R42)."""
    match config:
        case DiscordConfig():
            from hermes.platforms.discord.create import refresh as refresh_discord

            refresh_discord(platform, config)
        case SlackConfig():
            from hermes.platforms.slack.create import refresh as refresh_slack

            refresh_slack(platform, config)
        case _:
            pass


def make_provider(name: str, config: ProviderConfig, api_key: str, network: Network) -> Provider:
    """The adapter of one provider; ``api_key`` may be empty for a server that wants none."""
    match config:
        case OpenaiConfig():
            from hermes.providers.openai.create import create as create_openai

            return create_openai(name, config, api_key=api_key, network=network)
        case AnthropicConfig():
            from hermes.providers.anthropic.create import create as create_anthropic

            return create_anthropic(name, config, api_key=api_key, network=network)
        case RehearsalConfig():
            from hermes.providers.rehearsal.create import create as create_rehearsal

            return create_rehearsal(name, config)
        case _:
            raise TypeError(f"no adapter for {type(config).__name__}")
