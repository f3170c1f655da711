"""kill -9 at every named point of a message's path: a real process, a real kill, a real restart."""

from __future__ import annotations

import pytest

from hermes.core.delivery import MARK_PREFIX
from tests.wire.gateway.conftest import Played
from tests.wire.gateway.kill_points import SCENARIOS, SENDING, Ended, Point, doubtful

pytestmark = pytest.mark.wire
COMMITTED = [scenario for scenario in SCENARIOS if scenario[1] in ("after_t2", *SENDING)]


def _id(scenario: Point) -> str:
    return "-".join(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_id)
def test_killed_at_a_named_point_everything_is_answered_and_the_disk_is_whole(
    played: Played, scenario: Point
) -> None:
    end: Ended = played[scenario].result()
    assert end.code == -9, f"{scenario[1]} was never reached"
    assert len(end.second) == 1


@pytest.mark.parametrize("scenario", COMMITTED, ids=_id)
def test_a_committed_answer_costs_no_further_model_request(played: Played, scenario: Point) -> None:
    end: Ended = played[scenario].result()
    assert end.committed
    assert end.asked == end.asked_before


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_id)
def test_a_copy_is_marked_exactly_where_bytes_of_a_new_message_may_have_gone(
    played: Played, scenario: Point
) -> None:
    end: Ended = played[scenario].result()
    marked = [text for text in end.first if text.startswith(MARK_PREFIX)]
    assert len(marked) == int(doubtful(scenario))
    arrived = not doubtful(scenario) or scenario[1] == "sending_after_bytes"
    assert len(end.first) - len(marked) == int(arrived)
