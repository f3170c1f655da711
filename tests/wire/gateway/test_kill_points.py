"""kill -9 at every named point of a message's path: a real process, a real kill, a real restart.

All scenarios run once, a few at a time (most of each is waiting: a possible repeat waits 30 s for its mark);
the tests below look at what came of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from hermes.core.delivery import MARK_PREFIX
from tests.waiting import until
from tests.wire.gateway.harness import Gateway, Model, Telegram, configuration, free_port, simulators
from tests.wire.gateway.invariants import check_chats, check_disk, texts_done

pytestmark = pytest.mark.wire

LABS = 4
PATH = ("before_t1", "after_t1", "after_offset", "after_claim", "after_step_intent", "before_t2", "after_t2")
SENDING = ("sending_before_bytes", "sending_after_bytes")
TOOL = ("after_step_result", "after_tool_intent", "after_tool_effect", "after_tool_result")
TOOL_CALL = {"tool": "session_search", "arguments": {"query": "tea"}}
SLOW = {"pieces": 16, "gap": 0.15}
SLOW_TEXT = "word " * 16

SCENARIOS = [
    *(("plain", point) for point in (*PATH, *SENDING)),
    *(("tool", point) for point in (*TOOL, "after_step_intent:2", "before_t2", "sending_after_bytes")),
    *(("slow", point) for point in ("drafting", "drafting:2", "before_t2", "after_t2", *SENDING)),
]
LAST = [s for s in SCENARIOS if s[1] not in SENDING and s != ("slow", "drafting")]
ORDER = [s for s in SCENARIOS if s not in LAST] + LAST  # what waits longest begins first


@dataclass(frozen=True, slots=True)
class Ended:
    """What a scenario left behind; ``before`` and ``after`` are model requests around the kill."""

    code: int
    first: list[str]
    second: list[str]
    committed: bool
    asked_before: int
    asked: int


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[tuple[str, str], Future[Ended]]]:
    tmp = tmp_path_factory.mktemp("kills")
    outsides: SimpleQueue[tuple[Telegram, Model]] = SimpleQueue()
    opened = [simulators() for _ in range(LABS)]
    for outside in opened:
        outsides.put(outside.__enter__())

    def play(number: int, kind: str, point: str) -> Ended:
        telegram, model = outsides.get()
        try:
            return _play(telegram, model, tmp / f"home-{number}", number, kind, point)
        finally:
            outsides.put((telegram, model))

    try:
        with ThreadPoolExecutor(LABS) as pool:
            futures = {s: pool.submit(play, n, *s) for n, s in enumerate(ORDER)}
        yield futures
    finally:
        for outside in opened:
            outside.__exit__(None, None, None)


def _play(telegram: Telegram, model: Model, home: Path, number: int, kind: str, point: str) -> Ended:
    chat = 10 + number
    first, second = f"«{number} first»", f"«{number} second»"
    model.script(*_script(kind, first))
    gateway = Gateway(home, configuration(telegram, model, free_port()))
    try:
        telegram.say(chat, first)
        code = gateway.start(crash_at=point).wait_exit(60)
        committed = first in texts_done(gateway)
        asked_before = _asked(model, first)
        telegram.say(chat, second)
        gateway.start()
        telegram.wait(chat, second, within=75)
        until(lambda: _quiet(telegram), within=10, why="Telegram knows that all was received")
        assert gateway.stop() == 0
        check_disk(gateway)
        check_chats(telegram, {chat: [first, second]})
        texts = telegram.texts(chat)
        return Ended(
            code, [t for t in texts if first in t], [t for t in texts if second in t], committed, asked_before,
            _asked(model, first),
        )  # fmt: skip
    finally:
        gateway.close()


def _script(kind: str, first: str) -> list[dict[str, Any]]:
    match kind:
        case "tool":
            return [TOOL_CALL]
        case "slow":
            return [{"text": f"{SLOW_TEXT}{first}", **SLOW}]
        case _:
            return []


def _asked(model: Model, text: str) -> int:
    return sum(text in request["text"] for request in model.requests())


def _quiet(telegram: Telegram) -> bool:
    return bool(telegram.read("state")["pending"] == 0)


def _id(scenario: tuple[str, str]) -> str:
    return "-".join(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_id)
def test_killed_at_a_named_point_everything_is_answered_and_the_disk_is_whole(
    ended: Mapping[tuple[str, str], Future[Ended]], scenario: tuple[str, str]
) -> None:
    end = ended[scenario].result()
    assert end.code == -9, f"{scenario[1]} was never reached"
    assert len(end.second) == 1


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s[1] in ("after_t2", *SENDING)], ids=_id)
def test_a_committed_answer_costs_no_further_model_request(
    ended: Mapping[tuple[str, str], Future[Ended]], scenario: tuple[str, str]
) -> None:
    end = ended[scenario].result()
    assert end.committed
    assert end.asked == end.asked_before


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_id)
def test_a_copy_is_marked_exactly_where_bytes_of_a_new_message_may_have_gone(
    ended: Mapping[tuple[str, str], Future[Ended]], scenario: tuple[str, str]
) -> None:
    kind, point = scenario
    marked = [t for t in ended[scenario].result().first if t.startswith(MARK_PREFIX)]
    doubtful = (point in SENDING and kind != "slow") or scenario == ("slow", "drafting")
    assert len(marked) == int(doubtful)
    plain = len(ended[scenario].result().first) - len(marked)
    assert plain == int(not doubtful or point == "sending_after_bytes")
