"""The whole gateway in virtual time: real ingest, dispatch, turns, store and courier; the outside is scripted.

    def test_a_cut_stream_is_retried_and_the_user_sees_one_answer():
        world = World(model=[cut_after(3), answer("hello")])
        world.say("hi")
        assert world.run().heard() == ["hello"]
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp.resolver import ThreadedResolver

from hermes.app.build import build
from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS
from hermes.app.figures import Figures
from hermes.app.parts import Gateway, Machine
from hermes.app.run import housekeeping
from hermes.config.environment import Environment
from hermes.config.load import load_config
from hermes.core.ports import Tool
from hermes.core.records import TurnCause
from hermes.gateway.platform_book import PlatformBook
from hermes.platforms.web.adapter import WebPlatform
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.metrics import Metrics
from hermes.runtime.offload import Offload
from hermes.runtime.supervisor import Supervisor
from hermes.runtime.virtual import VirtualClock, VirtualLoop
from hermes.store.database import InlineDatabase
from hermes.store.home import note_clean_end, take_ownership
from tests.simulation.outside import ChatServer, ScriptedModel, SimPlatform

START = 1_800_000_000.0
"""Unix time of a world's beginning."""


_GRAVEYARD: list[asyncio.Task[Any]] = []
"""Tasks of killed processes: kept, so that collecting them never runs their handlers."""


class InlineOffload(Offload):
    """Blocking calls run where they are made: a simulation has no threads (R28)."""

    async def run(
        self, pool: str, fn: Callable[..., Any], *args: object, timeout: float | None = None  # noqa: ASYNC109
    ) -> Any:
        return fn(*args)


class SimulatedKill(KeyboardInterrupt):
    """kill -9: leaves the loop at once, runs no handler of ours."""


class SimCheckpoints(Checkpoints):
    """Kills at the n-th reach of a point; counts every point."""

    def __init__(self) -> None:
        super().__init__(None)
        self.at: str | None = None
        self.after = 1
        self.seen: dict[str, int] = {}

    def reach(self, name: str) -> None:
        self.seen[name] = self.seen.get(name, 0) + 1
        if name == self.at:
            self.after -= 1
            if self.after <= 0:
                self.at = None
                raise SimulatedKill(name)


