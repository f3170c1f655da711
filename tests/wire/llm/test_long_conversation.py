"""Windows and tokens against a real llama-server: a chat that outgrows its window goes on, and estimates come near."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.policy.estimate import load, measure, tokens
from tests.llama import Llama, serving
from tests.tiny_model import write
from tests.wire.gateway.harness import Telegram, merged
from tests.wire.llm.test_conversation import CHAT, answered, gateway

pytestmark = [pytest.mark.llm, pytest.mark.wire]

WINDOW = 1024


@pytest.fixture(scope="module")
def smol(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    with serving(tmp_path_factory.mktemp("smol"), context_window=WINDOW) as server:
        yield server


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    folder = tmp_path_factory.mktemp("tiny")
    model = write(folder / "tiny.gguf", context_window=WINDOW)
    with serving(folder, context_window=WINDOW, other_model=model) as server:
        yield server


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    simulator = Telegram()
    yield simulator
    simulator.close()


def sixty_messages(folder: Path, telegram: Telegram, llama: Llama, **model: Any) -> tuple[int, int]:
    """Says sixty things, each after the answer before; how many were answered, and how many summaries made."""
    it = gateway(folder, telegram, llama, max_output=24, **model)
    it.write_config(merged(it.config, {"streaming": {"enabled": False}, "agent": {"max_continuations": 0}}))
    try:
        it.start()
        for number in range(60):
            telegram.say(CHAT, f"{number}. The harbour opens at {number % 12} and closes late; what would you do?")
            assert "too long" not in answered(telegram, number)
        assert it.stop() == 0
        assert it.rows("SELECT count(*) FROM messages WHERE live=1") == [(120,)]
        assert it.log_text().count("provider_failed") <= 3, "an overflow is met once, not at every message"
        [(count,)] = it.rows("SELECT count(*) FROM inbox WHERE outcome='answered'")
        [(summaries,)] = it.rows("SELECT count(*) FROM snapshots WHERE text<>''")
        return int(count), int(summaries)
    finally:
        it.close()


@pytest.mark.parametrize("known", [True, False], ids=["window configured", "window unknown"])
def test_a_chat_of_sixty_messages_keeps_answering(
    tmp_path: Path, telegram: Telegram, tiny: Llama, known: bool
) -> None:
    window = {"context_window": WINDOW} if known else {}
    count, _ = sixty_messages(tmp_path, telegram, tiny, **window)
    assert count == 60


@pytest.mark.long
def test_a_chat_of_sixty_messages_with_a_model_that_can_summarise(
    tmp_path: Path, telegram: Telegram, smol: Llama
) -> None:
    count, summaries = sixty_messages(tmp_path, telegram, smol, context_window=WINDOW)
    assert count == 60
    assert summaries, "none was believed"


ENGLISH = (
    "The library opens at nine in the morning and closes late in the evening, except on Sundays when it stays shut. "
    "Visitors who want to borrow a book need a card, which costs five euros a year and can be renewed online.",
    "Economists disagree about the causes of inflation: some blame monetary policy, others point at supply chains, "
    "energy prices and the expectations of consumers. Most of them agree that it is seldom one cause alone.",
)
CHINESE = (
    "图书馆早上九点开门，晚上很晚才关门，星期天除外。想借书的人需要办一张卡，每年五欧元，也可以在网上续期。",
    "昨天我和妹妹沿着河边散步，我们谈到了她的新房子。她想要一个大厨房、三间卧室和一个孩子们可以玩耍的花园。",
)
CODE = (
    "def price(items, rate):\n    total = 0\n    for item in items:\n        if item.count > 0:\n"
    "            total += item.price * item.count\n    return round(total * (1 + rate), 2)\n\n\n"
    "def cheapest(items):\n    found = None\n    for item in items:\n        if found is None or item.price < found:\n"
    "            found = item.price\n    return found\n",
    "class Cart(Base):\n    def __init__(self, owner):\n        super().__init__()\n        self.owner = owner\n"
    "        self.lines = []\n\n    def add(self, item):\n        self.lines.append(item)\n        return self\n\n"
    "    def total(self, rate=0.19):\n        amount = sum(line.price * line.count for line in self.lines)\n"
    "        if amount > 100:\n            amount = amount * 0.95\n        return round(amount * (1 + rate), 2)\n",
)


def tokenized(llama: Llama, text: str) -> int:
    """The server's own count of a text by itself."""
    body = json.dumps({"content": text}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{llama.base_url.removesuffix('/v1')}/tokenize", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return len(json.load(answer)["tokens"])


@pytest.mark.parametrize("server", ["smol", "tiny"])
def test_after_three_turns_an_estimate_is_within_fifteen_percent(
    tmp_path: Path, telegram: Telegram, server: str, smol: Llama, tiny: Llama
) -> None:
    llama = smol if server == "smol" else tiny
    it = gateway(tmp_path, telegram, llama, max_output=32, context_window=100_000)
    try:
        it.start()
        for number, text in enumerate((ENGLISH[0], CHINESE[0], CODE[0])):
            telegram.say(CHAT, "/new")
            answered(telegram, 2 * number)
            telegram.say(CHAT, text)
            assert "too long" not in answered(telegram, 2 * number + 1)
        assert it.stop() == 0
        [(value,)] = it.rows("SELECT value FROM learned WHERE key='vocabulary'")
        calibration = load(value)
        assert calibration.counts >= 3
        for name, text in {"English": ENGLISH[1], "Chinese": CHINESE[1], "code": CODE[1]}.items():
            assert tokens(measure(text), calibration) == pytest.approx(tokenized(llama, text), rel=0.15), name
    finally:
        it.close()
