"""A server that closes each connection after its answer, although it did not say so."""

from __future__ import annotations

import pytest

from hermes.agent.targets import Answered, Ask
from hermes.core.transcript import UserItem
from hermes.runtime.clock import SystemClock
from tests.wire.providers.dialects import DIALECTS, Dialect, answer
from tests.wire.providers.upstream import Act, Upstream
from tests.wire.recovery.bench import Screen, pipeline_of

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)]


async def test_only_the_first_of_many_quick_questions_may_cost_a_retry(dialect: Dialect) -> None:
    async with Upstream([*answer(dialect, "hel", "lo"), Act.CLOSE]) as upstream:
        adapter = dialect.provider(upstream.url)
        pipeline, screen = pipeline_of(adapter), Screen()
        for number in range(10):
            ask = Ask("Be brief.", (UserItem(f"question {number}"),), ())
            end = await pipeline.call(ask, screen, SystemClock().monotonic() + 30)
            assert isinstance(end, Answered)
            assert end.reply.text == "hello"
        await adapter.aclose()
        assert len(screen.notices) <= 1
        assert len(upstream.heard) <= 11
        assert upstream.connections >= 9
