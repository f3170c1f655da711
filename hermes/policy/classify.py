"""`classify(facts, context) -> Verdict`: total, pure, ordered named rules."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.failures import CallContext, FailureFacts, FaultKind, Reason, Verdict


def classify(facts: FailureFacts, context: CallContext) -> Verdict:
    """What this failure means. Never raises, whatever the facts hold."""
    return Verdict(Reason.UNKNOWN, rule="nothing_known")


def facts_from_record(record: Mapping[str, object]) -> tuple[FailureFacts, CallContext]:
    """One line of `hermes explain error --jsonl` (CONTRACT) as facts and context."""
    return FailureFacts(kind=FaultKind.HTTP_STATUS), CallContext()
