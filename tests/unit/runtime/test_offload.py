"""Threads that are bounded, and callers that are not held up."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator

import pytest

from hermes.runtime.offload import Offload, OffloadFull, OffloadTimeout, PoolLimits


class Gate:
    """A blocking call that tells when it began and ends on order."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = asyncio.Event()
        self.open = threading.Event()
        self.calls = 0

    def __call__(self, answer: int = 1) -> int:
        self.calls += 1
        self.loop.call_soon_threadsafe(self.began.set)
        assert self.open.wait(20.0)
        return answer


LIMITS = {"one": PoolLimits(threads=1, queue=1, orphans=1), "dns": PoolLimits(threads=2)}


@pytest.fixture
async def offload() -> AsyncIterator[Offload]:
    made = Offload(LIMITS)
    yield made
    assert made.close(timeout=5.0) == []


@pytest.fixture
async def gate(offload: Offload) -> AsyncIterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


async def test_results_and_errors_come_back_and_the_thread_is_ours(offload: Offload) -> None:
    assert await offload.run("one", int, "12") == 12
    with pytest.raises(ValueError, match="invalid literal"):
        await offload.run("one", int, "x")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await offload.run("one", next, iter(()))
    thread = await offload.run("one", threading.current_thread)
    assert thread.daemon
    assert thread.name == "hermes-one"
    with pytest.raises(KeyError):
        await offload.run("unknown", int)
    with pytest.raises(TimeoutError) as caught:
        await offload.run("one", _raise_timeout, timeout=5)
    assert not isinstance(caught.value, OffloadTimeout)


def _raise_timeout() -> None:
    raise TimeoutError("the call's own")


async def test_a_full_queue_refuses_at_once(offload: Offload, gate: Gate) -> None:
    first = asyncio.ensure_future(offload.run("one", gate))
    await gate.began.wait()
    second = asyncio.ensure_future(offload.run("one", gate, 2))
    await asyncio.sleep(0)
    with pytest.raises(OffloadFull, match="1 calls wait already"):
        await offload.run("one", gate)
    gate.open.set()
    assert (await first, await second) == (1, 2)


async def test_cancellation_detaches_at_once_and_the_orphans_place_is_filled(
    offload: Offload, gate: Gate
) -> None:
    stuck = asyncio.ensure_future(offload.run("one", gate))
    await gate.began.wait()
    began = time.monotonic()
    stuck.cancel()
    await asyncio.wait([stuck])
    assert time.monotonic() - began < 0.1
    assert offload.orphans["one"] == 1
    assert await offload.run("one", int, "5", timeout=10) == 5
    gate.open.set()
    assert offload.close(timeout=5.0) == []
    assert offload.orphans["one"] == 0
    assert offload.orphaned["one"] == 1


async def test_a_call_that_waits_is_dropped_when_its_caller_goes(offload: Offload, gate: Gate) -> None:
    other = Gate()
    first = asyncio.ensure_future(offload.run("one", gate))
    await gate.began.wait()
    waiting = asyncio.ensure_future(offload.run("one", other))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    gate.open.set()
    await first
    assert await offload.run("one", int, "1") == 1
    assert other.calls == 0
    assert offload.orphaned["one"] == 0


async def test_a_timeout_raises_and_counts_an_orphan(offload: Offload, gate: Gate) -> None:
    with pytest.raises(OffloadTimeout, match=r"pool one: not done within 0\.02 s"):
        await offload.run("one", gate, timeout=0.02)
    assert offload.orphaned["one"] == 1


async def test_look_ups_and_the_default_executor_use_our_pools(offload: Offload) -> None:
    loop = asyncio.get_running_loop()
    offload.install(loop, dns="dns", other="one")
    found = await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    assert found[0][4] == ("127.0.0.1", 80)
    assert await loop.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV) == (
        "127.0.0.1",
        "80",
    )
    assert offload.implicit_uses == 0
    thread = await loop.run_in_executor(None, threading.current_thread)
    assert thread.name == "hermes-one"
    assert offload.implicit_uses == 1


async def test_a_dead_look_up_does_not_hold_up_a_connection(offload: Offload, gate: Gate) -> None:
    loop = asyncio.get_running_loop()
    offload.install(loop, other="one")
    dead = asyncio.ensure_future(loop.run_in_executor(None, gate))
    await gate.began.wait()
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "localhost", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("localhost", port)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
    gate.open.set()
    await dead


async def test_after_close_calls_are_refused(offload: Offload) -> None:
    assert offload.close() == []
    with pytest.raises(OffloadFull, match="closed"):
        await offload.run("one", int)
