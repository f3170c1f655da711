"""The scenarios of `test_kill_points`: one message, one kill at a named point, one restart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.waiting import until
from tests.wire.gateway.harness import (
    Chat,
    Discord,
    Gateway,
    Model,
    Slack,
    Telegram,
    configuration,
    free_port,
)
from tests.wire.gateway.invariants import check_chats, check_disk, texts_done

PATH = ("before_t1", "after_t1", "after_offset", "after_claim", "after_step_intent", "before_t2", "after_t2")
SENDING = ("sending_before_bytes", "sending_after_bytes")
TOOL = ("after_step_result", "after_tool_intent", "after_tool_effect", "after_tool_result")
TOOL_CALL = {"tool": "session_search", "arguments": {"query": "tea"}}
SLOW = {"pieces": 16, "gap": 0.15}
SLOW_TEXT = "word " * 16

Point = tuple[str, str]
"""(kind of answer, name of the checkpoint)."""

SCENARIOS: tuple[Point, ...] = (
    *(("plain", point) for point in (*PATH, *SENDING)),
    *(("tool", point) for point in (*TOOL, "after_step_intent:2", "before_t2", "sending_after_bytes")),
    *(("slow", point) for point in ("drafting", "drafting:2", "before_t2", "after_t2", *SENDING)),
)


def doubtful(scenario: Point) -> bool:
    """Whether bytes of a new message may have gone before the kill: then a copy waits 30 s and is marked."""
    kind, point = scenario
    return (point in SENDING and kind != "slow") or scenario == ("slow", "drafting")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a scenario left behind; ``asked`` are model requests for the message, until the kill and in all."""

    code: int
    first: list[str]
    second: list[str]
    committed: bool
    asked_before: int
    asked: int


def play(outsides: SimpleQueue[tuple[Telegram, Model]], tmp: Path, number: int, scenario: Point) -> Ended:
    """Takes an outside of its own for the time it needs one."""
    telegram, model = outsides.get()
    try:
        return play_on(telegram, model, tmp / f"home-{number}", number, scenario)
    finally:
        outsides.put((telegram, model))


def play_on(telegram: Chat, model: Model, home: Path, number: int, scenario: Point) -> Ended:
    """The scenario on one platform. Two of them offer what was said after the first start, so that comes first."""
    kind, point = scenario
    chat = 10 + number
    first, second = f"«{number} first»", f"«{number} second»"
    gateway = Gateway(home, configuration(telegram, model, free_port()))
    try:
        if isinstance(telegram, Discord | Slack):
            gateway.start()
            telegram.connected()
            telegram.say(chat, "«before»")
            telegram.wait(chat, "«before»")
            assert gateway.stop() == 0
        model.script(*_script(kind, first))
        telegram.say(chat, first)
        code = gateway.start(crash_at=point).wait_exit(60)
        committed = first in texts_done(gateway)
        asked_before = _asked(model, first)
        telegram.say(chat, second)
        gateway.start()
        telegram.wait(chat, second, within=100)
        until(telegram.all_received, within=10, why="Telegram knows all was received")
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
