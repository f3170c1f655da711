"""What a model's server does wrong, through the real pipeline, with the exact number of requests it costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.wire.gateway.harness import Lab, Model, free_port, lab
from tests.wire.gateway.invariants import check_disk

pytestmark = pytest.mark.wire
SETTINGS = {"providers": {"sim": {"first_byte_timeout": 2, "stall_timeout": 2}}}
RETRIES = 3
_chats = count(10)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One gateway for all faults: what one of them leaves behind would show in the next."""
    with lab(tmp_path_factory.mktemp("faults"), settings=SETTINGS) as it:
        it.gateway.start()
        yield it
        assert it.gateway.stop() == 0
        check_disk(it.gateway)


def ask(it: Lab, *script: dict[str, Any], expect: str, within: float = 30.0) -> tuple[list[str], list[dict[str, Any]]]:
    """One message of a new chat against the script; what stands in the chat, and the requests it cost."""
    chat = next(_chats)
    it.model.order("clear_faults")
    it.model.script(*script)
    before = len(it.model.requests())
    it.telegram.say(chat, f"«{chat}»")
    texts = it.telegram.wait(chat, expect or f"«{chat}»", within=within)
    assert it.model.read("state")["scripted"] == 0, "the whole script was played"
    return texts, it.model.requests(before)


def api_error(status: int, message: str = "It broke.", **more: Any) -> dict[str, Any]:
    return {"kind": "error", "status": status, "message": message, **more}


def test_a_429_is_retried_once_its_retry_after_has_passed(shared: Lab) -> None:
    slow_down = api_error(429, "Rate limit reached", headers={"retry-after": "2"})
    texts, requests = ask(shared, slow_down, expect="You said")
    assert len(texts) == 1
    assert len(requests) == 2
    assert 2.0 <= requests[1]["at"] - requests[0]["at"] < 6.0


def test_three_server_errors_are_within_the_retries(shared: Lab) -> None:
    texts, requests = ask(shared, *[api_error(500)] * RETRIES, expect="You said")
    assert (len(texts), len(requests)) == (1, RETRIES + 1)


@pytest.mark.parametrize(
    ("fault", "bound"),
    [(api_error(500), 1 + RETRIES), ({"kind": "reset"}, 1 + RETRIES + 1)],  # a reset: once more over a fresh transport
    ids=["500", "reset"],
)
def test_a_server_that_stays_broken_costs_its_bound_a_notice_and_the_probe_that_finds_it_mended(
    shared: Lab, fault: dict[str, Any], bound: int
) -> None:
    texts, requests = ask(shared, *[fault] * bound, expect="You said")
    assert (len(texts), len(requests)) == (2, bound + 1)
    assert "I keep your message" in texts[0]


CASES: list[tuple[str, dict[str, Any]]] = [
    ("cut", {"kind": "cut_stream", "after": 2}),
    ("cleanly cut", {"kind": "cut_stream", "after": 2, "clean": True}),
    ("stalled", {"kind": "stall_stream", "after": 1}),
    ("without a first byte", {"kind": "stall"}),
    ("reset", {"kind": "reset"}),
    ("empty", {"text": ""}),
    ("garbage within", {"kind": "garbage_stream", "after": 1}),
    ("an error within", {"kind": "stream_error", "after": 1, "message": "overloaded", "code": "server_error"}),
    ("a proxy's page", {"kind": "html", "status": 502}),
]


@pytest.mark.parametrize("fault", [fault for _, fault in CASES], ids=[name for name, _ in CASES])
def test_an_answer_that_fails_once_is_asked_for_once_more_and_stands_once(shared: Lab, fault: dict[str, Any]) -> None:
    texts, requests = ask(shared, fault, expect="You said")
    assert (len(texts), len(requests)) == (1, 2)


def test_a_wrong_key_is_one_request_and_a_sentence(shared: Lab) -> None:
    texts, requests = ask(shared, api_error(401, "Incorrect API key provided"), expect="credential")
    assert (len(texts), len(requests)) == (1, 1)


def test_after_an_overflow_is_told_the_next_message_is_answered(shared: Lab) -> None:
    chat = next(_chats)
    shared.model.fault("overflow", times=None)
    before = len(shared.model.requests())
    shared.telegram.say(chat, "word " * 700)
    texts = shared.telegram.wait(chat, "too long")
    assert len(texts) == 1
    assert len(shared.model.requests(before)) <= 1 + 3, "compacting is tried three times at most"
    shared.model.order("clear_faults")
    shared.telegram.say(chat, "«short»")
    assert shared.telegram.wait(chat, "«short»")[1:] == ["You said: «short»"]


def test_a_refused_primary_is_left_for_the_fallback(tmp_path_factory: pytest.TempPathFactory) -> None:
    spare = Model()
    dead = f"http://127.0.0.1:{free_port()}/v1"
    settings = {
        "providers": {"sim": {"base_url": dead}, "spare": {"kind": "openai", "base_url": spare.where["base_url"]}},
        "fallback_providers": [{"provider": "spare", "model": "m"}],
    }
    try:
        with lab(tmp_path_factory.mktemp("fallback"), settings=settings) as it:
            it.gateway.start()
            it.telegram.say(7, "«help»")
            assert it.telegram.wait(7, "«help»") == ["You said: «help»"]
            assert len(spare.requests()) == 1
            assert it.gateway.stop() == 0
            check_disk(it.gateway)
    finally:
        spare.close()
