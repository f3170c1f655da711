"""What `hermes explain error|policy` prints, as plain values."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.policy.classify import classify, facts_from_record
from hermes.policy.cures import CURES, SMALL_LIMITS, Repair
from hermes.policy.recovery import RecoveryPolicy, bound, first_action


def explain_error(record: object) -> dict[str, object]:
    """One input line of `hermes explain error --jsonl` as its output line (CONTRACT). Never raises.

    Anything but a mapping counts as an error whose body it is.
    """
    line: Mapping[str, object] = (
        {str(key): value for key, value in record.items()}
        if isinstance(record, Mapping)
        else {"body": record}
    )
    verdict = classify(*facts_from_record(line))
    return {
        "id": line.get("id"),
        "reason": verdict.reason.value,
        "detail": verdict.detail,
        "retryable": verdict.retryable,
        "action": first_action(verdict),
        "rule": verdict.rule,
    }


def explain_policy(policy: RecoveryPolicy) -> list[str]:
    """The bounds and the whole strategy of one model call, a line each, for people."""
    count = len(policy.targets)
    lines = [
        f"targets: {', '.join(target.name for target in policy.targets)}",
        f"retries: {policy.retries} after the first attempt, per target; then one new connection pool if the "
        f"connection failed",
        f"waits: {policy.base:g} s doubling to {policy.cap:g} s, the last {policy.ratio:.0%} of each drawn at random",
        f"stated waits: obeyed up to {policy.retry_after_cap:g} s; beyond it another target"
        + (", else the turn is parked" if policy.can_park else ", else a sentence"),
        f"most calls for one answer, whatever fails: {bound(policy)} "
        f"= {count} x ({policy.retries} + 1 + 1) + {bound(policy) - count * (max(0, policy.retries) + 2)} repairs",
    ]
    lines.append(
        f"an answer that the output limit cuts off is asked to go on at most {policy.continuations} times, "
        "beside that bound"
    )
    if count == 1:
        lines.append(
            "dead end: there is no other target; what waiting and repairs cannot cure ends in a sentence"
        )
    for (reason, detail), row in CURES.items():
        name = f"{reason.value}/{detail}" if detail else reason.value
        lines.append(f"cure of {name}: {', '.join(_named(repair, policy) for repair in row) or 'none'}")
    for (reason, detail), limit in SMALL_LIMITS.items():
        name = f"{reason.value}/{detail}" if detail else reason.value
        lines.append(f"plain retries of {name}: at most {limit}")
    return lines


def _named(repair: Repair, policy: RecoveryPolicy) -> str:
    if repair not in policy.available:
        return f"{repair.value} (not in this build)"
    limit = policy.limit(repair)
    return repair.value if limit == 1 else f"{repair.value} (at most {limit})"
