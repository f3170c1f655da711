"""kill -9 in mid-call with a cap on money: the sums on disk hold, and the person is told once."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import until
from tests.wire.gateway.harness import Model, lab

pytestmark = pytest.mark.wire

CAP = 0.07
LOOP = 300
SETTINGS = {
    "providers": {"sim": {"models": {"m": {
        "context_window": 100_000, "max_output": 1000, "price_input": 3.0, "price_output": 15.0,
    }}}},
    "agent": {"max_turns": LOOP, "budget": {"session_usd": CAP}},
    "tool_loop_guardrails": {"hard_stop_enabled": False},
}  # fmt: skip


def _asks(model: Model, more: int, begin: Callable[[], object] = lambda: None) -> None:
    """Until so many more requests have come."""
    wanted = len(model.requests()) + more
    begin()
    until(lambda: len(model.requests()) >= wanted, within=30, why="it asks")


def test_a_looping_model_passes_no_cap_across_kills_in_mid_call(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with lab(tmp_path, settings=SETTINGS) as it:
        it.model.order("config", {"latency": 0.1})
        it.model.script(*({"tool": "session_search", "arguments": {"query": f"tea {n}"}} for n in range(LOOP)))
        it.telegram.say(10, "go")
        for _ in range(2):
            _asks(it.model, rng.randint(1, 2), it.gateway.start)
            it.model.order("config", {"latency": 3})
            _asks(it.model, 1)
            it.gateway.kill()
            it.model.order("config", {"latency": 0.1})
        it.gateway.start()
        it.telegram.wait(10, "for this conversation is used up", within=60)
        it.telegram.say(10, "again")
        told = it.telegram.wait(10, "for this conversation is used up", count=2, within=60)
        assert it.gateway.stop() == 0
        rows = it.gateway.rows("SELECT state, reserved_usd, actual_usd, input_tokens, output_tokens FROM ledger")
        totals = it.gateway.rows("SELECT sum(usd) FROM spend WHERE key LIKE 'session:%'")
        ends = it.gateway.rows("SELECT outcome, reason FROM turns")
        asked = len(it.model.requests())
    spent = sum(row[2] for row in rows)
    assert 0.04 < spent <= CAP + 1e-9
    assert totals == [(pytest.approx(spent),)]
    assert {row[0] for row in rows} == {"settled", "charged"}
    for state, reserved, actual, tokens_in, tokens_out in rows:
        paid = reserved if state == "charged" else (tokens_in * 3 + tokens_out * 15) / 1e6
        assert actual == pytest.approx(paid)
    assert asked <= len(rows) <= asked + 2, "each request was reserved before it was made"
    assert ends == [("failed_told", "budget_session")] * 2
    assert len(told) == 2
    assert told[0] == told[1]
