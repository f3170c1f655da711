"""One model call with its whole recovery: attempt → facts → classify → plan → obey (DESIGN §5).

The planner decides, this shell waits, repairs and switches. There is no second retrier anywhere: SDK
retries are off, one state, one deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from hermes.agent.account import Account
from hermes.agent.continuation import Continuation, Showing
from hermes.agent.counting import TokenBook
from hermes.agent.endings import counted_input, cut_off_answer
from hermes.agent.fitting import Fit
from hermes.agent.governor import Governor
from hermes.agent.images import with_pictures
from hermes.agent.repairs import AVAILABLE_REPAIRS, LearnedBook, Repairs
from hermes.agent.targets import Answered, Ask, GaveUp, OverBudget, Parked, Target, UpstreamBook
from hermes.agent.upstream import Grant
from hermes.core.clock import Clock
from hermes.core.errors import ProviderFailure
from hermes.core.failures import CallContext, FaultKind, Reason, Verdict
from hermes.core.governor import CallRequest, Guard, Refused
from hermes.core.money import Refusal
from hermes.core.ports import TurnObserver
from hermes.core.transcript import ModelReply, ModelRequest, images_of
from hermes.policy.breaker import policy_for
from hermes.policy.classify import classify
from hermes.policy.recovery import (
    Apply,
    GiveUp,
    Park,
    Plan,
    RecoveryPolicy,
    RecoveryState,
    Repair,
    SwitchTarget,
    Wait,
    first_target,
    initial,
    others,
    plan,
    skip,
)
from hermes.policy.sentences import sentence
from hermes.runtime.logs import get_logger

log = get_logger(__name__)


class Pipeline:
    """Makes calls to the primary target and, when need be, its fallbacks."""

    def __init__(
        self,
        targets: Sequence[Target],
        policy: RecoveryPolicy,
        clock: Clock,
        random: Callable[[], float],
        *,
        upstreams: UpstreamBook,
        on_call: Callable[[str, str], None] = lambda provider, reason: None,
        trim_share: float = 0.75,
        governor: Governor | None = None,
        repairs: Repairs | None = None,
    ) -> None:
        self.targets = tuple(targets)
        self.policy = policy
        self._clock = clock
        self._random = random
        self._upstreams = upstreams
        self._on_call = on_call
        self.trim_share = trim_share
        self.repairs = repairs if repairs is not None else Repairs(LearnedBook(clock))
        self.tokens = TokenBook(self.repairs.learned)
        bounds = policy_for(retries=policy.retries, base=policy.base, cap=policy.cap)
        self.governor = governor if governor is not None else Governor(clock, random, policy=bounds)

    async def call(
        self, ask: Ask, observer: TurnObserver, deadline: float, account: Account | None = None
    ) -> Answered | GaveUp | Parked | OverBudget:
        """One answer or one sentence. ``deadline`` is absolute on the monotonic clock; ``account`` pays."""
        targets, bounds = self.targets, self.policy  # a reload is for the calls that begin after it
        tokens = self.tokens.prompt(targets[0], ModelRequest("", ask.system, ask.items, ask.tools))
        first = first_target(bounds, tokens, self.trim_share)
        state = initial(bounds, deadline, prompt_tokens=tokens, target=first, has_images=bool(images_of(ask.items)))
        fit = Fit(ask, self._clock.monotonic(), self.repairs.learned.of, self.tokens.calibration)
        parts, on_show = Continuation(bounds.continuations), False
        while True:
            target = targets[state.target]
            request = parts.request(fit.request(target, self.trim_share))
            beyond = _beyond(fit) if not parts.begun else None
            entered = beyond or await self._admit(ask, target, bounds, state, observer)
            if not isinstance(entered, Grant):
                verdict = entered if isinstance(entered, Verdict) else entered.verdict
                state, what_now = self._skip(bounds, state, entered)
                end = await self._obey(what_now, target, verdict, bounds, state, fit, observer)
                if end is not None:
                    return Answered(parts.as_it_stands(), target) if parts.begun else end
                continue
            shown = Showing(observer, parts.kept, stale=on_show)
            try:
                reply = await self._attempt(entered, target, request, shown.on_text, fit, account)
                if isinstance(reply, Refusal):
                    return OverBudget(reply, Answered(parts.as_it_stands(), target) if parts.begun else None)
            except ProviderFailure as failure:
                shown.end(complete=False)
                part = cut_off_answer(failure.facts, request)
                verdict = classify(failure.facts, self._context(target, request))
                self._note(target, verdict if part is None else None, failure)
                await self._learn(target, request, fit, verdict if part is None else None, failure)
                if part is None and parts.begun and failure.facts.kind is FaultKind.EMPTY_ANSWER:
                    return Answered(parts.as_it_stands(), target)
            else:
                shown.end(complete=True)
                self._note(target, None, None)
                await self._learn(target, request, fit, None, reply.usage.input_tokens)
                return Answered(parts.whole(reply), target)
            on_show = on_show or shown.any
            if part is not None:
                if not parts.take(part) or self._clock.monotonic() >= deadline:
                    return Answered(parts.as_it_stands(), target)
                observer.on_notice("continue", f"{target.name} reached its output limit; asking it to go on.")
                continue
            if on_show and not parts.begun:
                observer.on_restart()
                on_show = False
            policy = self.repairs.possible(bounds, target, fit, verdict)
            state, what_now = plan(policy, state, verdict, now=self._clock.monotonic(), u=self._random())
            state, what_now = self._unless_open(bounds, state, what_now, target)
            end = await self._obey(what_now, target, verdict, bounds, state, fit, observer)
            if end is not None:
                return Answered(parts.as_it_stands(), target) if parts.begun else end

    def beside(self, targets: Sequence[Target], policy: RecoveryPolicy) -> Pipeline:
        """Another one for calls of another kind: what is known of upstreams, keys and vocabularies is shared."""
        other = Pipeline(
            targets, policy, self._clock, self._random, upstreams=self._upstreams, on_call=self._on_call,
            trim_share=self.trim_share, governor=self.governor, repairs=self.repairs,
        )  # fmt: skip
        other.tokens = self.tokens
        return other

    def window(self) -> int | None:
        """Tokens of the primary's window, as configured and as learned; where a larger one is preferred to leaving
        something out, that of the target with the largest. None = unknown."""
        first, *more = [Fit(_NOTHING, known=self.repairs.learned.of).window(target) for target in self.targets]
        known = [size for size in more if size is not None] if self.policy.prefer_bigger_window else []
        return None if first is None else max([first, *known])

    async def _admit(
        self, ask: Ask, target: Target, policy: RecoveryPolicy, state: RecoveryState, observer: TurnObserver
    ) -> Grant | Refused:
        """Permission to call; with another target left, no guard is waited for longer than one retry would be."""
        wait = max(0.0, state.deadline - self._clock.monotonic())
        patience = policy.retry_after_cap
        if others(policy, state):
            patience = min(patience, policy.base)
            wait = min(wait, patience)
        tokens = (state.prompt_tokens or 0) + (target.max_output or 0)
        request = CallRequest(target.name, tokens, ask.urgency, ask.principal, patience, wait)
        return await self.governor.enter(
            request, lambda guard: observer.on_notice("wait", f"Waiting for a turn at {target.name}.")
        )

    def _skip(
        self, policy: RecoveryPolicy, state: RecoveryState, refused: Refused | Verdict
    ) -> tuple[RecoveryState, Plan]:
        """A guarded target costs no call. An open circuit is not sat out where the turn can be parked (R13).

        A verdict is that of a prompt which cannot fit: nothing but another target can help.
        """
        if isinstance(refused, Verdict):
            policy = replace(policy, available=frozenset())
            return plan(policy, state, refused, now=self._clock.monotonic(), u=self._random())
        state, what_now = skip(
            policy, state, refused.verdict, now=self._clock.monotonic(), u=self._random()
        )
        if isinstance(what_now, Wait) and refused.guard is Guard.CIRCUIT and policy.can_park:
            return state, Park(what_now.until, refused.verdict)
        return state, what_now

    def _unless_open(
        self, policy: RecoveryPolicy, state: RecoveryState, what_now: Plan, target: Target
    ) -> tuple[RecoveryState, Plan]:
        """No wait for a target whose circuit has just opened, where there is another way."""
        if not isinstance(what_now, Wait):
            return state, what_now
        guarded = self.governor.open_circuit(target.name)
        if guarded is None or not (policy.can_park or others(policy, state, guarded.verdict)):
            return state, what_now
        return self._skip(policy, state, guarded)

    async def _attempt(
        self, grant: Grant, target: Target, request: ModelRequest, on_text: Callable[[str], None], fit: Fit,
        account: Account | None,
    ) -> ModelReply | Refusal:  # fmt: skip
        """One call under its grant, with a key of the provider's pool, its money reserved before and noted after.

        Raises ProviderFailure.
        """
        fit.lease = None
        with grant:
            try:
                fit.lease = await self.repairs.lease(target)
                if fit.lease is not None:
                    request = replace(request, key=fit.lease.secret)
                request = await with_pictures(request, self.repairs.pictures, fit.image_limits(target))
                if account is not None:
                    afforded = await account.reserve(target, request)
                    if isinstance(afforded, Refusal):
                        return afforded
                    request, on_text = afforded, account.hear(on_text)
                reply = await target.provider.complete(request, grant.watch(on_text))
            except ProviderFailure as failure:
                if account is not None:
                    account.failed(target, failure.facts, request)
                verdict = classify(failure.facts, self._context(target, request))
                rotated = self.repairs.rotates(target, fit, verdict)
                grant.failed(verdict, rotated=rotated, headers=failure.facts.headers)
                raise
            grant.succeeded(reply.limits, reply.usage.input_tokens + reply.usage.output_tokens)
            if account is not None:
                account.answered(target, request, reply)
            return reply

    async def _obey(
        self, what_now: Plan, target: Target, verdict: Verdict, policy: RecoveryPolicy, state: RecoveryState, fit: Fit,
        observer: TurnObserver,
    ) -> GaveUp | Parked | None:  # fmt: skip
        match what_now:
            case Wait(seconds):
                told = _retry_text(target, verdict, seconds, state.retries_used, policy.retries)
                observer.on_notice("retry", told)
                await self._clock.sleep(seconds)
            case Apply(repair, limit):
                observer.on_notice("repair", _repair_text(repair))
                await self.repairs.make(repair, limit, target, verdict, fit)
            case SwitchTarget(index):
                self.governor.outage(target.name, verdict, fit.begun)
                other = policy.targets[index].name
                why = "cannot take so long a text" if verdict.reason is Reason.CONTEXT_OVERFLOW else "does not answer"
                observer.on_notice("fallback", f"{target.name} {why}; asking {other}.")
            case Park(_, final):
                outage = self.governor.outage(target.name, final, fit.begun)
                if outage is not None:
                    return Parked(final, outage, _parked_text(target, final))
                return GaveUp(final, sentence(final, provider=target.provider.name, model=target.model))
            case GiveUp(key, final):
                text = sentence(final, provider=target.provider.name, model=target.model, key=key)
                return GaveUp(final, text)
            case _:
                assert_never(what_now)
        return None

    async def _learn(
        self, target: Target, request: ModelRequest, fit: Fit, verdict: Verdict | None, counted: ProviderFailure | int
    ) -> None:
        """What an attempt taught: how the provider counts, and that repairs worked. ``verdict`` None: it was taken,
        be its answer cut off or whole."""
        if verdict is None:
            tokens = counted if isinstance(counted, int) else counted_input(counted.facts)
            await self.tokens.note(target, request, tokens)
            await self.repairs.learned.keep(target, fit.to_learn(target))
        elif verdict.reason is Reason.CONTEXT_OVERFLOW and verdict.detail is None:
            await self.tokens.note(target, request, verdict.requested or 0)

    def _context(self, target: Target, request: ModelRequest) -> CallContext:
        return CallContext(
            prompt_tokens=self.tokens.prompt(target, request),
            context_window=target.context_window,
            max_output=request.max_output,
            has_tools=bool(request.tools),
            now=self._clock.now(),
        )

    def _note(self, target: Target, verdict: Verdict | None, failure: ProviderFailure | None) -> None:
        reason = verdict.reason.value if verdict is not None else "ok"
        self._on_call(target.provider.name, reason)
        self._upstreams.note(target.name, self._clock.now(), verdict)
        if verdict is not None and failure is not None:
            log.warning(
                "provider_failed", target=target.name, reason=reason, detail=verdict.detail, rule=verdict.rule,
                status=failure.facts.status, error=_brief(failure.facts.message),
            )  # fmt: skip


_NOTHING = Ask("", (), ())


def _beyond(fit: Fit) -> Verdict | None:
    """The verdict that a call would meet for certain: what may not be left out is larger than the window."""
    if fit.beyond is None:
        return None
    return Verdict(Reason.CONTEXT_OVERFLOW, "beyond_the_window", limit=fit.beyond)


_WHY: Mapping[tuple[Reason, str | None], str] = {
    (Reason.RATE_LIMIT, None): "limits how often it may be asked",
    (Reason.OVERLOADED, None): "is overloaded",
    (Reason.SERVER_ERROR, None): "had an internal error",
    (Reason.TIMEOUT, None): "did not answer in time",
    (Reason.TIMEOUT, "refused"): "refused the connection",
    (Reason.TIMEOUT, "dns"): "has an address that cannot be found",
    (Reason.TIMEOUT, "cut"): "broke off in the middle of its answer",
    (Reason.TIMEOUT, "stalled"): "fell silent in the middle of its answer",
}


def _retry_text(target: Target, verdict: Verdict, seconds: float, number: int, of: int) -> str:
    general = _WHY.get((verdict.reason, None), f"failed ({verdict.reason.value})")
    why = _WHY.get((verdict.reason, verdict.detail), general)
    return f"{target.name} {why}; trying again in {seconds:.0f} s ({number} of {of})."


def _parked_text(target: Target, verdict: Verdict) -> str:
    """Why nobody answers now, and that it needs no second asking."""
    why = sentence(replace(verdict, retry_after=None), provider=target.provider.name, model=target.model)
    return (
        f"{why.replace('Please try again in a few minutes.', '').strip()} I keep your message and answer as soon "
        "as it is back; /stop takes it back."
    )


def _brief(text: str, limit: int = 300) -> str:
    """Short enough for a line; cut between words, or half a secret would escape the redactor (R40)."""
    return text if len(text) <= limit else f"{text[:limit].rpartition(' ')[0]} …"


def _repair_text(repair: Repair) -> str:
    match repair:
        case Repair.REBUILD_TRANSPORT:
            return "Opening fresh connections and trying once more."
        case Repair.REDUCE_MAX_TOKENS:
            return "Asking for a shorter answer."
        case Repair.COMPACT:
            return "The conversation is too long for the model; leaving out its oldest part."
        case Repair.SHRINK_IMAGES:
            return "A picture is too large for the model; sending it smaller."
        case Repair.DROP_IMAGES:
            return "The model does not take the pictures; asking without them."
        case Repair.REFRESH_CREDENTIAL:
            return "The key was refused; fetching a new one."
        case Repair.ROTATE_CREDENTIAL:
            return "Trying the next key."
        case _:
            return f"Repairing the request: {repair.value.replace('_', ' ')}."


def with_policy(policy: RecoveryPolicy, targets: Sequence[Target]) -> RecoveryPolicy:
    """The same bounds for these targets, offering only the repairs that exist."""
    from hermes.policy.recovery import RecoveryTarget

    named = tuple(RecoveryTarget(t.name, t.context_window, t.max_output) for t in targets)
    return replace(policy, targets=named, available=AVAILABLE_REPAIRS)
