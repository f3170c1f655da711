"""Speech to text: one recording through the configured model, with the same planner, governor and bounds as answers."""

from __future__ import annotations

from collections.abc import Callable

from hermes.agent.credentials import CredentialPool
from hermes.agent.governor import Governor
from hermes.core.attachments import NotHeard
from hermes.core.clock import Clock
from hermes.core.errors import ProviderFailure
from hermes.core.failures import CallContext, FailureFacts, FaultKind
from hermes.core.governor import CallRequest, Refused
from hermes.core.ports import SpeechProvider
from hermes.core.transcript import without_lone_surrogates
from hermes.policy.classify import classify
from hermes.policy.recovery import RecoveryPolicy, RecoveryTarget, Repair, Wait, initial, plan
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

TRANSCRIBE_SECONDS = 120.0
"""Longest time of one recording's transcription, its repetitions included."""


class Hearing:
    """Implements ``core.attachments.Transcriber`` over one model of one provider."""

    def __init__(
        self,
        provider: str,
        model: str,
        find: Callable[[], SpeechProvider | None],
        governor: Governor,
        clock: Clock,
        random: Callable[[], float],
        policy: RecoveryPolicy,
        pool: Callable[[], CredentialPool | None] = lambda: None,
    ) -> None:
        self._find = find
        self._pool = pool
        self._model = model
        self._governor = governor
        self._clock = clock
        self._random = random
        self.name = f"{provider}/{model}"
        self.policy = RecoveryPolicy(
            (RecoveryTarget(self.name),), policy.retries, policy.base, policy.cap, policy.ratio,
            policy.retry_after_cap, available=frozenset[Repair](),
        )  # fmt: skip

    async def transcribe(self, audio: bytes, name: str, mime: str) -> str | NotHeard:
        """What is said, or why it is not known."""
        deadline = self._clock.monotonic() + TRANSCRIBE_SECONDS
        state = initial(self.policy, deadline)
        while True:
            left = max(0.0, deadline - self._clock.monotonic())
            entered = await self._governor.enter(
                CallRequest(self.name, patience=self.policy.retry_after_cap, wait=left)
            )
            if isinstance(entered, Refused):
                return NotHeard(f"{self.name} cannot be asked to transcribe it now")
            with entered as grant:
                try:
                    text = await self._ask(audio, name, mime)
                except ProviderFailure as failure:
                    verdict = classify(failure.facts, CallContext(now=self._clock.now()))
                    grant.failed(verdict, headers=failure.facts.headers)
                else:
                    grant.succeeded({})
                    return without_lone_surrogates(text).strip() or NotHeard("nothing is said in it")
            log.warning("not_transcribed", target=self.name, reason=verdict.reason.value, rule=verdict.rule)
            state, what_now = plan(
                self.policy, state, verdict, now=self._clock.monotonic(), u=self._random()
            )
            if not isinstance(what_now, Wait):
                return NotHeard(f"{self.name} did not transcribe it ({verdict.reason.value})")
            await self._clock.sleep(what_now.seconds)

    async def _ask(self, audio: bytes, name: str, mime: str) -> str:
        """One call, with a key of the provider's pool where it has one. Raises ProviderFailure."""
        pool, provider = self._pool(), self._find()
        if provider is None:
            raise ProviderFailure(FailureFacts(FaultKind.REQUEST_INVALID, message="the provider is not configured"))
        key = (await pool.take()).secret if pool is not None else None
        return await provider.transcribe(self._model, audio, name, mime, key)
