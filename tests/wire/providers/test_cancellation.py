"""A cancelled call closes its connection at once and leaves the provider usable."""

from __future__ import annotations

import asyncio

import pytest

from tests.wire.providers.dialects import DIALECTS, Dialect, answer, ask
from tests.wire.providers.upstream import Act, Script, Upstream, head, part

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)]


def halves(dialect: Dialect) -> dict[str, Script]:
    """Answers that stop at some point, by what the client then waits for."""
    error = b"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    return {
        "the head": [Act.HANG],
        "the first event": [head(), Act.HANG],
        "the next event": [head(), part(dialect.begin()), part(dialect.text("Hel")), Act.HANG],
        "the rest of an error": [error, Act.HANG],
    }


WAITS = ["the head", "the first event", "the next event", "the rest of an error"]


@pytest.mark.parametrize("waits_for", WAITS)
async def test_a_cancelled_call_is_gone_at_the_server(dialect: Dialect, waits_for: str) -> None:
    async with Upstream(halves(dialect)[waits_for], answer(dialect, "hello")) as upstream:
        provider = dialect.provider(upstream.url, first_byte_timeout=60.0, stall_timeout=60.0)
        call = asyncio.ensure_future(provider.complete(ask(), lambda text: None))
        await upstream.busy.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(upstream.gone.wait(), 5)
        assert (await provider.complete(ask(), lambda text: None)).text == "hello"
        await provider.aclose()


async def test_a_call_can_be_cancelled_at_any_of_its_awaits(dialect: Dialect) -> None:
    async with Upstream(answer(dialect, "hel", "lo")) as upstream:
        provider = dialect.provider(upstream.url)
        cancelled = 0
        for steps in range(200):
            call = asyncio.ensure_future(provider.complete(ask(), lambda text: None))
            for _ in range(steps):
                await asyncio.sleep(0)
            if call.done():
                break
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            cancelled += 1
        assert cancelled > 3
        assert (await asyncio.wait_for(call, 5)).text == "hello"
        await provider.aclose()
        assert len(asyncio.all_tasks()) - len(upstream._tasks) <= 1


async def test_closing_ends_a_call_under_way(dialect: Dialect) -> None:
    script = [head(), part(dialect.begin()), part(dialect.text("Hel")), Act.HANG]
    async with Upstream(script) as upstream:
        provider = dialect.provider(upstream.url, stall_timeout=60.0)
        call = asyncio.ensure_future(provider.complete(ask(), lambda text: None))
        await upstream.busy.wait()
        await provider.aclose()
        await asyncio.wait_for(asyncio.wait([call]), 5)
        assert type(call.exception()).__name__ == "ProviderFailure"
