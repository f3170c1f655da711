"""The main job end to end: Telegram in front, the gateway's own process, a real model behind.

What a model says is its own affair: these tests look at who said something, when, and what became of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.llama import MODEL, Llama, serving
from tests.tiny_model import write
from tests.waiting import until
from tests.wire.gateway.harness import Gateway, Telegram, configuration, free_port, merged

pytestmark = [pytest.mark.llm, pytest.mark.wire]

CHAT = 7


class _NoModel:
    """Stands where the simulated model's address is read; the real one's is laid over it."""

    where: ClassVar[dict[str, str]] = {"base_url": "http://127.0.0.1:9/v1"}


@pytest.fixture(scope="module")
def smol(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    with serving(tmp_path_factory.mktemp("smol")) as server:
        yield server


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    folder = tmp_path_factory.mktemp("tiny")
    with serving(folder, context_window=512, other_model=write(folder / "tiny.gguf")) as server:
        yield server


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    simulator = Telegram()
    yield simulator
    simulator.close()


def provider(llama: Llama, kind: str, **model: Any) -> dict[str, Any]:
    base = llama.base_url if kind == "openai" else llama.base_url.removesuffix("/v1")
    return {
        "kind": kind, "base_url": base, "api_key": "none-needed", "first_byte_timeout": 60, "stall_timeout": 60,
        "models": {MODEL: model},
    }  # fmt: skip


def gateway(folder: Path, telegram: Telegram, llama: Llama, kind: str = "openai", **model: Any) -> Gateway:
    """A gateway whose only model is the real one."""
    config = merged(
        configuration(telegram, _NoModel(), free_port()),  # type: ignore[arg-type]
        {
            "model": {"provider": "sim", "model": MODEL},
            "streaming": {"first_after": 0.2, "min_interval": 0.3},
            "gateway": {"drain_timeout": 60},
        },
    )
    config["providers"] = {"sim": provider(llama, kind, **model)}
    return Gateway(folder / "home", config)


def answered(telegram: Telegram, already: int, within: float = 90.0) -> str:
    """The chat's next message; while it is streamed, as far as it has come."""
    texts = until(
        lambda: (t := telegram.texts(CHAT)) and len(t) > already and t, within=within, why="the model answers"
    )
    return str(texts[already])


CONTINUATIONS = 3
"""``agent.max_continuations`` by default."""


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_question_gets_a_real_models_answer(
    tmp_path: Path, telegram: Telegram, smol: Llama, kind: str
) -> None:
    it = gateway(tmp_path, telegram, smol, kind, max_output=48)
    try:
        it.start()
        telegram.say(CHAT, "What is the capital of France?")
        assert answered(telegram, 0).strip()
        assert it.stop() == 0
        assert it.rows("SELECT outcome FROM inbox") == [("answered",)]
        assert it.rows("SELECT state FROM outbox") == [("delivered",)]
        [(tokens,)] = it.rows("SELECT output_tokens FROM ledger")
        assert 0 < tokens <= 48 * (1 + CONTINUATIONS)  # an answer that hits the cap is asked to go on
        [(final,)] = it.rows("SELECT text FROM messages ORDER BY seq DESC LIMIT 1")
        assert final.strip()
        assert len(telegram.texts(CHAT)) == 1
    finally:
        it.close()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_prompt_beyond_the_context_gets_one_clear_sentence_and_the_next_message_is_answered(
    tmp_path: Path, telegram: Telegram, tiny: Llama, kind: str
) -> None:
    it = gateway(tmp_path, telegram, tiny, kind, max_output=24)
    try:
        it.start()
        telegram.say(CHAT, "hello world " * 300)
        told = answered(telegram, 0)
        assert "too long" in told, told
        assert "Traceback" not in told
        assert "exceed_context_size_error" not in told
        telegram.say(CHAT, "hello")
        assert answered(telegram, 1).strip()
        assert it.stop() == 0
        assert it.rows("SELECT outcome, outcome_reason FROM inbox ORDER BY id") == [
            ("failed_told", "context_overflow"), ("answered", None),
        ]  # fmt: skip
    finally:
        it.close()


def test_a_conversation_outgrows_the_context_and_goes_on(
    tmp_path: Path, telegram: Telegram, tiny: Llama
) -> None:
    """Nobody told the gateway the window: the server's own error does, and the oldest part is left out."""
    it = gateway(tmp_path, telegram, tiny, max_output=24)
    try:
        it.start()
        for number in range(6):
            telegram.say(CHAT, f"number {number} " + "hello " * 15)
            assert "too long" not in answered(telegram, number)
        assert it.stop() == 0
        assert it.rows("SELECT DISTINCT outcome FROM inbox") == [("answered",)]
        assert "context_overflow" in it.log_text(), "the window was never outgrown"
    finally:
        it.close()


def test_a_model_that_is_not_there_is_named_and_its_turn_waits(
    tmp_path: Path, telegram: Telegram, tiny: Llama
) -> None:
    it = gateway(tmp_path, telegram, tiny)
    broken = merged(it.config, {"agent": {"api_max_retries": 1, "retry_base": 0.1, "retry_cap": 0.2}})
    broken["providers"]["sim"]["base_url"] = f"http://127.0.0.1:{free_port()}/v1"
    it.write_config(broken)
    try:
        it.start()
        telegram.say(CHAT, "hello")
        assert "sim" in answered(telegram, 0)
        assert it.stop() == 0
        assert it.rows("SELECT state FROM turns") == [("suspended",)]
    finally:
        it.close()
