"""The planner: cures, bounds, deadlines."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.failures import Reason, Verdict
from hermes.policy.classify import RULES
from hermes.policy.cures import CURES, SMALL_LIMITS
from hermes.policy.recovery import (
    Apply,
    GiveUp,
    Park,
    Plan,
    RecoveryPolicy,
    RecoveryState,
    RecoveryTarget,
    Repair,
    SwitchTarget,
    Wait,
    bound,
    first_action,
    initial,
    plan,
    skip,
)

ONE = (RecoveryTarget("main", context_window=100_000),)
TWO = (*ONE, RecoveryTarget("spare", context_window=200_000))
ALL = frozenset(Repair)


def verdict(
    reason: Reason, detail: str | None = None, *, retryable: bool | None = None, **more: object
) -> Verdict:
    usual = reason in {Reason.RATE_LIMIT, Reason.OVERLOADED, Reason.SERVER_ERROR, Reason.TIMEOUT}
    return Verdict(
        reason, rule="test", detail=detail, retryable=usual if retryable is None else retryable, **more
    )  # type: ignore[arg-type]


def run(
    policy: RecoveryPolicy,
    *verdicts: Verdict,
    deadline: float = 1e9,
    has_images: bool = False,
    prompt_tokens: int | None = None,
) -> list[Plan]:
    """Plans for these failures in turn; the last one repeats until the planner ends."""
    state = initial(policy, deadline, has_images=has_images, prompt_tokens=prompt_tokens)
    now, plans = 0.0, []
    for index in range(10_000):
        state, step = plan(policy, state, verdicts[min(index, len(verdicts) - 1)], now=now, u=0.5)
        plans.append(step)
        if isinstance(step, Wait):
            now = step.until
        if isinstance(step, GiveUp | Park):
            return plans
    raise AssertionError("the planner did not end")


def names(plans: list[Plan]) -> list[str]:
    return [step.repair.value if isinstance(step, Apply) else type(step).__name__ for step in plans]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (verdict(Reason.OVERLOADED), ["Wait", "Wait", "Wait", "GiveUp"]),
        (verdict(Reason.SERVER_ERROR), ["Wait", "Wait", "Wait", "GiveUp"]),
        (verdict(Reason.RATE_LIMIT), ["rotate_credential", "Wait", "Wait", "Wait", "GiveUp"]),
        (verdict(Reason.RATE_LIMIT, "upstream"), ["Wait", "Wait", "Wait", "GiveUp"]),
        (verdict(Reason.TIMEOUT, "stalled"), ["Wait", "Wait", "Wait", "rebuild_transport", "GiveUp"]),
        (verdict(Reason.TIMEOUT, "pool_timeout"), ["rebuild_transport", "Wait", "Wait", "Wait", "GiveUp"]),
        (verdict(Reason.TIMEOUT, "certificate", retryable=False), ["GiveUp"]),
        (verdict(Reason.AUTH), ["refresh_credential", "rotate_credential", "GiveUp"]),
        (verdict(Reason.AUTH_PERMANENT), ["rotate_credential", "GiveUp"]),
        (verdict(Reason.BILLING), ["rotate_credential", "GiveUp"]),
        (
            verdict(Reason.BILLING, "affordable", limit=500),
            ["reduce_max_tokens", "rotate_credential", "GiveUp"],
        ),
        (verdict(Reason.CONTEXT_OVERFLOW), ["compact", "compact", "compact", "GiveUp"]),
        (
            verdict(Reason.CONTEXT_OVERFLOW, "output_cap"),
            ["reduce_max_tokens", "compact", "compact", "compact", "GiveUp"],
        ),
        (verdict(Reason.PAYLOAD_TOO_LARGE), ["compact", "compact", "compact", "GiveUp"]),
        (verdict(Reason.MODEL_NOT_FOUND), ["GiveUp"]),
        (verdict(Reason.PROVIDER_POLICY_BLOCKED), ["GiveUp"]),
        (verdict(Reason.FORMAT_ERROR), ["GiveUp"]),
        (verdict(Reason.FORMAT_ERROR, "output_cap"), ["reduce_max_tokens", "GiveUp"]),
        (verdict(Reason.THINKING_SIGNATURE), ["drop_thinking_signatures", "GiveUp"]),
        (
            verdict(Reason.LONG_CONTEXT_TIER),
            ["lower_context_tier", "compact", "compact", "compact", "GiveUp"],
        ),
        (verdict(Reason.OAUTH_LONG_CONTEXT_BETA_FORBIDDEN), ["drop_long_context_beta", "GiveUp"]),
        (verdict(Reason.LLAMA_CPP_GRAMMAR_PATTERN), ["strip_grammar_patterns", "GiveUp"]),
        (verdict(Reason.UNKNOWN), ["Wait", "GiveUp"]),
        (verdict(Reason.UNKNOWN, "empty_answer", retryable=True), ["Wait", "Wait", "GiveUp"]),
        (
            verdict(Reason.UNKNOWN, "truncated_tool_call", retryable=True),
            ["raise_max_tokens", "Wait", "GiveUp"],
        ),
    ],
    ids=lambda value: f"{value.reason}/{value.detail}" if isinstance(value, Verdict) else "",
)
def test_each_failure_gets_its_cheapest_cure_first(failure: Verdict, expected: list[str]) -> None:
    assert names(run(RecoveryPolicy(ONE, available=ALL), failure)) == expected


def test_an_oversized_image_is_shrunk_then_dropped_only_where_there_are_images() -> None:
    policy = RecoveryPolicy(ONE, available=ALL)
    failure = verdict(Reason.IMAGE_TOO_LARGE)
    assert names(run(policy, failure, has_images=True)) == ["shrink_images", "drop_images", "GiveUp"]
    assert names(run(policy, failure)) == ["GiveUp"]


def test_repairs_that_the_caller_cannot_make_are_skipped() -> None:
    assert names(run(RecoveryPolicy(ONE), verdict(Reason.CONTEXT_OVERFLOW))) == ["GiveUp"]
    assert names(run(RecoveryPolicy(ONE), verdict(Reason.AUTH))) == ["GiveUp"]


def test_a_repair_carries_the_limit_that_the_error_stated() -> None:
    plans = run(RecoveryPolicy(ONE), verdict(Reason.FORMAT_ERROR, "output_cap", limit=8192))
    assert plans[0] == Apply(Repair.REDUCE_MAX_TOKENS, 8192)


def test_an_answer_is_never_reduced_to_a_few_tokens() -> None:
    policy = RecoveryPolicy(ONE, available=ALL)
    assert names(run(policy, verdict(Reason.CONTEXT_OVERFLOW, "output_cap", limit=12)))[0] == "compact"
    assert names(run(policy, verdict(Reason.BILLING, "affordable", limit=0)))[0] == "rotate_credential"


def test_used_up_retries_go_to_the_next_target_and_start_afresh_there() -> None:
    assert names(run(RecoveryPolicy(TWO, retries=2), verdict(Reason.OVERLOADED))) == [
        "Wait",
        "Wait",
        "SwitchTarget",
        "Wait",
        "Wait",
        "GiveUp",
    ]


def test_what_cannot_pass_by_waiting_goes_to_the_next_target_at_once() -> None:
    assert run(RecoveryPolicy(TWO), verdict(Reason.BILLING))[0] == SwitchTarget(1)
    assert run(RecoveryPolicy(TWO), verdict(Reason.MODEL_NOT_FOUND))[0] == SwitchTarget(1)


def test_only_a_target_that_the_request_fits_is_taken() -> None:
    small = (
        ONE[0],
        RecoveryTarget("small", context_window=1_000),
        RecoveryTarget("big", context_window=300_000),
    )
    assert run(RecoveryPolicy(small), verdict(Reason.BILLING), prompt_tokens=5_000)[0] == SwitchTarget(2)


def test_an_overflow_goes_only_to_a_window_known_to_be_larger() -> None:
    unknown = (ONE[0], RecoveryTarget("unknown"))
    assert names(run(RecoveryPolicy(unknown), verdict(Reason.CONTEXT_OVERFLOW))) == ["GiveUp"]
    assert run(RecoveryPolicy(TWO), verdict(Reason.CONTEXT_OVERFLOW, requested=150_000))[0] == SwitchTarget(1)
    assert names(run(RecoveryPolicy(TWO), verdict(Reason.CONTEXT_OVERFLOW, requested=250_000))) == ["GiveUp"]
    first = RecoveryPolicy(TWO, available=ALL, prefer_bigger_window=True)
    assert names(run(first, verdict(Reason.CONTEXT_OVERFLOW)))[:2] == ["SwitchTarget", "compact"]


def test_a_stated_wait_is_kept_with_jitter_after_it_and_never_before() -> None:
    step = run(RecoveryPolicy(ONE), verdict(Reason.RATE_LIMIT, retry_after=20.0))[0]
    assert isinstance(step, Wait)
    assert 20.0 <= step.seconds <= 25.0
    at_cap = run(RecoveryPolicy(ONE), verdict(Reason.RATE_LIMIT, retry_after=120.0))[0]
    assert at_cap == Wait(120.0, 120.0)


def test_a_stated_wait_above_the_cap_means_another_target_then_the_park_then_the_sentence() -> None:
    failure = verdict(Reason.RATE_LIMIT, retry_after=3600.0)
    assert names(run(RecoveryPolicy(TWO), failure)) == ["SwitchTarget", "GiveUp"]
    assert run(RecoveryPolicy(ONE, can_park=True), failure) == [Park(3600.0, failure)]
    assert names(run(RecoveryPolicy(ONE), failure)) == ["GiveUp"]


def test_an_outage_without_another_target_is_parked_until_the_circuit_closes() -> None:
    failure = verdict(Reason.OVERLOADED)
    assert run(RecoveryPolicy(ONE, can_park=True), failure)[-1] == Park(None, failure)


@pytest.mark.parametrize("reason", [Reason.AUTH, Reason.BILLING, Reason.FORMAT_ERROR, Reason.UNKNOWN])
def test_what_is_no_outage_is_never_parked(reason: Reason) -> None:
    assert isinstance(run(RecoveryPolicy(ONE, can_park=True), verdict(reason))[-1], GiveUp)


def test_no_wait_passes_the_deadline() -> None:
    assert names(run(RecoveryPolicy(ONE), verdict(Reason.OVERLOADED), deadline=4.0)) == ["Wait", "GiveUp"]
    assert run(RecoveryPolicy(TWO), verdict(Reason.OVERLOADED), deadline=0.0)[0] == GiveUp(
        "deadline", verdict(Reason.OVERLOADED)
    )


def test_a_guarded_target_is_skipped_without_counting_a_call() -> None:
    policy = RecoveryPolicy(TWO)
    guard = verdict(Reason.RATE_LIMIT, retry_after=30.0)
    state, step = skip(policy, initial(policy, 1e9), guard, now=0.0, u=0.0)
    assert step == SwitchTarget(1)
    assert state.failures == 0
    state, step = skip(policy, state, guard, now=0.0, u=0.0)
    assert step == Wait(30.0, 30.0)
    assert isinstance(
        skip(policy, state, verdict(Reason.RATE_LIMIT, retry_after=999.0), now=0.0, u=0.0)[1], GiveUp
    )


def test_an_impossible_start_is_refused() -> None:
    with pytest.raises(ValueError, match="target 3"):
        initial(RecoveryPolicy(ONE), 1.0, target=3)


def test_the_bound_is_the_published_formula() -> None:
    assert bound(RecoveryPolicy(TWO, retries=3, available=frozenset({Repair.REBUILD_TRANSPORT}))) == 2 * (
        3 + 1 + 1
    )
    compacting = RecoveryPolicy(
        ONE, available=frozenset({Repair.REBUILD_TRANSPORT, Repair.COMPACT, Repair.SHRINK_IMAGES})
    )
    assert bound(compacting) == 5 + 3 + 1


def test_every_reason_has_a_first_action() -> None:
    actions = {reason: first_action(verdict(reason)) for reason in Reason}
    assert actions[Reason.OVERLOADED] == actions[Reason.RATE_LIMIT] == "wait"
    assert actions[Reason.CONTEXT_OVERFLOW] == "compact"
    assert actions[Reason.AUTH] == "refresh_credential"
    assert actions[Reason.MODEL_NOT_FOUND] == "switch_target"


DETAILS = [
    None,
    "output_cap",
    "stalled",
    "pool_timeout",
    "certificate",
    "upstream",
    "empty_answer",
    "truncated_tool_call",
    "wrong_type",
    "affordable",
    "measured",
    "something_new",
]
VERDICTS = st.builds(
    Verdict,
    reason=st.sampled_from(Reason),
    rule=st.just("test"),
    detail=st.sampled_from(DETAILS),
    retry_after=st.none() | st.floats(0, 1e6),
    retryable=st.booleans(),
    limit=st.none() | st.integers(0, 10**6),
    requested=st.none() | st.integers(0, 10**6),
)
POLICIES = st.builds(
    RecoveryPolicy,
    targets=st.lists(
        st.builds(RecoveryTarget, name=st.just("t"), context_window=st.none() | st.integers(1, 10**6)),
        min_size=1,
        max_size=4,
    ).map(tuple),
    retries=st.integers(0, 5),
    base=st.floats(0, 30),
    cap=st.floats(0, 120),
    ratio=st.floats(0, 1),
    retry_after_cap=st.floats(0, 300),
    available=st.frozensets(st.sampled_from(Repair)),
    repair_limits=st.dictionaries(st.sampled_from(Repair), st.integers(0, 3)),
    can_park=st.booleans(),
    prefer_bigger_window=st.booleans(),
)


@given(
    POLICIES,
    st.lists(VERDICTS, min_size=1, max_size=80),
    st.floats(0, 1e4),
    st.booleans(),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
    st.none() | st.integers(0, 10**6),
)
def test_any_sequence_of_failures_ends_within_the_bound(
    policy: RecoveryPolicy,
    verdicts: list[Verdict],
    deadline: float,
    has_images: bool,
    draws: list[float],
    prompt: int | None,
) -> None:
    state: RecoveryState = initial(policy, deadline, prompt_tokens=prompt, has_images=has_images)
    now, repairs, seen = 0.0, Counter[Repair](), {0}
    rebuilt: Counter[int] = Counter()
    for calls in range(1, bound(policy) + 1):
        failure = verdicts[calls % len(verdicts)]
        state, step = plan(policy, state, failure, now=now, u=draws[calls % len(draws)])
        if isinstance(step, GiveUp | Park):
            return
        if isinstance(step, Wait):
            assert 0.0 <= step.seconds <= max(policy.cap, policy.retry_after_cap)
            assert step.until == now + step.seconds < deadline
            now = step.until
        elif isinstance(step, SwitchTarget):
            assert step.index not in seen
            seen.add(step.index)
        elif step.repair is Repair.REBUILD_TRANSPORT:
            rebuilt[state.target] += 1
            assert rebuilt[state.target] == 1
        else:
            repairs[step.repair] += 1
            assert repairs[step.repair] <= policy.limit(step.repair)
            assert step.repair in policy.available
    raise AssertionError(f"not ended after {bound(policy)} calls")


@given(
    POLICIES,
    st.lists(st.tuples(VERDICTS, st.booleans()), min_size=1, max_size=60),
    st.floats(0, 1e4),
    st.floats(0, 1, exclude_max=True),
)
def test_guards_between_failures_pass_no_deadline_and_ask_no_target_again(
    policy: RecoveryPolicy, happens: list[tuple[Verdict, bool]], deadline: float, u: float
) -> None:
    state, now, failures, switched = initial(policy, deadline), 0.0, 0, [0]
    for verdict_, guarded in happens:
        step: Plan
        if guarded:
            state, step = skip(policy, state, verdict_, now=now, u=u)
        else:
            state, step = plan(policy, state, verdict_, now=now, u=u)
            failures += 1
        assert state.failures == failures, "a guarded target is not counted as a call"
        if isinstance(step, GiveUp | Park):
            return
        if isinstance(step, Wait):
            assert step.until < deadline
            assert step.seconds <= max(policy.cap, policy.retry_after_cap)
            now = step.until
        elif isinstance(step, SwitchTarget):
            switched.append(step.index)
            assert len(set(switched)) == len(switched)


def test_the_tables_name_only_what_exists() -> None:
    for (reason, _), row in CURES.items():
        assert reason in Reason
        assert len(set(row)) == len(row)
    assert all(limit >= 1 for limit in SMALL_LIMITS.values())


def test_every_detail_with_a_cure_of_its_own_can_be_reached() -> None:
    reachable = {(rule.reason, rule.detail) for rule in RULES}
    assert {key for key in (*CURES, *SMALL_LIMITS) if key[1] is not None} <= reachable
