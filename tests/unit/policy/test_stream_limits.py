"""Time limits by server and model, and the seam between the parts of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.streams import (
    LOCAL,
    ORDINARY,
    OVERLAP,
    REASONING,
    joined,
    repeated,
    resume_from,
    time_limits,
)

FAR = "https://api.example.com/v1"


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8080/v1",
        "http://localhost:1234/v1",
        "http://[::1]:8080",
        "http://192.168.1.20:11434/v1",
        "http://nas.local/v1",
    ],
)
def test_a_server_on_this_machine_or_network_has_time_to_read_the_prompt(address: str) -> None:
    assert time_limits("llama", address) == LOCAL


@pytest.mark.parametrize("address", [FAR, "https://8.8.8.8/v1", "https://localhost.example.com/v1", ""])
def test_a_server_elsewhere_is_judged_by_the_ordinary_limits(address: str) -> None:
    assert time_limits("gpt-4o", address) == ORDINARY


@pytest.mark.parametrize(
    "model", ["o3", "openai/o4-mini", "gpt-5.2", "deepseek-reasoner", "deepseek-ai/DeepSeek-R1", "qwq-32b",
              "qwen3-235b-a22b-thinking-2507", "grok-4", "gemini-2.5-pro", "claude-sonnet-4-6", "kimi-k2-thinking"],
)  # fmt: skip
def test_a_model_that_thinks_first_has_time_to_think(model: str) -> None:
    assert time_limits(model, FAR) == REASONING


@pytest.mark.parametrize(
    "model", ["gpt-4o", "llama-3.3-70b", "mistral-large", "claude-3-5-haiku", "foo1", "gemini-2.0-flash"]
)
def test_a_model_that_answers_at_once_is_expected_to(model: str) -> None:
    assert time_limits(model, FAR) == ORDINARY


@pytest.mark.parametrize(
    ("cut_off", "more", "whole"),
    [
        ("The quick bro", "brown fox", "The quick brown fox"),
        ("The quick ", "brown fox", "The quick brown fox"),
        ("The quick ", " brown fox", "The quick brown fox"),
        ("The end.\n\nNex", "Next one", "The end.\n\nNext one"),
        ("one", " and two", "one and two"),
        ("一二三四五", "六七八", "一二三四五六七八"),
        ("The weather is fine. So", "weather is fine. So we go", "The weather is fine. So we go"),
        ("ha ha ha ", "ha ha", "ha ha ha ha ha"),
    ],
)
def test_two_parts_become_one_text(cut_off: str, more: str, whole: str) -> None:
    assert joined(resume_from(cut_off), more) == whole


@given(st.text(max_size=600), st.text(max_size=600))
def test_joining_loses_nothing_but_a_repetition(before: str, after: str) -> None:
    cut = repeated(before, after)
    assert 0 <= cut <= OVERLAP
    assert joined(before, after) == before + after[cut:]
    assert before.endswith(after[:cut])


@given(st.text(max_size=300))
def test_what_is_kept_is_a_beginning_of_what_was_said(text: str) -> None:
    kept = resume_from(text)
    assert text.startswith(kept)
    assert len(text) - len(kept) <= 40
    assert kept or not text
