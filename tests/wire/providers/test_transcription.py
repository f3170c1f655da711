"""Recordings through the real SDK: what is sent, what comes back, and what a failure costs."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hermes.agent.credentials import CredentialPool, StaticKey
from hermes.agent.governor import Governor
from hermes.agent.hearing import Hearing
from hermes.core.attachments import NotHeard
from hermes.core.ports import SpeechProvider
from hermes.runtime.clock import SystemClock
from hermes.runtime.supervisor import Supervisor
from hermes.simulators.faults import ApiError, Fault, Reply, Reset
from hermes.simulators.openai import OpenAISimulator
from tests.wire.recovery.bench import QUICK, provider

pytestmark = pytest.mark.wire


@asynccontextmanager
async def hearing(
    pool: Callable[[], CredentialPool | None] = lambda: None,
) -> AsyncIterator[tuple[OpenAISimulator, Hearing]]:
    clock = SystemClock()
    async with OpenAISimulator() as sim:
        adapter = provider("openai", sim.base_url)
        assert isinstance(adapter, SpeechProvider)
        draw = random.Random(1).random
        made = Hearing("main", "ears", lambda: adapter, Governor(clock, draw), clock, draw, QUICK, pool)
        try:
            yield sim, made
        finally:
            await adapter.aclose()


async def test_a_recording_is_sent_whole_with_its_name_and_model() -> None:
    async with hearing() as (sim, it):
        sim.ears.script.append(" hello there ")
        assert await it.transcribe(b"OggS" * 1000, "voice.ogg", "audio/ogg") == "hello there"
        [recording] = sim.ears.recordings
        assert (recording.model, recording.name, recording.content) == ("ears", "voice.ogg", b"OggS" * 1000)
        assert recording.key == "sk-test"


async def test_a_failure_that_passes_costs_one_more_request() -> None:
    async with hearing() as (sim, it):
        sim.ears.script.extend([ApiError(500, "The server had an error", "server_error"), "hello"])
        assert await it.transcribe(b"OggS", "voice.ogg", "audio/ogg") == "hello"
        assert len(sim.ears.recordings) == 2


@pytest.mark.parametrize(
    ("fault", "requests"),
    [
        (ApiError(500, "The server had an error", "server_error"), 1 + QUICK.retries),
        (ApiError(401, "Incorrect API key provided", "invalid_request_error"), 1),
        (Reply(200, "<html>proxy</html>", "text/html"), 1 + QUICK.retries),
        (Reply(200, '{"no": "text"}'), 1 + QUICK.retries),
        (Reset(), 1 + QUICK.retries),
    ],
)
async def test_a_failure_that_stays_is_bounded_and_said(fault: Fault, requests: int) -> None:
    async with hearing() as (sim, it):
        rule = sim.faults.add(fault, times=None)
        heard = await it.transcribe(b"OggS", "voice.ogg", "audio/ogg")
        assert isinstance(heard, NotHeard)
        assert "main/ears did not transcribe it" in heard.why
        assert rule.hits == requests


async def test_a_format_that_is_refused_is_said_in_one_request() -> None:
    async with hearing() as (sim, it):
        assert isinstance(await it.transcribe(b"x", "talk.xyz", "audio/xyz"), NotHeard)
        assert len(sim.ears.recordings) == 1


async def test_silence_is_said_to_be_silence() -> None:
    async with hearing() as (sim, it):
        sim.ears.script.append("  ")
        assert await it.transcribe(b"OggS", "voice.ogg", "audio/ogg") == NotHeard("nothing is said in it")


async def test_the_key_comes_from_the_providers_pool() -> None:
    supervisor = Supervisor("test", clock=SystemClock())
    pool = CredentialPool([StaticKey("sk-of-the-pool")], SystemClock(), supervisor.spawn)
    async with hearing(lambda: pool) as (sim, it):
        await it.transcribe(b"OggS", "voice.ogg", "audio/ogg")
        assert sim.ears.recordings[0].key == "sk-of-the-pool"
    await supervisor.aclose(1.0)
