"""The same server or account under two names: never asked twice in one call, and named as a dead end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.failures import Reason, Verdict
from hermes.policy.backends import Backend, dead_ends, plain_address, pointless
from hermes.policy.recovery import (
    GiveUp,
    Park,
    RecoveryPolicy,
    RecoveryTarget,
    SwitchTarget,
    Wait,
    backends_of,
    first_target,
    initial,
    others,
    plan,
    skip,
)

HERE, THERE = "http://one.example/v1", "http://two.example/v1"
ONE, TWO = frozenset({"key-1"}), frozenset({"key-2"})


def backend(address: str = HERE, model: str = "m", keys: frozenset[str] = ONE) -> Backend:
    return Backend("openai", address, model, keys)


def verdict(reason: Reason, detail: str | None = None) -> Verdict:
    usual = reason in {Reason.RATE_LIMIT, Reason.OVERLOADED, Reason.SERVER_ERROR, Reason.TIMEOUT}
    return Verdict(reason, "test", detail, retryable=usual)


@pytest.mark.parametrize(
    ("reason", "other", "expected"),
    [
        (Reason.OVERLOADED, backend(), True),
        (Reason.OVERLOADED, backend(HERE + "/"), True),
        (Reason.OVERLOADED, backend(keys=TWO), True),
        (Reason.FORMAT_ERROR, backend(keys=TWO), True),
        (Reason.OVERLOADED, backend(model="n"), False),
        (Reason.OVERLOADED, backend(THERE), False),
        (Reason.BILLING, backend(keys=TWO), False),
        (Reason.RATE_LIMIT, backend(keys=TWO), False),
        (Reason.RATE_LIMIT, backend(), True),
        (Reason.BILLING, backend(model="n"), False),
        (Reason.AUTH, backend(model="n"), True),
        (Reason.AUTH, backend(model="n", keys=TWO), False),
        (Reason.AUTH, backend(model="n", keys=ONE | TWO), False),
        (Reason.AUTH, backend(THERE, model="n"), False),
    ],
)
def test_what_would_fail_again_and_what_may_help(reason: Reason, other: Backend, expected: bool) -> None:
    assert pointless(verdict(reason), backend(), other) is expected


def test_a_limit_of_the_upstreams_own_is_not_another_keys_to_mend() -> None:
    assert pointless(verdict(Reason.RATE_LIMIT, "upstream"), backend(), backend(keys=TWO))


@pytest.mark.parametrize(("detail", "expected"), [("refused", True), ("dns", True), ("cut", False), (None, False)])
def test_where_nobody_listens_no_other_model_does(detail: str | None, expected: bool) -> None:
    assert pointless(verdict(Reason.TIMEOUT, detail), backend(), backend(model="n", keys=TWO)) is expected
    assert not pointless(verdict(Reason.TIMEOUT, detail), backend(), backend(THERE, model="n"))


def test_a_target_whose_backend_is_not_known_is_one_of_its_own() -> None:
    assert not pointless(verdict(Reason.OVERLOADED), None, backend())
    assert not pointless(verdict(Reason.OVERLOADED), backend(), None)


def policy(*backends: Backend, **more: object) -> RecoveryPolicy:
    found = tuple(RecoveryTarget(f"t{n}", backend=b) for n, b in enumerate(backends))
    return RecoveryPolicy(found, retries=0, available=frozenset(), **more)  # type: ignore[arg-type]


def test_the_same_backend_under_a_second_name_is_passed_over_for_the_next() -> None:
    three = policy(backend(), backend(), backend(THERE))
    state, step = plan(three, initial(three, 1e9), verdict(Reason.OVERLOADED), now=0.0, u=0.0)
    assert step == SwitchTarget(2)
    state, step = plan(three, state, verdict(Reason.BILLING), now=0.0, u=0.0)
    assert isinstance(step, GiveUp), "what failed first is not forgotten"


def test_a_guarded_target_is_not_asked_under_its_other_name() -> None:
    two = policy(backend(), backend(), can_park=True)
    guard = Verdict(Reason.OVERLOADED, "guarded", retryable=True, retry_after=500.0)
    assert isinstance(skip(two, initial(two, 1e9), guard, now=0.0, u=0.0)[1], Park)
    assert others(two, initial(two, 1e9)) == []


ANY_BACKEND = st.builds(
    Backend,
    kind=st.just("openai"),
    address=st.sampled_from([HERE, THERE]),
    model=st.sampled_from("mn"),
    keys=st.frozensets(st.sampled_from(["key-1", "key-2"]), max_size=2),
)
ANY_VERDICT = st.builds(
    Verdict, reason=st.sampled_from(Reason), rule=st.just("t"), detail=st.sampled_from([None, "upstream"]),
    retryable=st.booleans(),
)  # fmt: skip


@given(st.lists(ANY_BACKEND, min_size=1, max_size=5), st.lists(ANY_VERDICT, min_size=1, max_size=30))
def test_whatever_fails_no_backend_is_asked_under_two_names(
    backends: list[Backend], verdicts: list[Verdict]
) -> None:
    bounds = policy(*backends)
    state, asked = initial(bounds, 1e9), [0]
    for failure in verdicts:
        state, step = plan(bounds, state, failure, now=0.0, u=0.0)
        if isinstance(step, SwitchTarget):
            asked.append(step.index)
        elif not isinstance(step, Wait):
            break
    assert len(asked) <= backends_of(bounds)
    used = [(backends[at].address, backends[at].model, backends[at].keys) for at in asked]
    assert len(used) == len(set(used))


# ---- the bigger window first ----


def windows(*sizes: int | None, prefer: bool = True) -> RecoveryPolicy:
    found = tuple(RecoveryTarget(f"t{n}", size) for n, size in enumerate(sizes))
    return RecoveryPolicy(found, prefer_bigger_window=prefer)


@pytest.mark.parametrize(
    ("bounds", "tokens", "first"),
    [
        (windows(10_000, 100_000), 5_000, 0),
        (windows(10_000, 100_000), 9_000, 1),
        (windows(10_000, 20_000, 100_000), 50_000, 2),
        (windows(10_000, 20_000), 50_000, 0),
        (windows(10_000, None), 9_000, 0),
        (windows(None, 100_000), 9_000, 0),
        (windows(10_000, 100_000, prefer=False), 9_000, 0),
    ],
)
def test_a_conversation_too_long_for_the_primary_goes_to_the_first_that_holds_it_whole(
    bounds: RecoveryPolicy, tokens: int, first: int
) -> None:
    assert first_target(bounds, tokens, 0.75) == first


def test_when_the_bigger_window_fails_the_primary_is_asked_with_what_fits_it() -> None:
    bounds = windows(10_000, 100_000)
    state = initial(bounds, 1e9, prompt_tokens=50_000, target=1)
    assert plan(bounds, state, verdict(Reason.MODEL_NOT_FOUND), now=0.0, u=0.0)[1] == SwitchTarget(0)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("HTTPS://API.example.com:443/v1/", "https://api.example.com/v1"),
        ("http://localhost:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://[::1]:8080", "http://127.0.0.1:8080"),
        ("http://[fe80::1]/v1", "http://[fe80::1]/v1"),
        ("http://one.example:notaport/v1/", "http://one.example:notaport/v1"),
        ("practice", "practice"),
        ("", ""),
    ],
)
def test_an_address_has_one_spelling(url: str, plain: str) -> None:
    assert plain_address(url) == plain


# ---- dead ends ----


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ([("a/m", backend(), None)], ["there is no fallback", "a/m has one key"]),
        ([("a/m", backend(), None), ("b/m", backend(), None)], ["b/m is the same backend as a/m", "same key"]),
        ([("a/m", backend(), None), ("b/n", backend(model="n"), None)], ["b/n uses the same key as a/m"]),
        ([("a/m", backend(), None), ("b/m", backend(keys=TWO), None)], ["same server and model as a/m with"]),
        ([("a/m", backend(), None), ("b/n", backend(model="n", keys=TWO), None)], ["at the same address as a/m"]),
        ([("a/m", backend(), None), ("b/n", backend(THERE, "n"), None)], ["uses the same key as a/m at another"]),
        ([("a/m", backend(), 9), ("b/m", backend(THERE, keys=TWO), 8)], ["b/m has a smaller window (8 tokens)"]),
    ],
)  # fmt: skip
def test_each_dead_end_is_named(targets: list[tuple[str, Backend, int | None]], says: list[str]) -> None:
    told = "\n".join(dead_ends(targets))
    assert all(part in told for part in says), told


def test_two_providers_with_pools_of_their_own_are_no_dead_end() -> None:
    mine, other = ONE | TWO, frozenset({"key-3", "key-4"})
    assert dead_ends([("a/m", backend(keys=mine), 9), ("b/m", backend(THERE, keys=other), 9)]) == ()
