"""A real gateway and models that cannot stop: each turn ends within its count, killed in between or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.core.transcript import ToolStatus, load_item
from tests.wire.gateway.harness import Lab, lab
from tests.wire.gateway.invariants import check_disk

pytestmark = pytest.mark.wire
STOPPED = "I stopped because I was going in circles"


@dataclass(frozen=True)
class Loop:
    """A habit, and what it may cost: calls that run, requests to the model."""

    order: Mapping[str, Any]
    runs: int
    requests: int


NOT_THERE = ["read_file", {"path": "not-there-{n}.txt"}]
NOTHING = ["search_files", {"pattern": "no such words"}]
LOOPS = {
    11: Loop({"habit": "repeat", "calls": [NOTHING]}, 3, 5),
    12: Loop({"habit": "repeat", "calls": [NOTHING], "width": 40}, 3, 1),
    13: Loop({"habit": "alternate", "calls": [NOTHING, ["read_file", {"path": "not-there"}]]}, 6, 8),
    14: Loop({"habit": "siblings", "calls": [NOT_THERE]}, 5, 7),
    15: Loop({"habit": "siblings", "calls": [NOT_THERE], "width": 30}, 5, 1),
    16: Loop({"habit": "siblings", "calls": [["search_files", {"pattern": "needle {n}"}]], "width": 8}, 30, 4),
}


def play(it: Lab, chat: int, loop: Loop) -> int:
    """Requests to the model until the turn's sentence stands in the chat."""
    before = len(it.model.requests())
    it.model.order("habit", loop.order)
    it.telegram.say(chat, "work")
    it.telegram.wait(chat, STOPPED)
    it.model.order("habit")
    return len(it.model.requests()) - before


def ran(it: Lab, chat: int) -> int:
    """Calls of a chat's turns that were run."""
    found = it.gateway.rows(
        "SELECT m.item FROM messages m JOIN turns t ON t.id=m.turn_id WHERE t.chat_id=? ORDER BY m.seq", str(chat)
    )
    results = [item for (text,) in found if hasattr(item := load_item(text), "status")]
    return sum(getattr(result, "status", None) is not ToolStatus.NOT_RUN for result in results)


@pytest.mark.parametrize("at_once", [8, pytest.param(1, marks=pytest.mark.long)])
def test_models_that_cannot_stop_are_stopped_and_the_chats_go_on(tmp_path: Path, at_once: int) -> None:
    with lab(tmp_path, settings={"tools": {"max_parallel": at_once}}) as it:
        it.gateway.start()
        asked = {chat: play(it, chat, loop) for chat, loop in LOOPS.items()}
        for chat in LOOPS:
            it.telegram.say(chat, f"«{chat}»")
            it.telegram.wait(chat, f"You said: «{chat}»")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        assert asked == {chat: loop.requests for chat, loop in LOOPS.items()}
        assert {chat: ran(it, chat) for chat in LOOPS} == {chat: loop.runs for chat, loop in LOOPS.items()}
        assert not [r for r in it.model.requests() if r["outcome"] != "answered"]


@pytest.mark.long
def test_a_loop_goes_on_counting_over_a_kill(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        it.model.order("habit", LOOPS[11].order)
        it.gateway.start(crash_at="after_tool_result:2")
        it.telegram.say(11, "work")
        assert it.gateway.wait_exit() == -9
        it.gateway.start()
        it.telegram.wait(11, STOPPED)
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        assert (ran(it, 11), len(it.model.requests())) == (3, 5)
