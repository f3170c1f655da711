"""`classify(facts, context) -> Verdict`: total, pure, ordered named rules (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.failures import CallContext, FailureFacts, FaultKind, Phase, Reason, Verdict
from hermes.policy.retry_after import parse_waits
from hermes.policy.rules import Rule
from hermes.policy.rules_codes import CODE_RULES
from hermes.policy.rules_generic import GENERIC_RULES
from hermes.policy.rules_text import TEXT_RULES
from hermes.policy.rules_transport import TRANSPORT_RULES
from hermes.policy.signals import lower_headers, parse_status, read_signals
from hermes.policy.stated_limits import stated_limit
from hermes.policy.stated_rates import stated_rate

RULES: tuple[Rule, ...] = (*TRANSPORT_RULES, *CODE_RULES, *TEXT_RULES, *GENERIC_RULES)
"""The whole table in order; the last rule matches everything."""


def classify(facts: FailureFacts, context: CallContext) -> Verdict:
    """What this failure means: the first rule of `RULES` that matches. Never raises, whatever `facts`
    holds."""
    signals = read_signals(facts)
    rule = next((rule for rule in RULES if rule.matches(signals, context)), RULES[-1])
    waits = parse_waits(signals.headers, facts.body, signals.text, now=context.now)
    limit, requested = stated_limit(rule.reason, rule.detail, signals)
    return Verdict(
        reason=rule.reason,
        rule=rule.name,
        detail=rule.detail,
        retry_after=waits.retry_after,
        reset_at=waits.reset_at,
        retryable=rule.is_retryable,
        limit=limit,
        requested=requested,
        rate=stated_rate(signals.text) if rule.reason is Reason.RATE_LIMIT else None,
    )


def facts_from_record(record: Mapping[str, object]) -> tuple[FailureFacts, CallContext]:
    """One line of `hermes explain error --jsonl` (CONTRACT) as facts and context. Never raises.

    Read keys: provider, model, status, exception (a name or a list: the class and its explicit causes),
    headers, body, context (prompt_tokens, context_window, max_output, now). Others are ignored.
    """
    status = parse_status(record.get("status"))
    named = record.get("exception")
    names = (
        [str(n)[:300] for n in named if n]
        if isinstance(named, list | tuple)
        else [str(named)[:300]]
        if named
        else []
    )
    body = record.get("body")
    context = record.get("context")
    given = context if isinstance(context, Mapping) else {}
    now = given.get("now")
    facts = FailureFacts(
        kind=FaultKind.ERROR_IN_200 if status is not None and status < 400 else FaultKind.HTTP_STATUS,
        phase=Phase.RESPONSE,
        provider=str(record.get("provider") or "")[:200],
        model=str(record.get("model") or "")[:200],
        status=status,
        body=body,
        headers=lower_headers(record.get("headers")),
        exception=names[0] if names else None,
        causes=tuple(names[1:10]),
    )
    return facts, CallContext(
        prompt_tokens=_count(given.get("prompt_tokens")),
        context_window=_count(given.get("context_window")),
        max_output=_count(given.get("max_output")),
        now=float(now)
        if isinstance(now, int | float) and not isinstance(now, bool) and abs(now) < 1e12
        else None,
    )


def _count(value: object) -> int | None:
    """A count of tokens from an int or a digit string; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 13:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None
