"""Buttons name their question and their option, and nothing else's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.buttons import LABEL, buttons, pressed


def test_each_option_is_a_button_that_names_its_number() -> None:
    (tea, coffee) = buttons("7:1:call", ["tea", "coffee " * 40])
    assert tea[0] == "tea"
    assert len(coffee[0]) == LABEL
    assert (pressed(tea[1], "7:1:call"), pressed(coffee[1], "7:1:call")) == ("1", "2")


def test_a_button_of_another_question_chooses_nothing() -> None:
    [(_, data)] = buttons("7:1:call", ["tea"])
    assert pressed(data, "7:2:call") is None


@given(st.text(max_size=40), st.lists(st.text(max_size=200), max_size=20))
def test_data_fits_every_platform(intent: str, options: list[str]) -> None:
    for number, (label, data) in enumerate(buttons(intent, options), start=1):
        assert len(label) <= LABEL
        assert data.isascii()
        assert len(data) <= 64
        assert pressed(data, intent) == str(number)


@given(st.text(max_size=40))
def test_anything_else_is_no_button_of_ours(data: str) -> None:
    assert pressed(data, "7:1:call") in (None, data.rpartition(":")[2])
