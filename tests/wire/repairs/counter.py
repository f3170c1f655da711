"""The real pipeline and SDKs with a pool of keys before a simulator that knows which keys are good."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.agent.credentials import CredentialPool
from hermes.agent.pipeline import Pipeline, with_policy
from hermes.agent.repairs import LearnedBook, Repairs
from hermes.agent.targets import Answered, Ask, Target, UpstreamBook
from hermes.core.transcript import Item, ToolSpec, UserItem
from hermes.runtime.clock import SystemClock
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from hermes.store.database import InlineDatabase
from hermes.store.learned import SqliteLearned
from tests.wire.recovery.bench import QUICK, Screen, provider


@dataclass
class Counter:
    """A simulator, a pipeline, what it learned."""

    sim: ModelSimulator
    pipeline: Pipeline
    learned: LearnedBook

    async def answer(self, text: str = "«hi»", history: Sequence[Item] = (), tools: tuple[ToolSpec, ...] = ()) -> str:
        """The answer; fails when there is none."""
        ask = Ask("Be brief.", (*history, UserItem(text)), tools)
        end = await self.pipeline.call(ask, Screen(), SystemClock().monotonic() + 60)
        assert isinstance(end, Answered), end
        return end.reply.text

    def used(self) -> list[str]:
        """The key of each request, in order."""
        return [self.sim.dialect.key(request.headers) for request in self.sim.requests]


@asynccontextmanager
async def counter(
    dialect: str, pool: CredentialPool | None = None, db: InlineDatabase | None = None, **target: int
) -> AsyncIterator[Counter]:
    """All closed at the end. ``db`` keeps what was learned."""
    clock = SystemClock()
    simulator = OpenAISimulator if dialect == "openai" else AnthropicSimulator
    async with simulator() as sim:
        adapter = provider(dialect, sim.base_url)
        book = LearnedBook(clock, SqliteLearned(db or InlineDatabase()))
        await book.load()
        targets = (Target(adapter, "some-model", **target),)
        pipeline = Pipeline(
            targets, with_policy(QUICK, targets), clock, random.Random(1).random, upstreams=UpstreamBook(),
            repairs=Repairs(book, {"main": pool} if pool is not None else {}),
        )  # fmt: skip
        try:
            yield Counter(sim, pipeline, book)
        finally:
            await adapter.aclose()


@dataclass
class Portal:
    """A token endpoint with single-use refresh tokens: using one twice revokes the grant."""

    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)
    good: str = "refresh-token-0"
    revoked: bool = False
    pause: float = 0.05
    on_token: Callable[[str], Any] = len

    async def token(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.requests.append(form)
        with contextlib.suppress(TimeoutError):  # the answer takes its time
            async with asyncio.timeout(self.pause):
                await asyncio.Event().wait()
        if self.revoked or form.get("refresh_token") != self.good:
            self.revoked = True
            return web.json_response({"error": "invalid_grant", "echo": form.get("refresh_token")}, status=400)
        number = len(self.requests)
        self.good = f"refresh-token-{number}"
        self.on_token(f"access-token-{number}")
        body = {"access_token": f"access-token-{number}", "refresh_token": self.good, "expires_in": 3600}
        return web.Response(text=json.dumps(body), content_type="application/json")


@asynccontextmanager
async def portal() -> AsyncIterator[Portal]:
    """Listening until the block ends."""
    found = Portal()
    app = web.Application()
    app.router.add_post("/token", found.token)
    async with TestServer(app, host="127.0.0.1") as server:
        found.url = str(server.make_url("/token"))
        yield found
