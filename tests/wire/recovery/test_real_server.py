"""A real llama-server's own errors, faults of its process included: each ends in the cure or the sentence."""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from hermes.agent.pipeline import Pipeline
from hermes.agent.targets import Answered, Ask, GaveUp
from hermes.core.failures import Reason
from hermes.core.transcript import ToolSpec, UserItem
from hermes.policy.recovery import RecoveryPolicy
from hermes.runtime.clock import SystemClock
from tests.llama import MODEL, Llama, serving
from tests.wire.recovery.bench import DIALECTS, HISTORY, Screen, pipeline_of, provider

pytestmark = [pytest.mark.llm, pytest.mark.wire]

PATIENT = RecoveryPolicy(targets=(), retries=5, base=0.5, cap=3.0, retry_after_cap=30.0)
LIMITS = {"connect_timeout": 2.0, "first_byte_timeout": 30.0, "stall_timeout": 20.0, "total_timeout": 90.0}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    with serving(tmp_path_factory.mktemp("llama")) as server:
        yield server


@asynccontextmanager
async def asking(url: str, dialect: str = "openai", **limits: float) -> AsyncIterator[Pipeline]:
    """The pipeline in front of a real server."""
    base = url if dialect == "openai" else url.removesuffix("/v1")
    adapter = provider(dialect, base, **{**LIMITS, **limits})
    try:
        yield pipeline_of(adapter, PATIENT, MODEL, max_output=24)
    finally:
        await adapter.aclose()


async def ask(
    pipeline: Pipeline, text: str, screen: Screen | None = None, tools: tuple[ToolSpec, ...] = (), **more: Any
) -> Any:
    items = (*more.get("history", ()), UserItem(text))
    deadline = SystemClock().monotonic() + 120
    return await pipeline.call(Ask("Be brief.", items, tools), screen or Screen(), deadline)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_genuine_overflow_is_cured_or_told_and_the_next_message_is_answered(
    llama: Llama, dialect: str
) -> None:
    async with asking(llama.base_url, dialect) as pipeline:
        screen = Screen()
        assert isinstance(await ask(pipeline, "hello", screen, history=HISTORY), Answered)
        assert "repair" in screen.notices
        told = await ask(pipeline, "word " * 2 * llama.context_window)
        assert isinstance(told, GaveUp)
        assert told.verdict.reason is Reason.CONTEXT_OVERFLOW
        assert "too long" in told.sentence
        assert isinstance(await ask(pipeline, "hello"), Answered)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_questions_in_quick_succession_are_answered_without_a_retry(llama: Llama, dialect: str) -> None:
    """This server closes each connection after its answer, and says that it keeps it."""
    async with asking(llama.base_url, dialect) as pipeline:
        notices = []
        for _ in range(8):
            screen = Screen()
            assert isinstance(await ask(pipeline, "hello", screen), Answered)
            notices += [notice for notice in screen.notices if notice != "continue"]
        assert len(notices) <= 1, "only the first such connection may cost anything"


@asynccontextmanager
async def strict(llama: Llama) -> AsyncIterator[str]:
    """The same server behind a proxy that asks it to obey the first tool's schema: it has to compile that."""

    async def forward(request: web.Request) -> web.Response:
        body = await request.json()
        if body.get("tools"):
            schema = body["tools"][0]["function"]["parameters"]
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{llama.base_url}/chat/completions", json=body) as answer,
        ):
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", forward)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def test_a_genuine_refusal_of_a_schema_is_cured_or_told(llama: Llama) -> None:
    pattern = {"type": "string", "pattern": "no anchors"}
    schema = {"type": "object", "properties": {"name": pattern}, "required": ["name"]}
    tool = ToolSpec("look_up", "Looks a name up.", schema)
    async with strict(llama) as url, asking(url) as pipeline:
        screen = Screen()
        end = await ask(pipeline, "hello", screen, (tool,))
        if isinstance(end, GaveUp):
            assert end.verdict.reason is Reason.LLAMA_CPP_GRAMMAR_PATTERN
            assert "schema of one of the tools" in end.sentence
        else:
            assert "repair" in screen.notices
        assert isinstance(await ask(pipeline, "hello"), Answered)


async def test_a_server_that_is_still_loading_is_waited_for(tmp_path: Path) -> None:
    with serving(tmp_path, ready=False) as server:
        assert await asyncio.to_thread(_loading, server), "the server said 503 while it loaded"
        async with asking(server.base_url) as pipeline:
            screen = Screen()
            assert isinstance(await ask(pipeline, "hello", screen), Answered)
            assert "retry" in screen.notices


def _loading(server: Llama) -> bool:
    """Until the port answers at all; True when that was a 503."""
    url = f"{server.base_url.removesuffix('/v1')}/health"
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return False
        except urllib.error.HTTPError as error:
            with error:
                return error.code == 503
        except OSError:
            continue


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_wrong_key_is_told_at_once(tmp_path: Path, dialect: str) -> None:
    with serving(tmp_path, arguments=("--api-key", "the-right-key")) as server:
        async with asking(server.base_url, dialect) as pipeline:
            screen = Screen()
            told = await ask(pipeline, "hello", screen)
            assert isinstance(told, GaveUp)
            assert told.verdict.reason is Reason.AUTH
            assert "refused the credential" in told.sentence
            assert screen.notices == []


class Striking(Screen):
    """Does something to the server when the first words arrive."""

    def __init__(self, pid: int, number: signal.Signals) -> None:
        super().__init__()
        self._pid, self._number = pid, number
        self.struck = False

    def on_text(self, text: str) -> None:
        super().on_text(text)
        if not self.struck:
            self.struck = True
            os.kill(self._pid, self._number)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_killed_in_mid_stream_is_told_and_answers_once_it_is_back(
    tmp_path: Path, dialect: str
) -> None:
    with serving(tmp_path) as server:
        port = urlsplit(server.base_url).port
        async with asking(server.base_url, dialect) as pipeline:
            screen = Striking(server.pid, signal.SIGKILL)
            told = await ask(pipeline, "Tell me a long story.", screen)
            assert isinstance(told, GaveUp)
            assert told.verdict.reason is Reason.TIMEOUT
            assert screen.struck
            assert screen.text == "", "half an answer is void"
            with serving(tmp_path, port=port):
                assert isinstance(await ask(pipeline, "hello"), Answered)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_stopped_in_mid_stream_is_asked_again_and_answers_when_it_goes_on(
    tmp_path: Path, dialect: str
) -> None:
    with serving(tmp_path) as server:
        async with asking(server.base_url, dialect, stall_timeout=1.0, first_byte_timeout=6.0) as pipeline:
            screen = Striking(server.pid, signal.SIGSTOP)
            wake = asyncio.get_running_loop().call_later(3.0, os.kill, server.pid, signal.SIGCONT)
            try:
                end = await ask(pipeline, "Tell me a long story.", screen)
            finally:
                wake.cancel()
                os.kill(server.pid, signal.SIGCONT)
            assert isinstance(end, Answered)
            assert screen.struck
            assert screen.restarts >= 1
            assert screen.text[:20] == end.reply.text[:20], "one answer, from its beginning"
