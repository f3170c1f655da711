"""Telegram away for twenty seconds: refused, answering 502, hanging; and a receipt that never comes."""

from __future__ import annotations

import pytest

from hermes.core.delivery import MARK_PREFIX
from tests.wire.gateway.conftest import Played
from tests.wire.gateway.outages import OUTAGES, Survived

pytestmark = pytest.mark.wire


@pytest.mark.parametrize("outage", OUTAGES)
def test_after_an_outage_all_answers_due_arrive_in_order_without_a_restart(played: Played, outage: str) -> None:
    end: Survived = played[outage].result()
    assert end.orders == [[0, 1, 2, 3]] * len(end.orders)
    assert end.links[-1] == "up"
    assert end.requests <= end.messages, "no answer was paid for twice"


@pytest.mark.parametrize("outage", ["refused", "bad gateway"])
def test_an_outage_that_certainly_took_nothing_marks_nothing(played: Played, outage: str) -> None:
    if outage == "bad gateway":
        assert played[outage].result().repeats <= 3, "a proxy's 502 may stand for a send that was carried out"
    else:
        assert played[outage].result().repeats == 0


def test_a_time_out_after_delivery_gives_no_second_unmarked_copy(played: Played) -> None:
    first, second = played["receipt"].result()
    assert not first.startswith(MARK_PREFIX)
    assert second == f"{MARK_PREFIX}{first}"
