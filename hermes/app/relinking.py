"""Providers at a reload: those whose configuration changed are made anew, keys and connections (R42)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from hermes.agent.credentials import CredentialPool
from hermes.app.backends import key_names
from hermes.app.catalogue import make_provider
from hermes.app.credentials import CredentialFile, make_pool
from hermes.app.parts import Gateway, Machine
from hermes.app.secrets import api_key, secrets_in
from hermes.app.settings import provider_names
from hermes.config.adapters import KeyedProviderConfig
from hermes.config.model import Config
from hermes.config.reload import diff
from hermes.core.ports import Provider


@dataclass(frozen=True, slots=True)
class Relinked:
    """What takes the place of the old: all providers that targets name, and the pools of those that have keys.

    ``made``: names of the new ones; ``over``: whom nobody asks any more once the calls under way have ended.
    """

    providers: dict[str, Provider]
    pools: dict[str, CredentialPool]
    made: tuple[str, ...]
    over: tuple[Provider, ...]


def relink(
    gateway: Gateway, machine: Machine, config: Config, before: Mapping[str, str], environ: Mapping[str, str]
) -> Relinked:
    """Makes what changed and changes nothing yet. ``before`` and ``environ`` are the variables then and now.

    Raises NoCredential, NotBuilt.
    """
    for secret in secrets_in(config):
        machine.on_secret(secret)
    named = provider_names(config)
    changed = {name for section, name in diff(gateway.config, config).links if section == "providers"}
    changed |= {name for name in named if _other_variables(config, name, before, environ)}
    file = CredentialFile(machine.home, machine.offload)
    pools_now = gateway.runner.pipeline.repairs.pools
    providers: dict[str, Provider] = {}
    pools: dict[str, CredentialPool] = {}
    made = []
    for name in named:
        old = gateway.providers.get(name)
        if old is not None and name not in changed:
            providers[name] = old
            if name in pools_now:
                pools[name] = pools_now[name]
            continue
        section = config.providers[name]
        providers[name] = make_provider(name, section, api_key(name, section, environ), machine.network)
        pool = make_pool(name, section, machine, file, environ)
        if pool is not None:
            pools[name] = pool
        made.append(name)
    over = tuple(old for name, old in gateway.providers.items() if providers.get(name) is not old)
    return Relinked(providers, pools, tuple(made), over)


def _other_variables(
    config: Config, name: str, before: Mapping[str, str], environ: Mapping[str, str]
) -> bool:
    """A key that a variable gives may be another one though the file says the same."""
    section = config.providers[name]
    return isinstance(section, KeyedProviderConfig) and key_names(section, before) != key_names(section, environ)


async def close_after_use(gateway: Gateway, over: tuple[Provider, ...]) -> None:
    """Turns under way keep what they began with; when they have ended the old connections are closed."""
    tasks = [running.task for running in gateway.lane.running.values() if running.task is not None]
    try:
        if tasks:
            await asyncio.wait(tasks)
    finally:
        for provider in over:
            await provider.aclose()