class World:
    """One gateway, its disk, a chat server and a model. ``settings`` go over the configuration."""

    def __init__(
        self,
        tmp: Path,
        model: Sequence[Any] = (),
        *,
        spare: Sequence[Any] | None = None,
        settings: dict[str, Any] | None = None,
        tools: Sequence[Tool] = (),
        seed: int = 1,
    ) -> None:
        self._tmp = tmp
        self.disk = InlineDatabase()
        self.server = ChatServer(now=lambda: START + self.now())
        self.model = ScriptedModel(model)
        self.spare = ScriptedModel(spare, name="spare") if spare is not None else None
        self.random = random.Random(seed)
        self.checkpoints = SimCheckpoints()
        self.kills = 0
        self._tools = tools
        self.time_before = 0.0
        self.crashes: list[str] = []
        self._runner: asyncio.Runner | None = None
        self._config = self._load(settings or {})
        self.gateway: Gateway | None = None

    def _load(self, settings: dict[str, Any]) -> Any:
        models = {"m": {"context_window": 100_000}}
        raw: dict[str, Any] = {
            "model": {"provider": "sim", "model": "m"},
            "providers": {"sim": {"kind": "openai", "base_url": "http://sim.invalid/v1", "models": models}},
            "platforms": {"telegram": {"enabled": True, "token": "1:abcdefgh", "allowed_users": ["7", "8", "9"]}},
            **settings,
        }
        if self.spare is not None:
            raw["providers"].setdefault("spare", {"kind": "openai", "base_url": "http://spare.invalid/v1"})
            raw["fallback_providers"] = [{"provider": "spare", "model": "m"}]
        path = self._tmp / "config.yaml"
        path.write_text(json.dumps(raw))
        loaded = load_config(
            path, home=self._tmp, environ={}, platform_models=PLATFORM_MODELS, provider_models=PROVIDER_MODELS
        )
        return loaded.config

    # ---- acts ----

    def say(self, text: str, chat: str = "7", **more: Any) -> str:
        """A person writes; works while the gateway is down too."""
        return self.server.say(chat, text, **more)

    def run(self, seconds: float = 60.0) -> World:
        """Lets virtual time pass; starts the gateway if none runs; a kill ends it early and starts another."""
        until = self.now() + seconds
        while self.now() < until:
            try:
                self._in_loop(asyncio.sleep(max(0.0, until - self.now())))
            except SimulatedKill:
                self.kills += 1
                self._drop()
        return self

    def stop(self, drain: float = 30.0) -> World:
        """An orderly stop: drain, release, clean end."""
        self._in_loop(self._stop(drain))
        self._drop()
        return self

    def kill(self) -> World:
        """kill -9 now."""
        self.kills += 1
        self._drop()
        return self

    def close(self) -> None:
        """Ends the world; the disk stays readable."""
        self._drop()

    # ---- looks ----

    def now(self) -> float:
        """Virtual seconds since the world began; time goes on while the gateway is down."""
        loop = self._runner.get_loop() if self._runner is not None else None
        return self.time_before + (loop.time() if loop is not None else 0.0)

    def heard(self, chat: str = "7") -> list[str]:
        """What stands in the chat from us."""
        return self.server.texts(chat)

    def outcomes(self) -> list[tuple[str, str]]:
        """(text, outcome) of every accepted row, in order; '' while it has none."""
        found = self.disk.conn.execute("SELECT raw, outcome FROM inbox ORDER BY id").fetchall()
        return [(json.loads(raw).get("text", ""), outcome or "") for raw, outcome in found]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Any look at the disk."""
        return self.disk.conn.execute(sql).fetchall()

    # ---- inside ----

    def _in_loop(self, coro: Any) -> None:
        if self._runner is None:
            start = START + self.time_before
            self._runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(start))
            self.server.arrived = asyncio.Event()
            try:
                self._runner.run(self._start())
            except SimulatedKill:
                coro.close()  # killed while it started
                raise
        self._runner.run(coro)

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = VirtualClock(loop)
        supervisor = Supervisor("sim", clock=clock, on_crash=lambda n, e: self.crashes.append(f"{n}: {e!r}"))
        machine = Machine(
            self._tmp, Environment.of({"HERMES_HOME": str(self._tmp)}), clock, supervisor, InlineOffload(),
            Network(ThreadedResolver()), Figures(Metrics()), None, self.checkpoints, lambda: 0,
            lambda e: self.crashes.append(f"escalated {e!r}"), self.random.random,
        )  # fmt: skip
        owned = await take_ownership(self.disk, clock.now())
        self.disk.generation = owned.generation
        providers = {"sim": self.model} | ({"spare": self.spare} if self.spare is not None else {})
        book = PlatformBook([WebPlatform(), SimPlatform(self.server)])
        g = self.gateway = build(
            self._config, self.disk, machine, platforms=book, providers=dict(providers), more_tools=self._tools
        )
        await g.pacer.load()
        await g.questions.load()
        await g.people.load()
        await g.homes.load()
        await g.outages.load(g.governor.load)
        await g.outbox.recover(self._config.gateway.delivery.uncertain.value, clock.now())
        supervisor.spawn_forever(g.dispatch.run, "triage")
        supervisor.spawn_forever(housekeeping(g, machine), "housekeeping")
        supervisor.spawn_forever(g.outages.run, "outages")
        g.links.start()
        g.dispatch.settings.ready_at = clock.now()
        await g.dispatch.recover()
        g.courier.offer(await g.outbox.pending())

    async def _stop(self, drain: float) -> None:
        g = self.gateway
        assert g is not None
        await g.links.stop()
        g.outages.stopped = True
        g.dispatch.stop_intake()
        await g.dispatch.lanes.drain(drain)
        g.lane.cancel_all(TurnCause.SHUTDOWN)
        await g.dispatch.lanes.drain(2.0)
        await g.courier.drain(3.0)
        g.courier.stop()
        await note_clean_end(self.disk)

    def _drop(self) -> None:
        """The process is gone: its tasks never run again and none of their handlers either."""
        if self._runner is None:
            return
        self.time_before = self.now()
        loop = self._runner.get_loop()
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # a killed process logs nothing
            _GRAVEYARD.append(task)
        self._runner = None
        self.gateway = None
        self.server.arrived = asyncio.Event()  # the old one's waiter died with its process
        loop.close()
