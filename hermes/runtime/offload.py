"""The only place for threads that do a caller's work (R24).

Pools are named and bounded; asyncio's default executor is never used, for one dead DNS server in a shared
pool delays everybody. Threads are daemons and start when needed: none keeps a dead process alive.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from hermes.runtime.children import ChildGroups, ProcessResult, run_process
from hermes.runtime.supervisor import outcome_of

P = ParamSpec("P")
T = TypeVar("T")

IDLE = 30.0
"""Seconds after which a thread without work ends."""


class OffloadFull(RuntimeError):
    """A pool's queue is full; the call was not started."""


class OffloadTimeout(TimeoutError):
    """The caller stopped waiting; a call that had begun goes on as an orphan."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of a pool: `threads` at work, `queue` calls waiting, `orphans` detached calls that are replaced.

    While orphans sit in their threads, as many further threads may start, up to `orphans`.
    """

    threads: int = 4
    queue: int = 256
    orphans: int = 16


DEFAULT_POOLS: Mapping[str, PoolLimits] = {
    "dns": PoolLimits(threads=8, queue=512, orphans=32),
    "files": PoolLimits(threads=4, queue=512, orphans=8),
    "cpu": PoolLimits(threads=1, queue=128, orphans=1),
}


class _Job:
    """One call. `future` is a concurrent future: cancelled before the start, it never starts."""

    __slots__ = ("call", "detached", "future")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.future: Future[Any] = Future()
        self.detached = False


class _Pool:
    def __init__(self, name: str, limits: PoolLimits) -> None:
        self.name = name
        self.limits = limits
        self.orphans = 0
        self.orphaned = 0
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._closed = False

    def submit(self, call: Callable[[], Any]) -> _Job:
        job = _Job(call)
        with self._changed:
            if self._closed:
                raise OffloadFull(f"pool {self.name} is closed")
            if len(self._jobs) >= self.limits.queue:
                raise OffloadFull(f"pool {self.name}: {self.limits.queue} calls wait already")
            self._jobs.append(job)
            self._staff()
            self._changed.notify()
        return job

    def detach(self, job: _Job) -> None:
        """Nobody waits for `job` any more: takes it out of the queue, or counts it as an orphan."""
        if job.future.done() and not job.future.cancelled():
            return
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                job.future.cancel()
            elif not job.future.done() and not job.detached:
                job.detached = True
                self.orphans += 1
                self.orphaned += 1
                self._staff()

    def close(self) -> list[threading.Thread]:
        with self._changed:
            self._closed = True
            for job in self._jobs:
                job.future.cancel()
            self._jobs.clear()
            self._changed.notify_all()
            return list(self._threads)

    def _capacity(self) -> int:
        return self.limits.threads + min(self.orphans, self.limits.orphans)

    def _staff(self) -> None:
        if self._idle < len(self._jobs) and len(self._threads) < self._capacity():
            thread = threading.Thread(target=self._work, name=f"hermes-{self.name}", daemon=True)
            self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError as error:  # the system has no thread left: those there are must do
                self._threads.discard(thread)
                if not self._threads:
                    self._jobs.clear()
                    raise OffloadFull(f"pool {self.name}: no thread can be started: {error}") from error

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._perform(job)
            del job  # an idle thread keeps no arguments alive

    def _perform(self, job: _Job) -> None:
        begun = job.future.set_running_or_notify_cancel()
        value, error = outcome_of(job.call) if begun else (None, None)
        with self._changed:
            if job.detached:
                self.orphans -= 1
            if not begun:
                return
            if error is None:
                job.future.set_result(value)
            elif isinstance(error, StopIteration):  # no asyncio future can hold it
                job.future.set_exception(RuntimeError(f"the call raised {error!r}"))
            else:
                job.future.set_exception(error)

    def _next(self) -> _Job | None:
        with self._changed:
            self._idle += 1
            if len(self._threads) <= self._capacity():
                self._changed.wait_for(lambda: self._jobs or self._closed, IDLE)
            self._idle -= 1
            if self._jobs and len(self._threads) <= self._capacity():
                return self._jobs.popleft()
            self._threads.discard(threading.current_thread())
            self._changed.notify()  # the wake-up that this thread took may have been another's
            return None


