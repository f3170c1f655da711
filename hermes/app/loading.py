"""What ``run`` would run with: the configuration, and whether this version can carry it out.

Apart from ``process`` so that a short command does not load the whole gateway.
"""

from __future__ import annotations

from pathlib import Path

from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS, require_sdk
from hermes.app.secrets import api_key
from hermes.config.environment import Environment
from hermes.config.load import Loaded, load_config


def load(environment: Environment, config_path: Path | None) -> Loaded:
    """What ``run`` would run with; raises ConfigError with all problems. ``check`` is exactly this."""
    loaded = load_config(
        config_path,
        home=environment.home,
        environ=environment.variables,
        platform_models=PLATFORM_MODELS,
        provider_models=PROVIDER_MODELS,
        problems=environment.problems,
    )
    config = loaded.config
    for name, platform in config.platforms.items():
        if platform.enabled:
            require_sdk(name)
    named = {config.model.provider, *(f.provider for f in config.fallback_providers)}
    for name in sorted(named):
        api_key(name, config.providers[name], environment.variables)
    return loaded
