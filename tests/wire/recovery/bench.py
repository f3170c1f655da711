"""The real pipeline and the real SDK adapters in front of a simulator, for one question at a time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from hermes.agent.pipeline import Pipeline, with_policy
from hermes.agent.targets import Answered, Ask, GaveUp, Parked, Target, UpstreamBook
from hermes.core.ports import Provider
from hermes.core.transcript import AssistantItem, Item, UserItem
from hermes.policy.recovery import RecoveryPolicy
from hermes.providers.anthropic import create as anthropic_kind
from hermes.providers.openai import create as openai_kind
from hermes.runtime.clock import SystemClock
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from tests.wire.providers.dialects import Settings

RETRIES = 2
QUICK = RecoveryPolicy(targets=(), retries=RETRIES, base=0.02, cap=0.05, retry_after_cap=2.0)
DIALECTS = ("openai", "anthropic")


@dataclass
class Screen:
    """What a person who looks on sees."""

    text: str = ""
    restarts: int = 0
    notices: list[str] = field(default_factory=list)

    def on_text(self, text: str) -> None:
        self.text += text

    def on_restart(self) -> None:
        self.text = ""
        self.restarts += 1

    def on_notice(self, kind: str, text: str) -> None:
        self.notices.append(kind)

    def on_tool(self, name: str, phase: str) -> None:
        """Tools are not offered here."""

    async def settle(self) -> None:
        """There are no drafts here."""


@dataclass
class Bench:
    """One simulator, one pipeline."""

    sim: ModelSimulator
    pipeline: Pipeline
    screen: Screen = field(default_factory=Screen)

    async def ask(self, text: str = "«hello»", history: Sequence[Item] = ()) -> Answered | GaveUp | Parked:
        """One question; what came of it."""
        self.screen = Screen()
        ask = Ask("Be brief.", (*history, UserItem(text)), ())
        return await self.pipeline.call(ask, self.screen, SystemClock().monotonic() + 60)

    async def answer(self, text: str = "«hello»", history: Sequence[Item] = ()) -> str:
        """The answer's text; fails when there was none."""
        end = await self.ask(text, history)
        assert isinstance(end, Answered), end
        assert self.screen.text == end.reply.text, "the screen shows the answer once"
        return end.reply.text

    async def sentence(self, text: str = "«hello»", history: Sequence[Item] = ()) -> str:
        """The sentence in place of an answer."""
        end = await self.ask(text, history)
        assert isinstance(end, GaveUp), end
        return end.sentence


HISTORY = tuple(
    item for n in range(30) for item in (UserItem(f"question {n} " * 20), AssistantItem(f"answer {n} " * 20))
)
"""A conversation that can be made shorter."""


def provider(dialect: str, url: str, **settings: float) -> Provider:
    """The real adapter."""
    limits = {"first_byte_timeout": 10.0, "stall_timeout": 10.0, "total_timeout": 20.0, **settings}
    if dialect == "openai":
        return openai_kind.create("main", replace(Settings(url), **limits), api_key="sk-test")
    return anthropic_kind.create("main", replace(Settings(url), **limits), api_key="sk-test")


def pipeline_of(
    adapter: Provider, policy: RecoveryPolicy = QUICK, model: str = "some-model", **target: int
) -> Pipeline:
    """The real pipeline with one target."""
    targets = (Target(adapter, model, **target),)
    return Pipeline(
        targets,
        with_policy(policy, targets),
        SystemClock(),
        random.Random(1).random,
        upstreams=UpstreamBook(),
    )


@asynccontextmanager
async def bench(dialect: str, policy: RecoveryPolicy = QUICK, **settings: float) -> AsyncIterator[Bench]:
    """Simulator, adapter and pipeline; all closed at the end."""
    simulator = OpenAISimulator if dialect == "openai" else AnthropicSimulator
    async with simulator() as sim:
        adapter = provider(dialect, sim.base_url, **settings)
        try:
            yield Bench(sim, pipeline_of(adapter, policy, max_output=8000))
        finally:
            await adapter.aclose()
