"""Whatever happens to a conversation, no request is refused for its form and what is stored stays legal (promise 6).

A machine talks, steers, stops, edits, kills and waits at random; every request that a model gets is rendered in both
dialects and judged by the strict simulators, which share no code with us.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolSpec, load_item
from hermes.policy.history import problems
from hermes.providers.anthropic.translate import render as render_anthropic
from hermes.providers.openai.translate import render as render_openai
from hermes.simulators.anthropic import AnthropicDialect
from hermes.simulators.openai import OpenAIDialect
from tests.simulation.outside import Answer, Calls, Fails, cut_after, status
from tests.simulation.world import World

pytestmark = pytest.mark.simulation

OVERFLOW = (
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens."
)
CALLS = st.lists(
    st.sampled_from(
        [
            ("session_search", {"query": "tea"}),
            ("look_up", {"word": "tea"}),
            ("pay", {"amount": 3}),
            ("no_such_tool", {"x": 1}),
            ("clarify", {"question": "Which one?", "options": ["a", "b"]}),
        ]
    ),
    min_size=1,
    max_size=4,
)
PLAYS = st.one_of(
    st.builds(Answer, st.sampled_from(["fine", "a longer answer " * 40]), st.sampled_from([0.2, 3.0])),
    CALLS.map(lambda calls: Calls(tuple(calls), 0.5)),
    st.just(cut_after(2)),
    st.just(status(500)),
    st.just(status(400, OVERFLOW)),
    st.just(status(429, "slow down", retry_after="3")),
)
POINTS = [
    "after_claim", "after_step_intent", "after_step_result", "after_tool_intent", "after_tool_effect",
    "after_tool_result", "before_t2", "after_t2", "after_t1",
]  # fmt: skip


class Slow:
    """A tool that takes a while."""

    def __init__(self, name: str, effect: ToolEffect) -> None:
        self.spec = ToolSpec(name, "Takes a while.", {"type": "object", "properties": {}})
        self.effect = effect

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        await asyncio.sleep(0.4)
        return f"{self.spec.name} is done: {dict(arguments)}"


class Conversation(RuleBasedStateMachine):
    """One chat, one model, any order of events."""

    @initialize(
        mode=st.sampled_from(["queue", "steer", "interrupt"]), window=st.sampled_from([2_000, 100_000])
    )
    def begin(self, mode: str, window: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        model = {"m": {"context_window": window, "max_output": 256}}
        self.world = World(
            Path(self.folder.name),
            settings={
                "providers": {
                    "sim": {"kind": "openai", "base_url": "http://sim.invalid/v1", "models": model}
                },
                "agent": {"busy_mode": mode, "retry_base": 1, "retry_cap": 2},
            },
            tools=[Slow("look_up", ToolEffect.PURE), Slow("pay", ToolEffect.ONCE)],
        )
        self.judged = 0
        self.last = ""
        self.count = 0

    @rule(plays=st.lists(PLAYS, min_size=1, max_size=4))
    def prepare(self, plays: list[Answer | Calls | Fails]) -> None:
        self.world.model.script.extend(plays)

    @rule(
        words=st.sampled_from(
            ["hello", "and then?", "/steer rather this", "/queue and that", "long words " * 150]
        )
    )
    def say(self, words: str) -> None:
        self.count += 1
        self.last = self.world.say(f"{words} {self.count}")

    @rule(command=st.sampled_from(["/stop", "/new", "/status", "2"]))
    def command(self, command: str) -> None:
        self.world.say(command)

    @rule()
    def edit(self) -> None:
        if self.last:
            self.world.say("it reads otherwise now", edits=self.last)

    @rule(seconds=st.sampled_from([0.1, 0.3, 0.7, 1.5, 10.0, 120.0]))
    def wait(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule()
    def kill(self) -> None:
        self.world.kill()

    @rule(point=st.sampled_from(POINTS), after=st.integers(1, 3))
    def kill_at(self, point: str, after: int) -> None:
        self.world.checkpoints.at, self.world.checkpoints.after = point, after

    @invariant()
    def no_request_is_refused_for_its_form(self) -> None:
        if not hasattr(self, "world"):
            return
        requests = self.world.model.requests
        for request in requests[self.judged :]:
            assert problems(request.items) == ()
            openai = OpenAIDialect(()).wrong(render_openai(request))
            assert openai is None, openai
            anthropic = AnthropicDialect(()).wrong(render_anthropic(request))
            assert anthropic is None, anthropic
        self.judged = len(requests)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.at_the_end()
        finally:
            self.world.close()
            self.folder.cleanup()

    def at_the_end(self) -> None:
        """The chat is not stuck, every row has its outcome, and what is stored is legal."""
        world = self.world
        world.checkpoints.at = None
        world.model.script.clear()
        world.run(7200)  # open questions pass their time
        world.say("is anybody there?")
        world.run(300)
        self.no_request_is_refused_for_its_form()
        assert "is anybody there?" in world.heard()[-1]
        for (session,) in world.rows("SELECT DISTINCT session_id FROM messages"):
            stored = world.rows(
                f"SELECT item, generation FROM messages WHERE session_id='{session}' ORDER BY seq"
            )
            for generation in {number for _, number in stored}:
                items = [load_item(text) for text, number in stored if number == generation]
                assert problems(items) == (), json.dumps([text for text, _ in stored])
        assert all(outcome for _, outcome in world.outcomes())


TestConversation = Conversation.TestCase
TestConversation.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, phases=(Phase.generate, Phase.shrink)
)
