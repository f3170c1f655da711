"""Rules over what our own side of the wire saw; no wording is read here."""

from __future__ import annotations

from hermes.core.failures import FaultKind, Reason
from hermes.policy.rules import Rule


def _kind(name: str, kind: FaultKind, reason: Reason, *, retryable: bool | None = None) -> Rule:
    return Rule(name, reason, detail=kind.value, kinds=frozenset({kind}), retryable=retryable)


TRANSPORT_RULES: tuple[Rule, ...] = (
    _kind("kind_refused", FaultKind.REFUSED, Reason.TIMEOUT),
    _kind("kind_dns", FaultKind.DNS, Reason.TIMEOUT),
    _kind("kind_connect_timeout", FaultKind.CONNECT_TIMEOUT, Reason.TIMEOUT),
    _kind("kind_pool_timeout", FaultKind.POOL_TIMEOUT, Reason.TIMEOUT),
    _kind("kind_first_byte_timeout", FaultKind.FIRST_BYTE_TIMEOUT, Reason.TIMEOUT),
    _kind("kind_stalled", FaultKind.STALLED, Reason.TIMEOUT),
    _kind("kind_total_timeout", FaultKind.TOTAL_TIMEOUT, Reason.TIMEOUT),
    _kind("kind_reset", FaultKind.RESET, Reason.TIMEOUT),
    _kind("kind_cut", FaultKind.CUT, Reason.TIMEOUT),
    _kind("kind_ended_early", FaultKind.ENDED_EARLY, Reason.TIMEOUT),
    _kind("kind_certificate", FaultKind.CERTIFICATE, Reason.TIMEOUT, retryable=False),
    _kind("kind_proxy", FaultKind.PROXY, Reason.TIMEOUT),
    _kind("kind_bad_json", FaultKind.BAD_JSON, Reason.SERVER_ERROR),
    _kind("kind_empty_answer", FaultKind.EMPTY_ANSWER, Reason.UNKNOWN, retryable=True),
    _kind("kind_truncated_answer", FaultKind.TRUNCATED_ANSWER, Reason.UNKNOWN, retryable=True),
    _kind("kind_truncated_tool_call", FaultKind.TRUNCATED_TOOL_CALL, Reason.UNKNOWN, retryable=True),
)
"""A stream answered with HTML or plain JSON (`wrong_type`) is read first: the page may say what is wrong."""
