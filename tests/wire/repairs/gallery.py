"""The real pipeline and SDKs with pictures in a media store, before a simulator that is strict about them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.agent.pipeline import Pipeline, with_policy
from hermes.agent.repairs import LearnedBook, Repairs
from hermes.agent.targets import Answered, Ask, GaveUp, Parked, Target, UpstreamBook
from hermes.core.events import AttachmentRef
from hermes.core.ids import InboxId
from hermes.core.transcript import AssistantItem, ImageRef, Item, ToolCall, ToolResultItem, ToolSpec, UserItem
from hermes.runtime.clock import SystemClock
from hermes.runtime.offload import Offload
from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.images import Shown, anthropic_pictures, openai_pictures
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from hermes.store.database import InlineDatabase
from hermes.store.learned import SqliteLearned
from hermes.store.media import SqliteMedia
from tests.wire.recovery.bench import QUICK, Screen, provider

TOOL = ToolSpec("read_attachment", "Reads a file.", {"type": "object", "properties": {}})


@dataclass
class Gallery:
    """A simulator, a pipeline, a media store, what was learned."""

    dialect: str
    sim: ModelSimulator
    pipeline: Pipeline
    media: SqliteMedia
    learned: LearnedBook

    async def hang(self, content: bytes) -> ImageRef:
        """Keeps a picture."""
        kept = await self.media.keep(InboxId(1), AttachmentRef("photo", f"r{len(content)}"), content, 0.0)
        assert kept.image is not None
        return kept.image

    async def ask(self, *items: Item) -> Answered | GaveUp | Parked:
        """What came of a request."""
        return await self.pipeline.call(Ask("Be brief.", items, (TOOL,)), Screen(), SystemClock().monotonic() + 60)

    async def look(self, *images: ImageRef, history: Sequence[Item] = ()) -> str:
        """The answer about pictures; fails when there is none."""
        end = await self.ask(*history, UserItem("«look»", images=images))
        assert isinstance(end, Answered), end
        return end.reply.text

    def shown(self) -> list[list[Shown]]:
        """The pictures of each request."""
        read = openai_pictures if self.dialect == "openai" else anthropic_pictures
        return [list(read(request.body)) for request in self.sim.requests]

    def facts(self) -> dict[str, str]:
        """What was learned; how a model counts tokens is another matter."""
        return {fact.key: fact.value for fact in self.learned.all() if fact.key != "vocabulary"}


def with_tool_image(image: ImageRef) -> tuple[Item, ...]:
    """A conversation in which a tool gave a picture."""
    call = ToolCall("c1", "read_attachment", "{}")
    return (
        UserItem("again, please"),
        AssistantItem("", (call,)),
        ToolResultItem("c1", "read_attachment", "photo, 40×30", images=(image,)),
    )


@asynccontextmanager
async def gallery(
    dialect: str, folder: Path, db: InlineDatabase | None = None, *, target: dict[str, Any] | None = None, **sim: Any
) -> AsyncIterator[Gallery]:
    """All closed at the end. ``db`` keeps what was learned, ``sim`` are options of the simulator."""
    clock, disk, offload = SystemClock(), db or InlineDatabase(), Offload()
    simulator = OpenAISimulator if dialect == "openai" else AnthropicSimulator
    async with simulator(**sim) as server:
        adapter = provider(dialect, server.base_url)
        book = LearnedBook(clock, SqliteLearned(disk))
        await book.load()
        media = SqliteMedia(disk, folder / "media", offload)
        targets = (Target(adapter, "some-model", **{"images": True, **(target or {})}),)
        pipeline = Pipeline(
            targets, with_policy(QUICK, targets), clock, random.Random(1).random, upstreams=UpstreamBook(),
            repairs=Repairs(book, pictures=media),
        )  # fmt: skip
        try:
            yield Gallery(dialect, server, pipeline, media, book)
        finally:
            await adapter.aclose()
            offload.close()
