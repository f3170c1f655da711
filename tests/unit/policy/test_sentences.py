"""Sentences for the person in the chat."""

from __future__ import annotations

import pytest

from hermes.core.failures import Reason, Verdict
from hermes.policy.recovery import DEADLINE_KEY
from hermes.policy.sentences import SENTENCES, duration, sentence


@pytest.mark.parametrize(("reason", "detail"), list(SENTENCES), ids=str)
def test_each_sentence_says_what_happened_and_what_to_do_next(reason: Reason, detail: str | None) -> None:
    text = sentence(Verdict(reason, rule="test", detail=detail), provider="main", model="some-model")
    assert "{" not in text
    assert text[0].isupper()
    assert text.rstrip().endswith(".")
    assert text.count(". ") + text.count(": ") >= 1
    assert "main" in text or "some-model" in text


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence_also_with_an_unheard_detail(reason: Reason) -> None:
    assert sentence(Verdict(reason, rule="test", detail="unheard"))


def test_an_overflow_names_the_window_and_the_numbers() -> None:
    text = sentence(
        Verdict(Reason.CONTEXT_OVERFLOW, rule="test", limit=200_000, requested=208_310), model="some-model"
    )
    assert "too long" in text
    assert "window" in text
    assert "208,310" in text
    assert "200,000" in text


def test_a_limit_names_when_to_come_back() -> None:
    assert "in 4 hours." in sentence(Verdict(Reason.RATE_LIMIT, rule="test", retry_after=13_873.0))


def test_the_deadline_has_its_own_sentence() -> None:
    assert "time set for one turn" in sentence(Verdict(Reason.OVERLOADED, rule="test"), key=DEADLINE_KEY)


def test_names_with_braces_are_left_as_they_are() -> None:
    assert "{model}" in sentence(Verdict(Reason.MODEL_NOT_FOUND, rule="test"), model="{model}")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1 second"),
        (40.2, "41 seconds"),
        (60.0, "1 minute"),
        (61.0, "61 seconds"),
        (300.0, "5 minutes"),
        (3600.0, "1 hour"),
        (13_873.0, "4 hours"),
        (602_705.0, "7 days"),
    ],
)
def test_durations_are_rounded_up(seconds: float, text: str) -> None:
    assert duration(seconds) == text
