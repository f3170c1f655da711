"""The real server that other tests of this lane stand on: it answers, and its overflow error is genuine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.llama import MODEL, Llama, serving

pytestmark = [pytest.mark.llm, pytest.mark.wire]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    with serving(tmp_path_factory.mktemp("llama")) as server:
        yield server


def _ask(llama: Llama, text: str) -> tuple[int, dict[str, Any]]:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 16,
        "temperature": 0,
    }
    request = urllib.request.Request(
        f"{llama.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


def test_a_question_gets_a_real_models_answer(llama: Llama) -> None:
    status, answer = _ask(llama, "What is the capital of France?")
    assert status == 200
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] > 0


def test_a_prompt_beyond_the_context_is_refused_with_the_genuine_error(llama: Llama) -> None:
    status, answer = _ask(llama, "word " * (3 * llama.context_window))
    assert status == 400
    assert answer["error"]["type"] == "exceed_context_size_error"
    assert answer["error"]["n_ctx"] == llama.context_window
