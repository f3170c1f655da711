"""Estimates know scripts, learn from what providers count, and believe no nonsense."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.transcript import AssistantItem, ToolSpec, UserItem
from hermes.policy.estimate import (
    LEAST,
    MOST,
    PRIOR,
    Calibration,
    Kind,
    dump,
    item_measure,
    learned,
    load,
    measure,
    prompt_measure,
    tokens,
)
from tests.unit.policy.histories import WORDS, legal

ENGLISH = "The library opens at nine in the morning and closes late in the evening, except on Sundays. "
CHINESE = "图书馆早上九点开门，晚上很晚才关门，星期天除外。想借书的人需要办一张卡，每年五欧元。"
CODE = "def price(items):\n    total = 0\n    for item in items:\n        total += item.price * 2\n    return total\n"
TEXTS = {"English": ENGLISH, "Chinese": CHINESE, "code": CODE}


def words(text: str) -> int:
    """A vocabulary like many: words, single digits, symbols; two tokens a Han character."""
    m = measure(text)
    return round(m[Kind.WORDS] + m[Kind.LETTERS] + 1.2 * m[Kind.SYMBOLS] + m[Kind.BREAKS] + 1.9 * m[Kind.HAN])


def single_bytes(text: str) -> int:
    return len(text.encode())


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (ENGLISH, 15, 24),
        (CHINESE, 25, 60),
        (CODE, 25, 48),
        ("図書館は朝九時に開き、夜遅くに閉まります。", 14, 30),
        ("Библиотека открывается в девять утра.", 10, 24),
        ("aGVsbG8gd29ybGQgaG93IGFyZSB5b3UgdG9kYXk=" * 10, 150, 420),
        ("x" * 10_000, 1_000, 10_000),
        (" " * 10_000, 50, 2_000),
        ("", 1, 1),
    ],
)
def test_a_text_has_about_as_many_tokens_as_common_vocabularies_give_it(
    text: str, least: int, most: int
) -> None:
    assert least <= tokens(measure(text)) <= most


@pytest.mark.parametrize("count", [words, single_bytes])
@pytest.mark.parametrize("order", list(itertools.permutations(["English", "Chinese", "code"])))
def test_three_turns_are_enough_to_know_a_vocabulary(count: object, order: tuple[str, ...]) -> None:
    assert callable(count)
    system = "You are Hermes, a helpful assistant. Be brief."
    calibration, items, counted = PRIOR, [], count(system) + 8
    for name in order:
        items += [UserItem(TEXTS[name] * 3)]
        counted += count(TEXTS[name] * 3) + 5
        calibration = learned(calibration, prompt_measure(system, items), counted)
        items += [AssistantItem("Yes.")]
        counted += count("Yes.") + 5
    for name, text in TEXTS.items():
        assert tokens(measure(text * 9), calibration) == pytest.approx(count(text * 9), rel=0.15), name


@pytest.mark.parametrize("lie", [0, -5, 1, 10, 10_000_000])
def test_a_count_that_cannot_be_teaches_nothing(lie: int) -> None:
    measured = prompt_measure("You are Hermes.", [UserItem(ENGLISH * 40)])
    assert learned(PRIOR, measured, lie) is PRIOR


def test_a_template_that_shows_no_tools_is_found_out() -> None:
    spec = ToolSpec(
        "read_file", "Reads a file. " * 40, {"type": "object", "properties": {"path": {"type": "string"}}}
    )
    calibration = PRIOR
    for turn in range(1, 4):
        items = [UserItem(ENGLISH * turn)]
        counted = tokens(prompt_measure("You are Hermes.", items))
        calibration = learned(calibration, prompt_measure("You are Hermes.", items, [spec]), counted)
    whole = prompt_measure("You are Hermes.", [UserItem(ENGLISH * 9)], [spec])
    bare = prompt_measure("You are Hermes.", [UserItem(ENGLISH * 9)])
    assert tokens(whole, calibration) == pytest.approx(tokens(bare), rel=0.15)


@given(st.lists(st.tuples(legal(), st.integers(0, 10**7)), max_size=12))
def test_whatever_is_counted_the_multipliers_stay_within_bounds(counts: list[tuple[object, int]]) -> None:
    calibration = PRIOR
    for items, counted in counts:
        calibration = learned(calibration, prompt_measure("s", items), counted)  # type: ignore[arg-type]
        assert all(least <= factor <= MOST for least, factor in zip(LEAST, calibration.factors, strict=True))
        doubt = calibration.ideas[0].doubt
        assert all(math.isfinite(value) for row in doubt for value in row)
        assert all(doubt[k][k] >= 0 for k in Kind)


@given(st.lists(st.tuples(WORDS, st.floats(0.5, 4)), min_size=1, max_size=5))
def test_what_is_kept_on_disk_is_read_back(counts: list[tuple[str, float]]) -> None:
    calibration = PRIOR
    for text, ratio in counts:
        measured = item_measure(UserItem(text))
        calibration = learned(calibration, measured, round(ratio * tokens(measured)))
    back = load(dump(calibration))
    assert back.counts == calibration.counts
    assert back.factors == pytest.approx(calibration.factors, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[15,1,[]]", "[15,1,[[0,[1],[1]]]]", "[3,1,[[0,[1],[1]]]]"])
def test_what_an_older_version_kept_is_no_calibration(text: str) -> None:
    assert load(text) == PRIOR


def test_a_calibration_is_about_one_kilobyte() -> None:
    grown: Calibration = PRIOR
    for turn in range(30):
        grown = learned(
            grown, prompt_measure("s", [UserItem((ENGLISH + CHINESE + CODE) * (turn + 1))]), 70 * (turn + 1)
        )
    assert len(dump(grown)) < 1_500


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, CODE, ENGLISH * 40 + CHINESE * 40 + CODE * 40])
def test_a_very_long_text_is_estimated_from_samples(text: str) -> None:
    times = 200_000 // len(text) + 1
    assert tokens(measure(text * times)) == pytest.approx(times * tokens(measure(text)), rel=0.08)
