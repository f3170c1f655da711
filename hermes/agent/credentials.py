"""The keys of one provider: which is used, which rests, and one refresh for all who wait (R40).

    lease = await pool.take()      a key for one call; the lease names it, so the key that failed is the key judged
    await pool.rest(lease, verdict)      it rests or is dead; the next take gets another
    await pool.refresh(lease)      fetched anew unless somebody did since the lease was taken
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hermes.core.clock import Clock
from hermes.core.errors import ProviderFailure
from hermes.core.failures import Verdict
from hermes.policy.credentials import KeyHealth, KeyState, Strategy, choose, judged, restored
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

REFUSED_SECONDS = 10.0
"""So long a failed fetch is not repeated: many turns that wait for one credential make one request."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A fetched key and when it ends (UTC epoch seconds; None: never)."""

    value: str = field(repr=False)
    expires_at: float | None = None


class Source(Protocol):
    """Where one key comes from."""

    @property
    def ident(self) -> str:
        """A name of the key that does not give it away; stable across restarts."""

    @property
    def refreshable(self) -> bool:
        """Whether fetching again may give another key."""

    async def fetch(self, stale: str | None) -> Secret:
        """The key now; ``stale`` is one that was refused. Raises ProviderFailure."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One call's key. ``pool`` took it: another one, made at a reload, judges it by nothing."""

    index: int
    secret: str = field(repr=False)
    pool: object = field(default=None, repr=False, compare=False)


def ident_of(secret: str) -> str:
    """A key's name in credentials.json and in the log."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class StaticKey:
    """A key of the configuration."""

    refreshable = False

    def __init__(self, value: str) -> None:
        self.ident = ident_of(value)
        self._secret = Secret(value)

    async def fetch(self, stale: str | None) -> Secret:
        return self._secret


class _Key:
    def __init__(self, source: Source, health: KeyHealth) -> None:
        self.source = source
        self.health = health
        self.secret: Secret | None = None
        self.fetching: asyncio.Task[Secret | ProviderFailure] | None = None
        self.refused: tuple[float, ProviderFailure] | None = None


class Spawn(Protocol):
    """``Supervisor.spawn``."""

    def __call__(
        self, coro: Coroutine[Any, Any, Secret | ProviderFailure], name: str
    ) -> asyncio.Task[Secret | ProviderFailure]: ...


async def _keep_nothing(health: Mapping[str, KeyHealth]) -> None:
    """For pools that nothing persists."""


class CredentialPool:
    """All keys of one provider. ``kept``: healths as persisted, by ident; ``keep`` persists them."""

    def __init__(
        self,
        sources: Sequence[Source],
        clock: Clock,
        spawn: Spawn,
        *,
        strategy: Strategy = Strategy.FILL_FIRST,
        kept: Mapping[str, Mapping[str, object]] | None = None,
        keep: Callable[[Mapping[str, KeyHealth]], Awaitable[None]] = _keep_nothing,
        on_secret: Callable[[str], None] = lambda secret: None,
        renew_before: float = 300.0,
    ) -> None:
        if not sources:
            raise ValueError("a pool needs at least one key")
        stored = kept or {}
        now = clock.now()
        self._keys = [_Key(s, restored(stored.get(s.ident, {}), now)) for s in sources]
        self._clock = clock
        self._spawn = spawn
        self._strategy = strategy
        self._keep = keep
        self._on_secret = on_secret
        self._renew_before = renew_before
        self._turn = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def refreshable(self) -> bool:
        """Whether one of its keys may be another when it is fetched again."""
        return any(key.source.refreshable for key in self._keys)

    def states(self) -> dict[str, KeyState]:
        """Ident → state now."""
        now = self._clock.now()
        return {k.source.ident: KeyState.LIVE if k.health.usable(now) else k.health.state for k in self._keys}

    def can_refresh(self, lease: Lease | None) -> bool:
        """Whether the lease's key may be another after a refresh."""
        return lease is not None and lease.pool is self and self._keys[lease.index].source.refreshable

    def can_rotate(self, lease: Lease | None) -> bool:
        """Whether another key of the pool could be used now."""
        now = self._clock.now()
        return lease is not None and any(
            key.health.usable(now)
            for at, key in enumerate(self._keys)
            if at != lease.index or lease.pool is not self
        )

    async def take(self) -> Lease:
        """A key for one call. Raises ProviderFailure when it cannot be fetched."""
        now = self._clock.now()
        index = choose([key.health for key in self._keys], self._strategy, self._turn, now)
        key = self._keys[index]
        self._turn = index + 1
        key.health = replace(key.health, uses=key.health.uses + 1)
        secret = key.secret
        if secret is None or (secret.expires_at is not None and secret.expires_at - self._renew_before <= now):
            secret = await self._fetched(key, None)
        return Lease(index, secret.value, self)

    async def rest(self, lease: Lease, verdict: Verdict) -> None:
        """Judges the lease's key by the verdict of its call, and persists that."""
        if lease.pool is not self:
            return
        key = self._keys[lease.index]
        if key.secret is not None and key.secret.value != lease.secret:
            return  # it was refreshed meanwhile: the verdict is about its predecessor
        before, key.health = key.health, judged(key.health, verdict, self._clock.now())
        if key.health != before:
            log.warning(
                "credential_rests", credential=key.source.ident, state=key.health.state.value,
                reason=verdict.reason.value,
            )  # fmt: skip
            await self._keep({k.source.ident: k.health for k in self._keys})

    async def refresh(self, lease: Lease) -> None:
        """The lease's key is fetched anew, unless that happened since it was taken. Raises ProviderFailure."""
        if lease.pool is not self:
            return
        key = self._keys[lease.index]
        if key.secret is None or key.secret.value == lease.secret:
            await self._fetched(key, lease.secret)

    async def _fetched(self, key: _Key, stale: str | None) -> Secret:
        """One fetch for all who wait; a waiter that is cancelled takes nothing from the others, and the fetch
        goes on: its single-use token may be spent already."""
        if key.fetching is None:
            key.fetching = self._spawn(self._fetch(key, stale), "credential.fetch")
        got = await asyncio.shield(key.fetching)
        if isinstance(got, ProviderFailure):
            raise ProviderFailure(got.facts)
        return got

    async def _fetch(self, key: _Key, stale: str | None) -> Secret | ProviderFailure:
        try:
            if key.refused is not None and self._clock.monotonic() < key.refused[0]:
                return key.refused[1]
            secret = await key.source.fetch(stale)
        except ProviderFailure as failure:
            key.secret = None
            key.refused = (self._clock.monotonic() + REFUSED_SECONDS, failure)
            return failure
        finally:
            key.fetching = None
        key.refused = None
        self._on_secret(secret.value)
        key.secret = secret
        return secret
