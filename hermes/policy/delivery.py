"""What a failed platform call means, and whether it may be sent again (R18, R19). Pure and total."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from hermes.core.delivery import (
    Bury,
    Decision,
    DeliveryFacts,
    DeliveryReason,
    DeliveryVerdict,
    Hold,
    Operation,
    SendAgain,
    SendMarked,
    SendPlain,
    Sent,
    Succeeded,
    Uncertain,
    WaitLink,
)
from hermes.policy.delivery_rules import RULES
from hermes.policy.delivery_signals import read_signals

MARK_DELAY = 30.0
"""Seconds before an uncertain create is sent once more: late arrivals show themselves first (R19)."""
MAX_RETRY_AFTER = 86_400.0
MAX_PAUSE = 300.0
_JITTER = 0.25
_STATED_WAIT = re.compile(
    r"retry[ _-]?(?:in|after)\D{0,4}(\d{1,9}(?:\.\d{1,9})?)|(?:flood|slowmode)_wait_(\d{1,9})"
)
_NEW_CHAT = re.compile(r"(?:supergroup|new chat id|migrate_to_chat_id)\D{0,20}?(-\d{6,20})")


@dataclass(frozen=True, slots=True)
class SweepPolicy:
    """``gateway.delivery``: retries of one sweep, the first pause in seconds, what uncertainty becomes."""

    max_retries: int = 2
    base_delay: float = 2.0
    uncertain: Uncertain = Uncertain.MARK


def classify_delivery(facts: DeliveryFacts) -> DeliveryVerdict:
    """What this failure means: the first rule that matches. Never raises, whatever `facts` holds."""
    signals = read_signals(facts)
    rule = next((rule for rule in RULES if rule.matches(signals)), RULES[-1])
    new_chat = _new_chat(facts, signals.text)
    if new_chat is not None and rule.reason in (DeliveryReason.UNKNOWN, DeliveryReason.PERMANENT_TARGET):
        return DeliveryVerdict(DeliveryReason.PERMANENT_TARGET, "migrated", "migrated", None, new_chat)
    return DeliveryVerdict(rule.reason, rule.name, rule.detail, _retry_after(facts, signals.text), new_chat)


def facts_from_record(record: Mapping[str, object]) -> DeliveryFacts:
    """One line of ``hermes explain error --platform --jsonl`` (CONTRACT) as facts. Never raises.

    Read keys: provider (the platform), status, exception (a name or a list), headers, body.
    """
    status = record.get("status")
    if isinstance(status, str) and status.isascii() and status.isdigit():
        status = int(status[:9])
    named = record.get("exception")
    names = [str(n)[:300] for n in named if n] if isinstance(named, list | tuple) else [named]
    headers = record.get("headers")
    return DeliveryFacts(
        platform=str(record.get("provider") or record.get("platform") or "")[:100],
        exception=str(names[0])[:300] if names and names[0] else None,
        status=status if isinstance(status, int) and not isinstance(status, bool) else None,
        headers=(
            {str(k).lower(): str(v)[:1000] for k, v in headers.items()}
            if isinstance(headers, Mapping)
            else {}
        ),
        body=record.get("body"),
        causes=tuple(str(n) for n in names[1:10]),
    )


def decide(
    verdict: DeliveryVerdict,
    facts: DeliveryFacts,
    *,
    attempt: int,
    operation: Operation,
    nonce_enforced: bool,
    marked_already: bool = False,
    plain_already: bool = False,
    u: float,
    uncertain: Uncertain | None = None,
    policy: SweepPolicy | None = None,
) -> Decision:
    """What to do after a failed send (R18, R19).

    `attempt` counts the repeats already made (0 after the first try). `nonce_enforced`: the platform itself
    drops a repeat of a create, or we can look. `marked_already`: the send that failed carried the mark.
    `uncertain` overrides the policy's. `u` in [0, 1). The caller sees to the row's age bound.
    """
    policy = policy or SweepPolicy()
    safe = operation is not Operation.CREATE or nonce_enforced or facts.sent is Sent.NOT_SENT
    doubtful = facts.sent is Sent.MAYBE_SENT or verdict.reason is DeliveryReason.TIMEOUT_AMBIGUOUS
    done = _done_already(verdict, operation)
    if done is not None:
        return done
    if doubtful and not safe and verdict.reason in _MAY_HAVE_ARRIVED:
        return _uncertain(uncertain or policy.uncertain, marked_already, policy, verdict)
    wait = max(_pause(attempt, u, policy), verdict.retry_after or 0.0)
    spent = attempt >= policy.max_retries
    match verdict.reason:
        case DeliveryReason.FLOOD_WAIT:
            return SendAgain(wait)
        case DeliveryReason.NETWORK_RETRYABLE | DeliveryReason.TIMEOUT_AMBIGUOUS:
            return WaitLink() if spent else SendAgain(wait)
        case DeliveryReason.PERMANENT_AUTH | DeliveryReason.FATAL_CONFIG | DeliveryReason.CONFLICT:
            return WaitLink()
        case DeliveryReason.FORMATTING:
            return Bury(remedy(verdict)) if plain_already else SendPlain()
        case DeliveryReason.TOO_LONG | DeliveryReason.PERMANENT_TARGET:
            return Bury(remedy(verdict))
        case DeliveryReason.UNKNOWN:
            if not spent:
                return SendAgain(wait)
            return Hold(remedy(verdict)) if verdict.detail == "server" else Bury(remedy(verdict))
        case _:
            assert_never(verdict.reason)


def remedy(verdict: DeliveryVerdict) -> str:
    """One sentence for the owner: what it means and what is done or to be done."""
    if verdict.detail == "not_modified":
        return "the message is as wanted already; counted as delivered"
    if verdict.detail == "migrated":
        named = f" ({verdict.new_chat})" if verdict.new_chat else ""
        return f"the group has a new id{named}; use it from now on"
    if verdict.detail == "certificate":
        return "the server's certificate is not trusted here; check the clock, the proxy and base_url"
    return _REMEDIES[verdict.reason]


_REMEDIES: Mapping[DeliveryReason, str] = {
    DeliveryReason.NETWORK_RETRYABLE: "the platform could not be reached; tried again when its link is up",
    DeliveryReason.FLOOD_WAIT: "the platform limits our rate; this chat waits as long as it asked",
    DeliveryReason.TIMEOUT_AMBIGUOUS: "no answer in time: it may have arrived; repeated only with a mark",
    DeliveryReason.FORMATTING: "the platform refused the markup; the whole text goes out without it",
    DeliveryReason.TOO_LONG: "larger than the platform accepts; it must be split or sent as a smaller file",
    DeliveryReason.PERMANENT_TARGET: "the chat cannot be written to (gone, closed, blocked, or no right)",
    DeliveryReason.PERMANENT_AUTH: "the platform refuses our token; put a valid one into the configuration",
    DeliveryReason.CONFLICT: "somebody else uses the same token; stop the other program",
    DeliveryReason.FATAL_CONFIG: "the app lacks a scope, intent or token; mend its settings",
    DeliveryReason.UNKNOWN: "the platform refused for a reason that is not known to us",
}
_MAY_HAVE_ARRIVED = frozenset(
    {DeliveryReason.NETWORK_RETRYABLE, DeliveryReason.TIMEOUT_AMBIGUOUS, DeliveryReason.UNKNOWN}
)


def _done_already(verdict: DeliveryVerdict, operation: Operation) -> Succeeded | None:
    if verdict.detail == "not_modified" and operation is not Operation.CREATE:
        return Succeeded("not_modified")
    if verdict.detail == "message_gone" and operation is Operation.DELETE:
        return Succeeded("already_gone")
    return None


def _uncertain(
    uncertain: Uncertain, marked_already: bool, policy: SweepPolicy, verdict: DeliveryVerdict
) -> SendMarked | Hold:
    """A create that may have arrived: once more with the mark, or held; never a third time."""
    if marked_already:
        return Hold("it may have arrived, and so may its marked repeat")
    if uncertain is Uncertain.HOLD:
        return Hold("it may have arrived; repeating is switched off (gateway.delivery.uncertain: hold)")
    return SendMarked(max(MARK_DELAY, policy.base_delay, verdict.retry_after or 0.0))


def _pause(attempt: int, u: float, policy: SweepPolicy) -> float:
    """base · 2^attempt up to MAX_PAUSE, plus 0–25 %."""
    draw = min(max(u, 0.0), 1.0) if math.isfinite(u) else 1.0
    full = min(MAX_PAUSE, policy.base_delay * 2.0 ** min(max(attempt, 0), 16))
    return float(full * (1.0 + _JITTER * draw))


def _retry_after(facts: DeliveryFacts, text: str) -> float | None:
    """The wait in seconds that the adapter, the body, a header or the sentence states, at most a day."""
    body = facts.body if isinstance(facts.body, Mapping) else {}
    parameters = body.get("parameters")
    stated: list[object] = [facts.retry_after, body.get("retry_after")]
    if isinstance(parameters, Mapping):
        stated.append(parameters.get("retry_after"))
    stated.append(next((v for k, v in facts.headers.items() if k.lower() == "retry-after"), None))
    found = _STATED_WAIT.search(text)
    stated.append(found.group(1) or found.group(2) if found else None)
    for value in stated:
        seconds = _seconds(value)
        if seconds is not None:
            return min(seconds, MAX_RETRY_AFTER)
    return None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0.0 else None


def _new_chat(facts: DeliveryFacts, text: str) -> str | None:
    if facts.migrate_to:
        return facts.migrate_to
    parameters = facts.body.get("parameters") if isinstance(facts.body, Mapping) else None
    if isinstance(parameters, Mapping):
        named = parameters.get("migrate_to_chat_id")
        if isinstance(named, int | str) and not isinstance(named, bool):
            return str(named)[:40]
    found = _NEW_CHAT.search(text)
    return found.group(1) if found else None
