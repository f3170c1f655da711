"""The long-context beta of Anthropic's API: asked for by header, dropped where the account may not have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.transcript import UserItem
from hermes.providers.anthropic.config import LONG_CONTEXT
from hermes.store.database import InlineDatabase
from tests.wire.repairs.gallery import gallery

pytestmark = pytest.mark.wire
WIDE = {"context_window": 1_000_000, "betas": (LONG_CONTEXT,)}


@pytest.mark.parametrize(("window", "header"), [(1_000_000, LONG_CONTEXT), (200_000, None)])
async def test_a_window_above_200_000_tokens_is_asked_for_by_its_header(
    tmp_path: Path, window: int, header: str | None
) -> None:
    async with gallery("anthropic", tmp_path, target={**WIDE, "context_window": window}) as it:
        await it.look()
        assert it.sim.requests[0].headers.get("anthropic-beta") == header


async def test_a_forbidden_beta_is_dropped_in_one_more_request_with_the_smaller_window_and_remembered(
    tmp_path: Path,
) -> None:
    disk, history = InlineDatabase(), tuple(UserItem("word " * 8000) for _ in range(40))
    async with gallery("anthropic", tmp_path, disk, target=WIDE, betas=()) as it:
        await it.look(history=history)
        first, second = it.sim.requests
        assert first.headers["anthropic-beta"] == LONG_CONTEXT
        assert "anthropic-beta" not in second.headers
        assert second.size < 200_000 * 4 < first.size
        assert it.facts() == {"no_long_context_beta": "1"}
    async with gallery("anthropic", tmp_path, disk, target=WIDE, betas=()) as it:
        await it.look()
        assert len(it.sim.requests) == 1


async def test_the_other_dialect_has_no_such_header(tmp_path: Path) -> None:
    async with gallery("openai", tmp_path, target=WIDE) as it:
        await it.look()
        assert "anthropic-beta" not in it.sim.requests[0].headers
