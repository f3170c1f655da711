"""SIGHUP with another key, address or provider: the next call uses it, a call under way ends as it began (R42)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp.resolver import ThreadedResolver

from hermes.app.build import build
from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS
from hermes.app.figures import Figures
from hermes.app.parts import Gateway, Machine
from hermes.app.reloading import Reloader
from hermes.config.environment import Environment
from hermes.config.load import load_config
from hermes.core.governor import Circuit
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.clock import SystemClock
from hermes.runtime.metrics import Metrics
from hermes.runtime.offload import Offload
from hermes.runtime.supervisor import Supervisor
from hermes.simulators.answers import Answer
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.faults import ApiError
from hermes.simulators.openai import OpenAISimulator
from hermes.store.database import ThreadedDatabase
from hermes.store.home import take_ownership
from tests.wire.recovery.test_cancellation import turn

pytestmark = pytest.mark.wire


@dataclass
class Live:
    """A whole gateway in this loop, its reloader, and what the redactor was told."""

    folder: Path
    gateway: Gateway
    reloader: Reloader
    machine: Machine
    secrets: list[str] = field(default_factory=list)

    async def say(self, text: str) -> str:
        """One question; what stands on the page then."""
        await turn(self.gateway, "page", text)
        return (await self.gateway.door.recent("page", 1))[-1].text

    def reload(self, main: dict[str, Any], **more: Any) -> None:
        """Another file, then SIGHUP."""
        write(self.folder, main, **more)
        self.reloader.reload()


def write(folder: Path, main: dict[str, Any], **more: Any) -> Path:
    path = folder / "config.yaml"
    config = {
        "model": {"provider": "main", "model": "m"},
        "providers": {"main": {"kind": "openai", **main}, **more.pop("providers", {})},
        "agent": {"retry_base": 0.05, "retry_cap": 0.1, "api_max_retries": 0},
        **more,
    }
    path.write_text(json.dumps(config))
    return path


@asynccontextmanager
async def live(folder: Path, main: dict[str, Any]) -> AsyncIterator[Live]:
    """Until the block ends; nothing is left running."""
    path = write(folder, main)
    loaded = load_config(
        path, home=folder, environ={}, platform_models=PLATFORM_MODELS, provider_models=PROVIDER_MODELS
    )
    supervisor, offload, secrets = Supervisor("test", clock=SystemClock()), Offload(), list[str]()
    machine = Machine(
        folder, Environment.of({"HERMES_HOME": str(folder)}), SystemClock(), supervisor, offload,
        Network(ThreadedResolver()), Figures(Metrics()), None, Checkpoints(None), lambda: 0,
        lambda error: None, on_secret=secrets.append,
    )  # fmt: skip
    db = ThreadedDatabase(folder / "state.db")
    await db.open()
    try:
        db.generation = (await take_ownership(db, machine.clock.now())).generation
        gateway = build(loaded.config, db, machine)
        supervisor.spawn_forever(gateway.dispatch.run, "triage")
        yield Live(folder, gateway, Reloader(gateway, machine, loaded), machine, secrets)
        for provider in gateway.providers.values():
            await provider.aclose()
    finally:
        await db.aclose()
        assert await supervisor.aclose(2.0) == []
        offload.close()


async def test_other_keys_are_used_by_the_next_call(tmp_path: Path) -> None:
    first = {"api_key": "sk-first-key-000"}
    async with (
        OpenAISimulator(api_key="sk-second-key-00") as sim,
        live(tmp_path, {"base_url": sim.base_url, **first}) as it,
    ):
        assert "refused the credential" in await it.say("one")
        it.reload({"base_url": sim.base_url, "api_keys": ["sk-first-key-000", "sk-second-key-00"]})
        assert (await it.say("two")).endswith("two")
        assert len(it.gateway.runner.pipeline.repairs.pools["main"]) == 2
        assert "sk-second-key-00" in it.secrets, "the log knows it before anybody can print it"
        keys = [sim.dialect.key(request.headers) for request in sim.requests]
        assert keys == ["sk-first-key-000", "sk-first-key-000", "sk-second-key-00"]


async def test_a_pool_whose_configuration_did_not_change_keeps_what_it_knows(tmp_path: Path) -> None:
    keys = {"api_keys": ["sk-first-key-000", "sk-second-key-00"]}
    async with (
        OpenAISimulator(api_key="sk-second-key-00") as sim,
        live(tmp_path, {"base_url": sim.base_url, **keys}) as it,
    ):
        assert await it.say("one") == "You said: one"
        pool, provider = it.gateway.runner.pipeline.repairs.pools["main"], it.gateway.providers["main"]
        it.reload({"base_url": sim.base_url, **keys, "requests_per_minute": 600})
        assert it.gateway.runner.pipeline.repairs.pools["main"] is pool
        assert it.gateway.providers["main"] is provider
        assert await it.say("two") == "You said: two"
        assert len(sim.requests) == 3, "the key that rests is not asked again"


async def test_a_call_under_way_ends_at_the_old_address_and_the_next_goes_to_the_new(tmp_path: Path) -> None:
    async with OpenAISimulator() as old, AnthropicSimulator() as new, live(tmp_path, {"base_url": old.base_url}) as it:
        old.script(Answer("From the old one.", pieces=10, gap=0.05))
        asked = asyncio.get_running_loop().create_task(it.say("one"))
        await old.wait_for(lambda: bool(old.active))
        was = it.gateway.providers["main"]
        it.reload({"kind": "anthropic", "base_url": new.base_url})
        assert it.gateway.providers["main"] is not was
        assert await asked == "From the old one."
        assert await it.say("two") == "You said: two"
        assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_a_fallback_that_is_added_answers_and_what_the_old_address_taught_is_forgotten(
    tmp_path: Path,
) -> None:
    async with OpenAISimulator() as sim, OpenAISimulator() as spare:
        sim.faults.add(ApiError(503, "Service unavailable"), times=None)
        async with live(tmp_path, {"base_url": sim.base_url}) as it:
            await turn(it.gateway, "first", "hello")
            assert it.gateway.governor.views()["main/m"].circuit is not Circuit.CLOSED
            more = {
                "providers": {"spare": {"kind": "openai", "base_url": spare.base_url}},
                "fallback_providers": [{"provider": "spare", "model": "m"}],
            }
            it.reload({"base_url": sim.base_url}, **more)
            assert await it.say("one") == "You said: one"
            assert len(spare.requests) == 1
            sim.faults.clear()
            it.reload({"base_url": sim.base_url + "/", "connect_timeout": 5}, **more)
            assert it.gateway.governor.views()["main/m"].circuit is Circuit.CLOSED
            assert await it.say("two") == "You said: two"
            assert len(spare.requests) == 1


async def test_a_key_that_cannot_be_had_changes_nothing(tmp_path: Path) -> None:
    async with OpenAISimulator() as sim, live(tmp_path, {"base_url": sim.base_url}) as it:
        before = it.gateway.config
        it.reload({"base_url": sim.base_url, "credential": {"kind": "env", "name": "NO_SUCH_VARIABLE"}})
        assert it.gateway.config is before
        assert await it.say("one") == "You said: one"