class _DefaultExecutor(ThreadPoolExecutor):
    """What libraries get that use asyncio's default executor behind our back: a bounded pool, counted."""

    def __init__(self, pool: _Pool) -> None:
        super().__init__(1)  # starts no thread before its own submit is called, which is never
        self._hermes_pool = pool
        self.uses = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self.uses += 1
        return self._hermes_pool.submit(lambda: fn(*args, **kwargs)).future


class Offload:
    """Runs blocking calls in named, bounded pools, and programs as killable children.

    `orphans` counts detached calls that still sit in a thread, `orphaned` all there ever were, by pool.
    """

    def __init__(
        self, pools: Mapping[str, PoolLimits] = DEFAULT_POOLS, *, children: ChildGroups | None = None
    ) -> None:
        self.children = children if children is not None else ChildGroups()
        self._pools = {name: _Pool(name, limits) for name, limits in pools.items()}
        self._default: _DefaultExecutor | None = None

    @property
    def orphans(self) -> dict[str, int]:
        return {name: pool.orphans for name, pool in self._pools.items()}

    @property
    def orphaned(self) -> dict[str, int]:
        return {name: pool.orphaned for name, pool in self._pools.items()}

    @property
    def implicit_uses(self) -> int:
        """How often a library used the loop's default executor."""
        return self._default.uses if self._default is not None else 0

    async def run(
        self,
        pool: str,
        fn: Callable[..., T],
        *args: object,
        timeout: float | None = None,  # noqa: ASYNC109 - says what happens to the thread
    ) -> T:
        """`fn(*args)` in a thread of `pool`; raises what it raises.

        Raises OffloadFull at once if the queue is full, OffloadTimeout after `timeout` seconds, KeyError for
        an unknown pool. Cancellation detaches at once: a waiting call is dropped, a running one is orphaned.
        """
        chosen = self._pools[pool]
        job = chosen.submit(lambda: fn(*args))
        try:
            async with asyncio.timeout(timeout) as bound:
                result: T = await asyncio.wrap_future(job.future)
        except TimeoutError:
            if not bound.expired():
                raise
            raise OffloadTimeout(f"pool {pool}: not done within {timeout:g} s") from None
        finally:
            chosen.detach(job)
        return result

    async def run_process(
        self,
        argv: list[str],
        *,
        timeout: float,  # noqa: ASYNC109 - the child is killed
        input: bytes = b"",
        max_output: int = 1 << 20,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ProcessResult:
        """See `hermes.runtime.children.run_process`; the child dies with this process's orderly end."""
        return await run_process(
            self.children, argv, timeout=timeout, input=input, max_output=max_output, cwd=cwd, env=env
        )

    def install(self, loop: asyncio.AbstractEventLoop, *, dns: str = "dns", other: str = "files") -> None:
        """Name look-ups of `loop` go to pool `dns`, all else that uses its default executor to `other`.

        Look-ups are replaced on the loop itself: asyncio would use the default executor for them, and uvloop
        libuv's own pool, in which two dead look-ups hold up all. Refusing other uses would break libraries
        that we do not own, so they are bounded and counted instead.
        """
        self._default = _DefaultExecutor(self._pools[other])
        loop.set_default_executor(self._default)

        async def getaddrinfo(
            host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
        ) -> Any:
            return await self.run(dns, socket.getaddrinfo, host, port, family, type, proto, flags)

        async def getnameinfo(sockaddr: Any, flags: int = 0) -> Any:
            return await self.run(dns, socket.getnameinfo, sockaddr, flags)

        loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]
        loop.getnameinfo = getnameinfo  # type: ignore[method-assign]

    def close(self, timeout: float = 1.0) -> list[str]:
        """Drops what waits and waits up to `timeout` seconds per pool; names the threads that still run."""
        left = []
        for pool in self._pools.values():
            for thread in pool.close():
                thread.join(timeout)
                if thread.is_alive():
                    left.append(thread.name)
        return left
