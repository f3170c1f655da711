"""What a platform's refusal means, and whether the same may be sent again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.delivery import (
    Bury,
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
from hermes.policy.delivery import SweepPolicy, classify_delivery, decide, facts_from_record, remedy
from hermes.policy.delivery_rules import RULES

HERE = Path(__file__).parent
R = DeliveryReason


def records() -> list[Any]:
    """Public reports (the error corpus), then sentences of our own in other words."""
    second = HERE.parents[1] / "data" / "errors" / "second_platform.jsonl"
    lines = [
        line
        for file in (HERE / "public_records.jsonl", HERE / "own_records.jsonl", second)
        for line in file.read_text("utf-8").splitlines()
    ]
    return [pytest.param(json.loads(line), id=json.loads(line)["id"]) for line in lines]


@pytest.mark.parametrize("record", records())
def test_a_reported_failure_is_understood(record: dict[str, Any]) -> None:
    verdict = classify_delivery(facts_from_record(record))
    assert verdict.reason.value == record["label"], verdict


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        (DeliveryFacts("telegram", body={"parameters": {"retry_after": 14}}, status=429), 14.0),
        (DeliveryFacts("telegram", message="Flood control exceeded. Retry in 5.5 seconds"), 5.5),
        (DeliveryFacts("telegram", message="FLOOD_WAIT_33"), 33.0),
        (DeliveryFacts("discord", body={"retry_after": 0.25}, status=429), 0.25),
        (DeliveryFacts("slack", status=429, headers={"Retry-After": "30"}), 30.0),
        (DeliveryFacts("slack", status=429, headers={"retry-after": "-3"}), None),
        (DeliveryFacts("slack", status=429, retry_after=float("inf")), None),
        (DeliveryFacts("telegram", status=429, retry_after=1e9), 86_400.0),
    ],
)
def test_the_stated_wait_is_read_in_seconds_and_clamped(facts: DeliveryFacts, seconds: float | None) -> None:
    verdict = classify_delivery(facts)
    assert (verdict.reason, verdict.retry_after) == (R.FLOOD_WAIT, seconds)


def test_a_migrated_group_names_its_new_chat() -> None:
    body = {
        "description": "Bad Request: group chat was upgraded",
        "parameters": {"migrate_to_chat_id": -1001},
    }
    verdict = classify_delivery(DeliveryFacts("telegram", status=400, body=body))
    assert (verdict.reason, verdict.detail, verdict.new_chat) == (R.PERMANENT_TARGET, "migrated", "-1001")


def test_what_our_side_of_the_wire_saw_decides_where_no_answer_came() -> None:
    assert classify_delivery(DeliveryFacts("discord", sent=Sent.NOT_SENT)).reason is R.NETWORK_RETRYABLE
    assert classify_delivery(DeliveryFacts("discord", sent=Sent.MAYBE_SENT)).reason is R.TIMEOUT_AMBIGUOUS


def test_rule_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=1000, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["id", "provider", "status", "exception", "headers", "body"]),
        JSON | st.binary(max_size=20),
    )
)
def test_no_record_makes_the_classifier_raise(record: dict[str, object]) -> None:
    verdict = classify_delivery(facts_from_record(record))
    assert verdict.rule
    assert verdict.retry_after is None or 0.0 <= verdict.retry_after <= 86_400.0
    assert remedy(verdict)


def test_a_hostile_body_does_not_slow_the_rules_down() -> None:
    deep: object = "too long"
    for _ in range(2000):
        deep = [deep]
    for body in (deep, "a_" * 200_000, "timeout " * 50_000, {str(n): "x" * 1000 for n in range(5000)}):
        assert classify_delivery(DeliveryFacts("telegram", body=body)).rule


AGAIN = {"attempt": 0, "operation": Operation.CREATE, "nonce_enforced": False, "u": 0.0}
MAYBE = DeliveryFacts("telegram", sent=Sent.MAYBE_SENT)
NOT_SENT = DeliveryFacts("telegram", sent=Sent.NOT_SENT)
REFUSED = DeliveryFacts("telegram", sent=Sent.REFUSED, status=400)
TABLE: list[tuple[R, DeliveryFacts, dict[str, Any], object]] = [
    (R.NETWORK_RETRYABLE, NOT_SENT, {}, SendAgain(2.0)),
    (R.NETWORK_RETRYABLE, NOT_SENT, {"attempt": 1}, SendAgain(4.0)),
    (R.NETWORK_RETRYABLE, NOT_SENT, {"attempt": 2}, WaitLink()),
    (R.NETWORK_RETRYABLE, MAYBE, {}, SendMarked(30.0)),
    (R.TIMEOUT_AMBIGUOUS, MAYBE, {}, SendMarked(30.0)),
    (R.TIMEOUT_AMBIGUOUS, MAYBE, {"attempt": 2}, SendMarked(30.0)),
    (R.TIMEOUT_AMBIGUOUS, MAYBE, {"nonce_enforced": True}, SendAgain(2.0)),
    (R.TIMEOUT_AMBIGUOUS, MAYBE, {"operation": Operation.EDIT}, SendAgain(2.0)),
    (R.TIMEOUT_AMBIGUOUS, MAYBE, {"operation": Operation.DELETE, "attempt": 2}, WaitLink()),
    (R.FLOOD_WAIT, REFUSED, {"attempt": 9}, SendAgain(300.0)),
    (R.FORMATTING, REFUSED, {}, SendPlain()),
    (R.PERMANENT_AUTH, REFUSED, {}, WaitLink()),
    (R.FATAL_CONFIG, REFUSED, {}, WaitLink()),
    (R.CONFLICT, REFUSED, {}, WaitLink()),
    (R.UNKNOWN, REFUSED, {"attempt": 1}, SendAgain(4.0)),
]


@pytest.mark.parametrize(("reason", "facts", "given_", "expected"), TABLE)
def test_decisions(reason: R, facts: DeliveryFacts, given_: dict[str, Any], expected: object) -> None:
    assert decide(DeliveryVerdict(reason, "test"), facts, **{**AGAIN, **given_}) == expected


@pytest.mark.parametrize(
    ("reason", "facts", "given_", "kind"),
    [
        (R.TIMEOUT_AMBIGUOUS, MAYBE, {"uncertain": Uncertain.HOLD}, Hold),
        (R.TIMEOUT_AMBIGUOUS, MAYBE, {"policy": SweepPolicy(uncertain=Uncertain.HOLD)}, Hold),
        (R.TIMEOUT_AMBIGUOUS, MAYBE, {"marked_already": True}, Hold),
        (R.TOO_LONG, REFUSED, {}, Bury),
        (R.PERMANENT_TARGET, REFUSED, {}, Bury),
        (R.FORMATTING, REFUSED, {"plain_already": True}, Bury),
        (R.UNKNOWN, REFUSED, {"attempt": 2}, Bury),
    ],
)
def test_ends(reason: R, facts: DeliveryFacts, given_: dict[str, Any], kind: type[Hold | Bury]) -> None:
    assert isinstance(decide(DeliveryVerdict(reason, "test"), facts, **{**AGAIN, **given_}), kind)


def test_an_edit_that_changes_nothing_and_a_delete_of_nothing_are_successes() -> None:
    same = DeliveryVerdict(R.UNKNOWN, "test", "not_modified")
    gone = DeliveryVerdict(R.PERMANENT_TARGET, "test", "message_gone")
    assert isinstance(decide(same, REFUSED, **{**AGAIN, "operation": Operation.EDIT}), Succeeded)
    assert isinstance(decide(gone, REFUSED, **{**AGAIN, "operation": Operation.DELETE}), Succeeded)
    assert isinstance(decide(gone, REFUSED, **{**AGAIN, "operation": Operation.EDIT}), Bury)


@settings(max_examples=1000, deadline=None)
@given(
    st.sampled_from(R), st.sampled_from(Sent), st.integers(0, 5), st.sampled_from(Operation), st.booleans(),
    st.booleans(), st.floats(0, 1, exclude_max=True),
)  # fmt: skip
def test_a_create_that_may_have_arrived_is_never_repeated_unmarked(
    reason: R, sent: Sent, attempt: int, operation: Operation, nonce: bool, marked: bool, u: float
) -> None:
    decision = decide(
        DeliveryVerdict(reason, "test"), DeliveryFacts("telegram", sent=sent), attempt=attempt,
        operation=operation, nonce_enforced=nonce, marked_already=marked, u=u,
    )  # fmt: skip
    if isinstance(decision, SendAgain):
        assert decision.after >= 2.0
        doubtful = sent is Sent.MAYBE_SENT and reason in (R.NETWORK_RETRYABLE, R.TIMEOUT_AMBIGUOUS, R.UNKNOWN)
        assert not (doubtful and operation is Operation.CREATE and not nonce)
    if isinstance(decision, SendMarked):
        assert decision.after >= 30.0
        assert operation is Operation.CREATE
        assert not marked
