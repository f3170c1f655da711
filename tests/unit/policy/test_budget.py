"""Budgets: what a turn may use, what a call may cost, what a failed one has cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.money import Caps, Limit, Price, Refusal, Totals
from hermes.core.transcript import Usage
from hermes.policy.budget import (
    LEAST_OUTPUT,
    Bill,
    Budget,
    Granted,
    Spent,
    at_most,
    billing,
    closing_seconds,
    cost,
    cost_of_failure,
    dollars,
    grant,
    plus_usage,
    used_up,
)

PRICE = Price(3.0, 15.0, 0.3, 3.75)
MONEY = st.floats(0, 10, allow_nan=False)
CAP = st.one_of(st.just(0.0), st.floats(0.0001, 10))
PRICES = st.builds(Price, *[st.floats(0, 100)] * 4)
TOKENS = st.integers(0, 200_000)
LIMITS = (Limit.TURN_USD, Limit.SESSION_USD, Limit.PERSON_DAY_USD, Limit.DAY_USD)


# ---- steps, tokens, time --------------------------------------------------------------------------

BUDGET = Budget(steps=3, seconds=200.0, tokens=1000)
USED = (
    (Spent(), None),
    (Spent(steps=2, seconds=100.0, tokens=999), None),
    (Spent(steps=3), Limit.STEPS),
    (Spent(tokens=1000), Limit.TOKENS),
    (Spent(seconds=190.0), Limit.TIME),
    (Spent(seconds=189.9), None),
)


@pytest.mark.parametrize(("spent", "limit"), USED)
def test_a_bound_that_is_reached_is_named(spent: Spent, limit: Limit | None) -> None:
    assert used_up(BUDGET, spent) is limit


def test_no_cap_on_tokens_is_none() -> None:
    assert used_up(Budget(3, 200.0), Spent(tokens=10**9)) is None


@given(st.floats(1, 1e6))
def test_time_for_the_closing_call_is_short_and_never_all(seconds: float) -> None:
    assert 0 < closing_seconds(Budget(1, seconds)) <= min(30.0, seconds / 2)


def test_what_was_spent_adds_up() -> None:
    spent = Spent().plus(steps=1, tokens=10, usd=0.5).plus(seconds=2.0, tokens=5)
    assert spent == Spent(1, 2.0, 15, 0.5)


# ---- prices ---------------------------------------------------------------------------------------


def test_cached_and_written_tokens_have_their_own_price() -> None:
    used = Usage(1000, 100, cached_tokens=600, written_tokens=300)
    assert cost(PRICE, used) == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 100 * 15) / 1e6)


@given(PRICES, TOKENS, TOKENS, TOKENS, TOKENS)
def test_what_is_reserved_covers_every_split_of_the_prompt(
    price: Price, prompt: int, output: int, cached: int, written: int
) -> None:
    used = Usage(prompt, output, cached, written)
    assert 0 <= cost(price, used) <= at_most(price, prompt, output) + 1e-9


# ---- caps -----------------------------------------------------------------------------------------


@given(
    st.builds(Caps, CAP, CAP, CAP, CAP), st.builds(Totals, MONEY, MONEY, MONEY, MONEY), PRICES, TOKENS,
    st.integers(1, 100_000),
)  # fmt: skip
def test_what_is_granted_passes_no_cap_and_what_is_refused_would(
    caps: Caps, spent: Totals, price: Price, tokens: int, output: int
) -> None:
    answer = grant(caps, spent, price, tokens_in=tokens, output=output, least=LEAST_OUTPUT)
    scopes = list(zip(LIMITS, (caps.turn, caps.session, caps.person_day, caps.day),
                      (spent.turn, spent.session, spent.person_day, spent.day), strict=True))  # fmt: skip
    match answer:
        case Granted(granted, usd):
            assert min(LEAST_OUTPUT, output) <= granted <= output
            assert usd == at_most(price, tokens, granted)
            assert all(not cap or usd == 0 or used + usd <= cap + 1e-6 for _, cap, used in scopes)
        case Refusal(limit, cap, left, needed):
            assert needed == at_most(price, tokens, min(LEAST_OUTPUT, output))
            [(_, its_cap, used)] = [scope for scope in scopes if scope[0] is limit]
            assert (its_cap, left) == (cap, max(0.0, cap - used))
            assert used + needed > cap


@given(st.lists(st.floats(0, 1), max_size=30), st.integers(0, 50_000), st.floats(0.001, 1))
def test_any_run_of_calls_stays_within_its_cap_whatever_they_turn_out_to_cost(
    shares: list[float], tokens: int, cap: float
) -> None:
    spent = 0.0
    for share in shares:
        answer = grant(Caps(turn=cap), Totals(turn=spent), PRICE, tokens_in=tokens, output=4000, least=LEAST_OUTPUT)
        if isinstance(answer, Refusal):
            break
        spent += share * answer.usd
    assert spent <= cap + 1e-6


def test_with_little_left_the_answer_is_bounded_to_it() -> None:
    answer = grant(Caps(day=1.0), Totals(day=0.99), PRICE, tokens_in=1000, output=8000, least=256)
    assert isinstance(answer, Granted)
    assert answer.output == int((0.01 - 1000 * 3.75 / 1e6) * 1e6 / 15)


def test_a_model_that_costs_nothing_is_granted_under_a_cap_that_is_used_up() -> None:
    free = Price(0.0, 0.0, 0.0, 0.0)
    answer = grant(Caps(day=1.0), Totals(day=5.0), free, tokens_in=1000, output=8000, least=256)
    assert answer == Granted(8000, 0.0)


# ---- failed calls ---------------------------------------------------------------------------------


def facts(
    kind: FaultKind, status: int | None = None, phase: Phase = Phase.RESPONSE, *, seen: bool = False
) -> FailureFacts:
    return FailureFacts(kind, phase, status=status, tokens_seen=seen)


BILLS = (
    (facts(FaultKind.REFUSED, phase=Phase.CONNECT), Bill.NOTHING),
    (facts(FaultKind.DNS), Bill.NOTHING),
    (facts(FaultKind.CONNECT_TIMEOUT), Bill.NOTHING),
    (facts(FaultKind.POOL_TIMEOUT), Bill.NOTHING),
    (facts(FaultKind.CERTIFICATE), Bill.NOTHING),
    (facts(FaultKind.REQUEST_INVALID), Bill.NOTHING),
    (facts(FaultKind.HTTP_STATUS, 400), Bill.NOTHING),
    (facts(FaultKind.HTTP_STATUS, 401), Bill.NOTHING),
    (facts(FaultKind.HTTP_STATUS, 429), Bill.NOTHING),
    (facts(FaultKind.HTTP_STATUS, 500), Bill.NOTHING),
    (facts(FaultKind.HTTP_STATUS, 529), Bill.NOTHING),
    (facts(FaultKind.HTTP_STATUS, 408), Bill.ALL),
    (facts(FaultKind.HTTP_STATUS, 504), Bill.ALL),
    (facts(FaultKind.ERROR_IN_200), Bill.NOTHING),
    (facts(FaultKind.ERROR_EVENT), Bill.NOTHING),
    (facts(FaultKind.ERROR_EVENT, seen=True), Bill.WHAT_CAME),
    (facts(FaultKind.CUT, phase=Phase.STREAM, seen=True), Bill.WHAT_CAME),
    (facts(FaultKind.STALLED, phase=Phase.STREAM, seen=True), Bill.WHAT_CAME),
    (facts(FaultKind.TOTAL_TIMEOUT), Bill.WHAT_CAME),
    (facts(FaultKind.FIRST_BYTE_TIMEOUT), Bill.ALL),
    (facts(FaultKind.RESET), Bill.ALL),
    (facts(FaultKind.EMPTY_ANSWER), Bill.ALL),
    (facts(FaultKind.TRUNCATED_TOOL_CALL), Bill.ALL),
    (facts(FaultKind.UNMAPPED), Bill.ALL),
)


@pytest.mark.parametrize(("failure", "bill"), BILLS, ids=lambda x: getattr(x, "value", None))
def test_only_what_is_certain_not_to_be_billed_is_free(failure: FailureFacts, bill: Bill) -> None:
    assert billing(failure) is bill


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_of_failure_has_a_bill(kind: FaultKind) -> None:
    assert billing(facts(kind)) in Bill


COSTS = (
    (Bill.NOTHING, PRICE, 0.0),
    (Bill.ALL, PRICE, None),
    (Bill.ALL, None, 0.0),
    (Bill.WHAT_CAME, PRICE, (1000 * 3.75 + 100 * 15) / 1e6),
)


@pytest.mark.parametrize(("bill", "price", "usd"), COSTS)
def test_a_failed_call_costs_what_its_bill_says(bill: Bill, price: Price | None, usd: float | None) -> None:
    assert cost_of_failure(bill, price, 1.0, 1000, 100) == usd


def test_a_stream_of_which_no_word_came_costs_all_that_was_reserved() -> None:
    assert cost_of_failure(Bill.WHAT_CAME, PRICE, 1.0, 1000, 0) is None


def test_what_came_never_costs_more_than_was_reserved() -> None:
    assert cost_of_failure(Bill.WHAT_CAME, PRICE, 0.001, 10_000, 10_000) == 0.001


SUMS = ((0.0, "$0.00"), (1.25, "$1.25"), (0.5, "$0.50"), (0.0123, "$0.0123"), (0.000012, "$0.000012"))


@pytest.mark.parametrize(("usd", "shown"), SUMS)
def test_small_sums_are_shown_with_the_places_they_need(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


def test_two_calls_tokens_are_one_calls() -> None:
    assert plus_usage(Usage(1, 2, 3, 4), Usage(10, 20, 30, 40)) == Usage(11, 22, 33, 44)
