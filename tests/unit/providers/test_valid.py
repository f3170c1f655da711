"""The validators themselves: each thing they forbid is seen."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.providers.anthropic import valid as anthropic
from hermes.providers.openai import valid as openai


def said(role: str, text: str = "hi") -> dict[str, Any]:
    return {"role": role, "content": text}


def calls(*ids: str, arguments: str = "{}") -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": "f", "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([said("user"), calls("a"), said("user")], "calls without a result"),
        ([said("user"), calls("a")], "calls without a result"),
        ([said("user"), result("a")], "without its call"),
        ([said("user"), calls("a"), result("a"), result("a")], "without its call"),
        ([said("user"), calls("a", "a"), result("a"), result("a")], "two calls of one id"),
        ([said("user"), calls("a", arguments="[]"), result("a")], "no JSON object"),
        ([said("user"), calls("a", arguments="{"), result("a")], "no JSON object"),
        ([said("user"), said("user")], "alternate"),
        ([said("assistant"), said("user")], "alternate"),
        ([said("user"), calls("a"), result("a"), said("user")], "alternate"),
        ([said("user", "")], "empty"),
        ([said("user"), said("system")], "system message in the middle"),
        ([said("system")], "no user message"),
    ],
)
def test_what_an_openai_server_refuses_is_seen(messages: list[dict[str, Any]], words: str) -> None:
    assert any(words in problem for problem in openai.problems(messages))


def test_a_legal_openai_conversation_has_no_problem() -> None:
    whole = [said("system"), said("user"), calls("a", "b"), result("b"), result("a"), said("assistant"), said("user")]
    assert openai.problems(whole) == ()


def blocks(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


TEXT = {"type": "text", "text": "hi"}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def came(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([blocks("assistant", TEXT)], "alternate"),
        ([blocks("user", TEXT), blocks("user", TEXT)], "alternate"),
        ([blocks("user")], "empty"),
        ([blocks("user", {"type": "text", "text": " "})], "blank"),
        ([blocks("user", TEXT), blocks("assistant", use("a")), blocks("user", TEXT)], "results"),
        ([blocks("user", TEXT), blocks("assistant", use("a"))], "without a result"),
        ([blocks("user", came("a"))], "results"),
        ([blocks("user", TEXT), blocks("assistant", use("a")), blocks("user", TEXT, came("a"))], "behind other words"),
        (
            [blocks("user", TEXT), blocks("assistant", use("a")), blocks("user", came("a")),
             blocks("assistant", use("a")), blocks("user", came("a"))],
            "used before",
        ),
        ([], "no user message"),
    ],
)  # fmt: skip
def test_what_the_messages_api_refuses_is_seen(messages: list[dict[str, Any]], words: str) -> None:
    assert any(words in problem for problem in anthropic.problems(messages))


def test_a_legal_anthropic_conversation_has_no_problem() -> None:
    whole = [blocks("user", TEXT), blocks("assistant", TEXT, use("a")), blocks("user", came("a"), TEXT),
             blocks("assistant", TEXT)]  # fmt: skip
    assert anthropic.problems(whole) == ()
