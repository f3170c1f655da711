"""The lines of `hermes explain`."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.explain import explain_error, explain_policy
from hermes.policy.recovery import RecoveryPolicy, RecoveryTarget, Repair


def test_an_error_is_explained_in_the_words_of_the_contract() -> None:
    line = explain_error(
        {"id": "a", "provider": "openai", "status": "429", "headers": {"Retry-After": "7"}, "body": ""}
    )
    assert line == {
        "id": "a",
        "reason": "rate_limit",
        "detail": None,
        "retryable": True,
        "action": "wait",
        "rule": "status_429",
    }


def test_the_policy_names_its_bound_its_cures_and_its_dead_end() -> None:
    policy = RecoveryPolicy((RecoveryTarget("main/m"),), retries=2, available=frozenset({Repair.COMPACT}))
    text = "\n".join(explain_policy(policy))
    assert "most calls for one answer, whatever fails: 7 = 1 x (2 + 1 + 1) + 3 repairs" in text
    assert "cure of context_overflow: compact (at most 3)" in text
    assert "cure of auth: refresh_credential (not in this build)" in text
    assert "dead end" in text
    assert "dead end" not in "\n".join(
        explain_policy(RecoveryPolicy((RecoveryTarget("a"), RecoveryTarget("b"))))
    )


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=15,
    )
)
def test_any_json_value_gets_a_line_that_is_json(record: object) -> None:
    assert json.loads(json.dumps(explain_error(record)))["reason"]
