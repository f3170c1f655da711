"""A turn cancelled at sampled awaits on the wire: back within 100 ms, and no socket or transaction is left."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from aiohttp.resolver import ThreadedResolver

from hermes.app.build import build
from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS
from hermes.app.figures import Figures
from hermes.app.parts import Gateway, Machine
from hermes.config.environment import Environment
from hermes.config.load import load_config
from hermes.core.door import LiveKind
from hermes.core.records import TurnCause
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.clock import SystemClock
from hermes.runtime.metrics import Metrics
from hermes.runtime.offload import Offload
from hermes.runtime.supervisor import Supervisor
from hermes.simulators.answers import Answer, ToolCall
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.faults import CutStream
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from hermes.store.database import ThreadedDatabase
from hermes.store.home import take_ownership
from tests.stepping import TURN, Stepped, stop_at
from tests.wire.recovery.bench import DIALECTS

pytestmark = pytest.mark.wire

SAMPLES = 60
"""For each dialect."""
BACK_WITHIN = 0.1


@asynccontextmanager
async def running(folder: Path, sim: ModelSimulator, dialect: str) -> AsyncIterator[Gateway]:
    """A whole gateway in this loop: real store, real adapter; its only platform is the page."""
    path = folder / "config.yaml"
    provider = {"kind": dialect, "base_url": getattr(sim, "base_url", ""), "api_key": "sk-test"}
    config = {
        "model": {"provider": "main", "model": "m"},
        "providers": {"main": provider},
        "agent": {"retry_base": 0.05, "retry_cap": 0.1},
    }
    path.write_text(json.dumps(config))
    loaded = load_config(
        path, home=folder, environ={}, platform_models=PLATFORM_MODELS, provider_models=PROVIDER_MODELS
    )
    crashes: list[str] = []
    supervisor = Supervisor("test", clock=SystemClock(), on_crash=lambda name, error: crashes.append(name))
    offload = Offload()
    machine = Machine(
        folder, Environment.of({"HERMES_HOME": str(folder)}), SystemClock(), supervisor, offload,
        Network(ThreadedResolver()), Figures(Metrics()), None, Checkpoints(None), lambda: 0,
        lambda error: crashes.append(repr(error)),
    )  # fmt: skip
    db = ThreadedDatabase(folder / "state.db")
    await db.open()
    try:
        db.generation = (await take_ownership(db, machine.clock.now())).generation
        gateway = build(loaded.config, db, machine)
        supervisor.spawn_forever(gateway.dispatch.run, "triage")
        yield gateway
        for provider_ in gateway.providers.values():
            await provider_.aclose()
    finally:
        await db.aclose()
        assert await supervisor.aclose(2.0) == []
        offload.close()
    assert crashes == []


async def turn(gateway: Gateway, chat: str, text: str) -> None:
    """Says something on the page and waits until its turn has ended, whatever its end."""
    async with gateway.door.subscribe(chat) as reader, asyncio.timeout(20):
        await gateway.door.say(chat, f"{chat}-{text}", text)
        while (await reader.next()).kind is not LiveKind.TURN_ENDED:
            continue


def play(sim: ModelSimulator) -> None:
    """A tool call, a stream that breaks, a streamed answer."""
    sim.scripted.clear()
    call = ToolCall("call_1", "session_search", '{"query": "tea"}')
    sim.script(Answer("Let me look.", (call,)), CutStream(after=2), Answer("All of it.", pieces=6, gap=0.01))


def sockets(sim: ModelSimulator) -> int:
    """Our ends of connections to the simulator."""
    port = int(sim.url.rpartition(":")[2])
    found = psutil.Process(os.getpid()).net_connections(kind="tcp")
    return sum(1 for c in found if c.raddr and c.raddr.port == port and c.status == psutil.CONN_ESTABLISHED)


async def cancelled(gateway: Gateway, sim: ModelSimulator, chat: str, at: int) -> tuple[Stepped, float]:
    """One turn that is cancelled at its n-th await; how long its task took to end (0: it was not reached)."""
    loop = asyncio.get_running_loop()
    took: list[float] = []

    def stop() -> None:
        [found] = gateway.lane.running.values()
        assert found.task is not None
        begun = loop.time()
        found.task.add_done_callback(lambda task: took.append(loop.time() - begun))
        found.cancel(TurnCause.STOP)

    play(sim)
    steps = stop_at(loop, TURN, at, stop)
    try:
        await turn(gateway, chat, "first")
    finally:
        loop.set_task_factory(None)
    return steps[0], took[0] if took else 0.0


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_turn_cancelled_at_sampled_awaits_is_back_at_once_and_leaves_nothing_open(
    tmp_path: Path, dialect: str, rng: random.Random
) -> None:
    simulator = OpenAISimulator if dialect == "openai" else AnthropicSimulator
    ends: Counter[str] = Counter()
    slow = []
    async with simulator() as sim, running(tmp_path, sim, dialect) as gateway:
        await cancelled(gateway, sim, "warm", 10_000)  # what only a first turn waits for is no moment of the others
        whole, _ = await cancelled(gateway, sim, "whole", 10_000)
        assert whole.awaits > 10
        samples = [rng.randint(1, whole.awaits) for _ in range(SAMPLES)]
        for number, at in enumerate(samples):
            chat = f"chat{number}"
            _, seconds = await cancelled(gateway, sim, chat, at)
            if seconds > BACK_WITHIN:
                slow.append((at, seconds))
            assert not gateway.lane.running
            await sim.wait_for(lambda: not sim.active)
            assert sockets(sim) <= 1, f"await {at}: only an idle connection may be kept"
            assert not gateway.db._writer.in_transaction
            assert not await gateway.db.read(lambda conn: conn.in_transaction)
            sim.scripted.clear()
            await turn(gateway, chat, "next")
        rows = await gateway.db.read(lambda conn: conn.execute("SELECT outcome FROM inbox").fetchall())
        ends.update(outcome for (outcome,) in rows)
        unfinished = "SELECT count(*) FROM turns WHERE state<>'done'"
        assert await gateway.db.read(lambda conn: conn.execute(unfinished).fetchone()) == (0,)
    assert len(slow) <= 1, f"an await that is slow is slow again; a busy machine is slow once: {slow}"
    assert ends["stopped"] > SAMPLES * 0.7
    assert ends["answered"] >= SAMPLES + 1, "every next message was answered"
    assert set(ends) == {"stopped", "answered"}
