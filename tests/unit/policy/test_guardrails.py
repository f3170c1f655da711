"""What is a loop: warned of, blocked, halted, each at its count."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.transcript import ToolStatus
from hermes.policy.guardrails import Counts, Guard, GuardSettings, Halt, Kind, before, heard, observe
from tests.unit.policy.looping import ERROR, KINDS, OK, Play, fails, play

MISSING = fails("read", {"path": "a"}, "a cannot be read")
FOUND = Play("search", {"pattern": "tea"}, "notes.md:3: tea")
SENT = Play("send", {"to": "Ann", "text": "hi"}, "sent")


def numbered(tool: str, text: str = "ok", status: ToolStatus = ToolStatus.OK) -> Iterator[Play]:
    return (Play(tool, {"path": f"file-{n}"}, text.format(n=n), status) for n in itertools.count())


def test_the_same_failing_call_is_warned_of_then_blocked_then_ends_the_turn() -> None:
    played = play(itertools.repeat(MISSING))
    assert played.ends == ["ran", "warned", "warned", "blocked", "halted"]
    assert set(played.kinds[1:]) == {"exact_failure"}
    assert "the same call failed 2 times with the same arguments" in played.texts[1]
    assert played.texts[3].startswith("Not run: the same call failed 3 times with the same arguments.")
    assert "ends this turn" in played.texts[3]


@pytest.mark.parametrize(
    ("plays", "kind", "runs"),
    [
        pytest.param([MISSING], "exact_failure", 3, id="the same failure"),
        pytest.param([FOUND], "idempotent_no_progress", 3, id="the same answer"),
        pytest.param([SENT], "idempotent_no_progress", 3, id="the same success of a tool with effects"),
        pytest.param([Play("put", {"k": 1}, "put")], "idempotent_no_progress", 3, id="the same idempotent success"),
        pytest.param([FOUND, MISSING], "exact_failure", 6, id="A-B-A-B of an answer and a failure"),
        pytest.param([FOUND, Play("read", {"path": "n"}, "x")], "cycle", 6, id="A-B-A-B of answers"),
        pytest.param([SENT, Play("write", {"path": "n"}, "x")], "cycle", 6, id="A-B-A-B of effects"),
        pytest.param(
            [Play("write", {"text": t}, "written") for t in "xy"] + [fails("shell", {"command": "test"})],
            "cycle", 9, id="A-B-C of undone changes and a failing test",
        ),
        pytest.param([Play("read", {"path": n}, n) for n in "abcdefg"], "cycle", 21, id="a circle of seven"),
        pytest.param([Play("poll", {}, "up"), Play("poll", {}, "down")], "cycle", 6, id="one call, two answers"),
        pytest.param([FOUND, fails("search", {"pattern": "tea"})], "cycle", 6, id="one call, now right, now wrong"),
    ],
)  # fmt: skip
def test_a_loop_that_repeats_for_ever_ends_within_its_count(plays: list[Play], kind: str, runs: int) -> None:
    played = play(itertools.cycle(plays))
    assert played.ran == runs
    assert played.ends[-1] == "halted"
    assert kind in played.kinds[played.ends.index("blocked") :]


@pytest.mark.parametrize(
    ("plays", "kind", "runs"),
    [
        pytest.param(numbered("read", "no", ToolStatus.ERROR), "same_tool_failure", 5, id="failing siblings"),
        pytest.param(numbered("search", "Nothing matches."), "spread", 30, id="siblings with one answer"),
        pytest.param(numbered("send", "sent"), "spread", 30, id="siblings with an effect"),
        pytest.param(
            (fails(f"tool_{n}", {}) for n in itertools.count()), "same_tool_failure", 5, id="tools that do not exist"
        ),
        pytest.param(
            (fails(("read", "search", "poll", "shell")[n % 4], {"n": n}) for n in itertools.count()),
            "nothing_works", 10, id="whatever is tried fails",
        ),
        pytest.param(
            (Play("poll", {}, "xy"[n.bit_count() % 2]) for n in itertools.count()), "nothing_new", 17, id="flapping"
        ),
    ],
)  # fmt: skip
def test_a_spread_over_siblings_ends_within_its_count(plays: Iterator[Play], kind: str, runs: int) -> None:
    played = play(plays)
    assert played.ran == runs
    assert played.ends[-2:] == ["blocked", "halted"]
    assert kind in played.kinds


def edits_and_tests() -> list[Play]:
    """A failing test, run again after each change."""
    tests = fails("shell", {"command": "pytest"}, "1 failed")
    return [play for n in range(20) for play in (Play("write", {"path": "a.py", "text": f"x = {n}"}, "ok"), tests)]


FRESH = [Play("read", {"path": f"new-{n}"}, f"text {n}") for n in range(3)]
LEGITIMATE = {
    "thirty different files": [Play("read", {"path": f"f{n}"}, f"text {n}") for n in range(30)],
    "thirty different files that hold the same": [Play("read", {"path": f"f{n}"}, "# licence") for n in range(30)],
    "thirty files written": [Play("write", {"path": f"f{n}"}, "ok") for n in range(30)],
    "polling something that moves": [Play("poll", {"job": 7}, f"{n} %") for n in range(30)],
    "paging": [Play("search", {"q": "tea", "page": n}, f"page {n}") for n in range(30)],
    "paging by the same call": [Play("shell", {"key": "PageDown"}, f"page {n}") for n in range(30)],
    "the same search twice with progress between": [FOUND, *FRESH, FOUND],
    "a failure, a change, the same call again": [
        MISSING, MISSING, Play("write", {"path": "a"}), Play("read", {"path": "a"}, "text"),
    ],
    "a failure, another tool's finding, another try": [
        *(fails("read", {"path": f"x{n}"}) for n in range(5)), FOUND, Play("read", {"path": "right"}, "text"),
    ],
    "failures with successes between": [
        play for n in range(10) for play in (fails("read", {"path": n}), Play("read", {"path": f"b{n}"}, f"text {n}"))
    ],
    "the same file read after each change": [
        play for n in range(10) for play in (Play("write", {"text": n}), Play("read", {"path": "a"}, "same"))
    ],
    "tests after each edit": edits_and_tests(),
    "four different guesses": [fails("read", {"path": n}) for n in "abcd"],
    "five files read twice": [Play("read", {"path": f"f{n % 5}"}, f"text {n % 5}") for n in range(10)],
    "a retry": [MISSING, Play("read", {"path": "a"}, "text")],
}  # fmt: skip


@pytest.mark.parametrize("plays", LEGITIMATE.values(), ids=LEGITIMATE)
def test_work_that_gets_on_is_never_blocked(plays: list[Play]) -> None:
    assert play(plays).ran == len(plays)


SILENT = set(LEGITIMATE) - {
    "thirty different files that hold the same", "thirty files written", "five files read twice",
    "four different guesses", "a failure, another tool's finding, another try",
    "a failure, a change, the same call again",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SILENT))
def test_work_that_gets_on_is_not_warned_of_either(name: str) -> None:
    assert set(play(LEGITIMATE[name]).ends) == {"ran"}


TOKENS = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 2), st.sampled_from("xyz"), st.booleans()),
    min_size=1, max_size=12,
)  # fmt: skip


@given(TOKENS, st.randoms(use_true_random=False))
def test_a_turn_over_finitely_many_calls_and_results_ends_in_whatever_order_they_come(
    tokens: list[tuple[str, int, str, bool]], order: Random
) -> None:
    """The bound: each new result may be followed by as many calls without one as ``nothing_new`` allows."""
    plays = [Play(tool, {"n": n}, text, OK if good else ERROR) for tool, n, text, good in tokens]
    most = len(plays) * (GuardSettings().block_after.of(Kind.NOTHING_NEW) + 1)
    played = play(order.choice(plays) for _ in range(most + 10))
    assert played.ends[-1] == "halted"
    assert played.ran <= most


def test_what_the_person_says_in_mid_turn_begins_the_counts_anew() -> None:
    played = play([MISSING] * 4)
    assert played.ends[-1] == "blocked"
    guard = heard(played.guard)
    for _ in range(3):
        assert not isinstance(before(guard, MISSING.act), Halt)
        guard, _ = observe(guard, MISSING.act, MISSING.result())
    assert before(guard, MISSING.act).__class__.__name__ == "Block"


def test_after_the_halt_no_call_of_the_batch_runs() -> None:
    plays = [MISSING] * 5 + [FOUND, SENT]
    played = play(plays, until_halt=False)
    assert played.ends == ["ran", "warned", "warned", "blocked", "halted", "halted", "halted"]
    assert "this turn is ended" in played.texts[-1]


def test_the_halt_tells_the_person_what_happened_and_what_to_do() -> None:
    guard = play([MISSING] * 4).guard
    halt = before(guard, MISSING.act)
    assert isinstance(halt, Halt)
    assert "the same call failed 3 times with the same arguments (`read`)" in halt.sentence
    assert "go on" in halt.sentence


@pytest.mark.parametrize("halt_after", [1, 2, 5])
def test_the_turn_ends_with_the_configured_block(halt_after: int) -> None:
    played = play(itertools.repeat(MISSING), GuardSettings(halt_after_blocks=halt_after))
    assert played.ends[3:] == ["blocked"] * (halt_after - 1) + ["halted"]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_counts_are_those_of_the_settings(count: int) -> None:
    settings = GuardSettings(warn_after=Counts(count, 99, 99), block_after=Counts(count + 1, 99, 99))
    played = play(itertools.repeat(MISSING), settings)
    assert played.ends == ["ran"] * (count - 1) + ["warned"] * 2 + ["blocked", "halted"]


def test_without_warnings_the_blocks_stay() -> None:
    assert play(itertools.repeat(MISSING), GuardSettings(warnings_enabled=False)).ends == [
        "ran", "ran", "ran", "blocked", "halted",
    ]  # fmt: skip


def test_without_hard_stops_the_warnings_stay() -> None:
    played = play([MISSING] * 50, GuardSettings(hard_stop_enabled=False))
    assert played.ends == ["ran"] + ["warned"] * 49


def test_an_outcome_counts_by_its_type_and_not_by_its_words() -> None:
    texts = [Play("read", {"path": n}, "Error: failed, exception, not found") for n in range(12)]
    assert play(texts).ran == 12
    assert play(fails("read", {"path": n}, "all is well") for n in range(12)).ran == 5


def test_an_unknown_outcome_is_no_failure() -> None:
    unknown = Play("send", {"n": 1}, "unknown", ToolStatus.UNKNOWN)
    assert set(play([unknown] * 10).ends) == {"ran"} or play([unknown] * 10).ran < 10


def test_a_guard_forgets_nothing_within_a_long_turn() -> None:
    plays = [Play("read", {"path": n}, f"text {n}") for n in range(1000)]
    played = play([MISSING, MISSING, *plays, MISSING, MISSING])
    assert played.ends[-2:] == ["warned", "blocked"]
    assert isinstance(played.guard, Guard)
