"""One thing that cannot be read, shown or survived delays and kills nothing else (R1, R15, promise 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from tests.wire.gateway.harness import Lab, lab
from tests.wire.gateway.invariants import check_disk

pytestmark = pytest.mark.wire
CHAT = {"id": 10, "type": "private", "first_name": "U"}
SENDER = {"id": 10, "is_bot": False, "first_name": "U"}
MESSAGE = {"message_id": 900, "date": 1_796_000_000, "chat": CHAT, "from": SENDER}

POISON: list[dict[str, Any]] = [
    {"message": None},
    {"message": []},
    {"message": {}},
    {"message": "text"},
    {"message": {**MESSAGE, "text": 5}},
    {"message": {**MESSAGE, "message_id": 901, "text": {"a": [1]}, "entities": "none"}},
    {"message": {**MESSAGE, "message_id": 902, "text": "date", "date": "yesterday"}},
    {"message": {**MESSAGE, "message_id": 903, "text": "far", "date": 10**30}},
    {"message": {**MESSAGE, "message_id": 904, "text": "entity", "entities": [{"type": 7, "offset": "x"}, None, 4]}},
    {"message": {**MESSAGE, "message_id": 905, "text": "reply", "reply_to_message": 12}},
    {"message": {**MESSAGE, "message_id": 906, "photo": [{"file_id": None}], "caption": 3}},
    {"message": {**MESSAGE, "message_id": "907", "text": "id as text"}},
    {"message": {**MESSAGE, "message_id": 908, "text": "no sender", "from": None}},
    {"message": {**MESSAGE, "message_id": 909, "text": "odd chat", "chat": {"id": "ten"}}},
    {"message": {**MESSAGE, "message_id": 910, "text": "lone \ud800 surrogate"}},
    {"message": {**MESSAGE, "message_id": 911, "text": "nul \u0000 character"}},
    {"message": {**MESSAGE, "message_id": 912, "text": "x", "extra": {"deep": [[[[[[[[[[]]]]]]]]]]}}},
    {"callback_query": {"id": 5}},
    {"edited_message": {"message_id": 1}},
    {"invented_kind_of_update": {"a": 1}},
]


def test_malformed_updates_stop_nobody_and_each_has_its_end(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        it.gateway.start()
        for number, update in enumerate(POISON):
            it.telegram.order("inject", update)
            it.telegram.say(20 + number % 3, f"«{number}»")
        for number in range(len(POISON)):
            it.telegram.wait(20 + number % 3, f"«{number}»")
        it.telegram.say(10, "«the same chat goes on»")
        it.telegram.wait(10, "«the same chat goes on»")
        until(lambda: it.telegram.read("state")["pending"] == 0, within=10, why="the cursor moves on")
        until(lambda: _read_three_times(it), within=20, why="what cannot be read is tried three times")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        assert not it.gateway.events("task_crashed")
        poisoned = it.gateway.rows("SELECT attempts FROM inbox WHERE outcome='dead_letter' AND attempts>0")
        assert all(attempts == 3 for (attempts,) in poisoned)
        assert it.gateway.rows("SELECT count(*) FROM inbox WHERE outcome='dead_letter'")[0][0] > 0


def _read_three_times(it: Lab) -> bool:
    """Triage is one queue: the last message's answer says that each row was looked at once at least."""
    attempts = {event["row"]: event["attempts"] for event in it.gateway.events("poison")}
    return set(attempts.values()) == {3}


UGLY: list[tuple[str, str]] = [
    ("control characters", "\x00\x01\x1b[31m\u202e\ufeff «end»"),
    ("quotes without end", ">" * 3000 + " «end»"),
    ("lists without end", "".join("  " * n + "- x\n" for n in range(300)) + "\n«end»"),
    ("brackets without end", "[" * 5000 + "](" * 5000 + " «end»"),
    ("stars without end", "**_" * 4000 + " «end»"),
    ("an open fence", "```python\n" + "print(1)\n" * 2000 + "«end»"),
    ("combining marks", "e" + "\u0301" * 9000 + " «end»"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with lab(tmp_path_factory.mktemp("ugly")) as it:
        it.gateway.start()
        yield it
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        assert not it.gateway.events("task_crashed")


@pytest.mark.parametrize("number", range(len(UGLY)), ids=[name for name, _ in UGLY])
def test_an_ugly_answer_arrives_or_is_told_and_the_chat_goes_on(shared: Lab, number: int) -> None:
    chat = 10 + number
    shared.model.script({"text": UGLY[number][1], "pieces": 3})
    shared.telegram.say(chat, "speak")
    until(lambda: _told(shared, chat), within=30, why="the answer, or a sentence that it cannot be shown")
    shared.telegram.say(chat, "«next»")
    shared.telegram.wait(chat, "«next»")


def test_lone_surrogates_in_an_answer_do_not_stop_its_chat(shared: Lab) -> None:
    """A server escapes them in its JSON; they stand for no character and nothing can carry them further."""
    delta = '{"choices": [{"index": 0, "delta": {"content": "a \\ud83d b \\udc00 «end»"}, "finish_reason": %s}]}'
    body = "".join(f"data: {delta % finish}\n\n" for finish in ("null", '"stop"')) + "data: [DONE]\n\n"
    shared.model.script({"kind": "reply", "body": body, "content_type": "text/event-stream"})
    shared.telegram.say(31, "speak")
    until(lambda: _told(shared, 31), within=30, why="the answer, or a sentence that it cannot be shown")
    shared.telegram.say(31, "«next»")
    shared.telegram.wait(31, "«next»")


def _told(it: Lab, chat: int) -> bool:
    text = "\n".join(it.telegram.texts(chat))
    return "«end»" in text or "cannot be shown" in text


def test_an_answer_of_200_000_characters_arrives_whole_and_in_order(shared: Lab) -> None:
    words = [f"w{number}" for number in range(30_000)]
    text = " ".join(words)[:200_000]
    shared.model.script({"text": text, "pieces": 40})
    shared.telegram.say(30, "at length")
    last = text.split()[-1]
    until(lambda: last in " ".join(shared.telegram.texts(30)), within=60, why="the last word arrives", every=0.3)
    assert " ".join(shared.telegram.texts(30)).split() == text.split()


def test_a_tool_during_which_the_process_dies_three_times_is_put_aside_and_all_else_goes_on(tmp_path: Path) -> None:
    """The kill is where the tool would run: its intent is on disk, and nothing else can be told of it."""
    with lab(tmp_path) as it:
        it.model.script({"tool": "session_search", "arguments": {"query": "tea"}})
        it.telegram.say(10, "«deadly»")
        for _ in range(3):
            assert it.gateway.start(crash_at="after_tool_intent").wait_exit() == -9
        it.gateway.start()
        it.telegram.say(11, "«other»")
        it.telegram.wait(11, "«other»")
        (told,) = it.telegram.wait(10, "aside")
        assert "You said" not in told
        it.telegram.say(10, "«and again»")
        it.telegram.wait(10, "«and again»")
        assert it.gateway.stop() == 0
        check_disk(it.gateway, parked=1)
        assert it.gateway.rows("SELECT outcome FROM inbox ORDER BY id LIMIT 1") == [("dead_letter",)]


def test_a_tool_during_which_the_process_died_twice_runs_the_third_time(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        it.model.script({"tool": "session_search", "arguments": {"query": "tea"}})
        it.telegram.say(10, "«deadly»")
        for _ in range(2):
            assert it.gateway.start(crash_at="after_tool_intent").wait_exit() == -9
        it.gateway.start()
        assert it.telegram.wait(10, "«deadly»") == ["You said: «deadly»"]
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
