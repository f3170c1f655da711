"""The repairs of a request, and what is learned from those that worked (R16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hermes.agent.credentials import CredentialPool, Lease
from hermes.agent.fitting import MAX_OUTPUT, NO_BETA, PLAIN_SCHEMAS, WINDOW, Fit
from hermes.agent.targets import Target
from hermes.core.attachments import Pictures
from hermes.core.clock import Clock
from hermes.core.errors import ProviderFailure, StoreUnavailable
from hermes.core.failures import Reason, Verdict
from hermes.core.learned import Learned, LearnedStore
from hermes.policy.cures import Repair, cures, key_limits
from hermes.policy.recovery import RecoveryPolicy
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

LOWER_TIER = 200_000
"""Tokens of the context tier that every account has."""
LEARNED_FOR = 7 * 86400.0
"""Seconds until something learned is tried out again: servers are updated, accounts are upgraded."""

AVAILABLE_REPAIRS = frozenset({
    Repair.REBUILD_TRANSPORT, Repair.REDUCE_MAX_TOKENS, Repair.RAISE_MAX_TOKENS, Repair.COMPACT,
    Repair.STRIP_GRAMMAR_PATTERNS, Repair.DROP_THINKING_SIGNATURES, Repair.LOWER_CONTEXT_TIER,
    Repair.REFRESH_CREDENTIAL, Repair.ROTATE_CREDENTIAL, Repair.SHRINK_IMAGES, Repair.DROP_IMAGES,
    Repair.MOVE_TOOL_IMAGES, Repair.DROP_LONG_CONTEXT_BETA,
})  # fmt: skip
"""What ``Repairs`` can carry out; ``possible`` leaves out what would change nothing: it is a wasted call."""


class LearnedBook:
    """What is known of each target, in memory; written through to the store."""

    def __init__(self, clock: Clock, store: LearnedStore | None = None) -> None:
        self._clock = clock
        self._store = store
        self._known: dict[tuple[str, str, str], Learned] = {}

    async def load(self) -> None:
        """What earlier starts learned."""
        if self._store is not None:
            self._known = {(f.provider, f.model, f.key): f for f in await self._store.all(self._clock.now())}

    def all(self) -> list[Learned]:
        """Everything that has not expired."""
        now = self._clock.now()
        return [fact for fact in self._known.values() if fact.expires_at > now]

    def of(self, target: Target) -> dict[str, str]:
        """What to heed in the next request to ``target``."""
        name = (target.provider.name, target.model)
        return {fact.key: fact.value for fact in self.all() if (fact.provider, fact.model) == name}

    async def keep(self, target: Target, facts: Mapping[str, str], *, quietly: bool = False) -> None:
        """The repaired call succeeded: remember the repair. A store that refuses costs the memory, not the turn."""
        now = self._clock.now()
        for key, value in facts.items():
            fact = Learned(target.provider.name, target.model, key, value, now, now + LEARNED_FOR)
            self._known[fact.provider, fact.model, key] = fact
            if not quietly:
                log.info("learned", target=target.name, key=key, value=value)
            if self._store is not None:
                try:
                    await self._store.keep(fact)
                except StoreUnavailable as error:
                    log.warning("learned_not_kept", target=target.name, error=str(error))

    async def clear(self, target: str = "") -> int:
        """Forgets what was learned about ``provider/model``, or all; returns how many. Raises StoreUnavailable."""
        provider, _, model = target.partition("/")
        gone = [key for key in self._known if not target or key[:2] == (provider, model)]
        for key in gone:
            del self._known[key]
        if self._store is not None:
            await self._store.clear(provider, model)
        return len(gone)


class Repairs:
    """Carries out what the planner orders, for the calls of one pipeline."""

    def __init__(
        self,
        learned: LearnedBook,
        pools: Mapping[str, CredentialPool] | None = None,
        pictures: Pictures | None = None,
    ) -> None:
        self.learned = learned
        self.pictures = pictures
        self._pools = dict(pools or {})

    @property
    def pools(self) -> Mapping[str, CredentialPool]:
        """The keys of each provider that has any."""
        return self._pools

    def use(self, pools: Mapping[str, CredentialPool]) -> None:
        """Other keys from the next call on (R42)."""
        self._pools = dict(pools)

    async def lease(self, target: Target) -> Lease | None:
        """The key for the next call; None where the adapter has its own. Raises ProviderFailure."""
        pool = self._pools.get(target.provider.name)
        return await pool.take() if pool is not None else None

    def possible(self, policy: RecoveryPolicy, target: Target, fit: Fit, verdict: Verdict) -> RecoveryPolicy:
        """``policy`` without the repairs that could change nothing for this call."""
        pool, lease = self._pools.get(target.provider.name), fit.lease
        without = set(fit.impossible(target, verdict))
        if pool is None or not pool.can_refresh(lease) or fit.spent(target, Repair.REFRESH_CREDENTIAL):
            without.add(Repair.REFRESH_CREDENTIAL)
        if pool is None or not self._can_rotate(pool, target, fit):
            without.add(Repair.ROTATE_CREDENTIAL)
        if not fit.has_thinking():
            without.add(Repair.DROP_THINKING_SIGNATURES)
        if fit.heeds(target, PLAIN_SCHEMAS):
            without.add(Repair.STRIP_GRAMMAR_PATTERNS)
        if fit.max_output is None and target.max_output is None:
            without.add(Repair.RAISE_MAX_TOKENS)
        if (fit.window(target) or LOWER_TIER + 1) <= LOWER_TIER:
            without.add(Repair.LOWER_CONTEXT_TIER)
        if not fit.compactable():
            without.add(Repair.COMPACT)
        return replace(policy, available=policy.available - without, repair_limits=self.limits(policy))

    def rotates(self, target: Target, fit: Fit, verdict: Verdict) -> bool:
        """Whether another key takes over after this failure, so that the target need not rest."""
        pool = self._pools.get(target.provider.name)
        cured = Repair.ROTATE_CREDENTIAL in cures(verdict.reason, verdict.detail)
        return cured and pool is not None and self._can_rotate(pool, target, fit)

    def _can_rotate(self, pool: CredentialPool, target: Target, fit: Fit) -> bool:
        """A pool is gone through once a call: a key that has rested meanwhile is not met again."""
        return pool.can_rotate(fit.lease) and fit.spent(target, Repair.ROTATE_CREDENTIAL) < len(pool) - 1

    async def make(
        self, repair: Repair, limit: int | None, target: Target, verdict: Verdict, fit: Fit
    ) -> None:
        """One repair of ``AVAILABLE_REPAIRS``."""
        fit.spend(target, repair)
        pool, lease = self._pools.get(target.provider.name), fit.lease
        match repair:
            case Repair.REBUILD_TRANSPORT:
                await target.provider.rebuild()
            case Repair.REDUCE_MAX_TOKENS:
                fit.max_output = limit if limit and limit > 0 else max(256, (fit.max_output or 4096) // 2)
                if limit and verdict.detail == "output_cap" and verdict.reason is Reason.FORMAT_ERROR:
                    fit.made(target, MAX_OUTPUT, str(limit))
            case Repair.RAISE_MAX_TOKENS:
                fit.max_output = 2 * (fit.max_output or target.max_output or 0)
            case Repair.COMPACT:
                await fit.compact(target, verdict)
            case Repair.STRIP_GRAMMAR_PATTERNS:
                fit.made(target, PLAIN_SCHEMAS, "1")
            case Repair.DROP_THINKING_SIGNATURES:
                fit.drop_thinking()
            case Repair.LOWER_CONTEXT_TIER:
                fit.made(target, WINDOW, str(LOWER_TIER))
            case Repair.SHRINK_IMAGES | Repair.DROP_IMAGES | Repair.MOVE_TOOL_IMAGES:
                fit.repair_images(repair, target, verdict)
            case Repair.DROP_LONG_CONTEXT_BETA:
                fit.made(target, NO_BETA, "1")
            case Repair.REFRESH_CREDENTIAL if pool is not None and lease is not None:
                try:
                    await pool.refresh(lease)
                except ProviderFailure as failure:  # the next take tells it to the planner
                    log.warning("refresh_failed", target=target.name, error=failure.facts.message)
            case Repair.ROTATE_CREDENTIAL if pool is not None and lease is not None:
                await pool.rest(lease, verdict)
            case _:
                log.error("repair_not_offered", repair=repair.value)

    def limits(self, policy: RecoveryPolicy) -> dict[Repair, int]:
        """The limits of all repairs; those of keys are what the pools here allow."""
        asked = {target.name.partition("/")[0] for target in policy.targets}
        pools = [pool for name, pool in self._pools.items() if name in asked]
        return {**policy.repair_limits, **key_limits((len(pool), pool.refreshable) for pool in pools)}
