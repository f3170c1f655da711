"""Long conversations in virtual time: every message is answered, whatever the window and the summariser."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from hermes.core.transcript import UserItem
from hermes.policy.trim import LEFT_OUT, SUMMARY_HEAD, is_person
from tests.simulation.windows import ANSWERS, WindowedModel, prompt_text
from tests.simulation.world import World

pytestmark = pytest.mark.simulation

Make = Callable[..., World]
WORDS = "We looked at the offer for the harbour and at the figures of last year. " * 6
BARE = "context_length_exceeded"


def chat(make: Make, model: WindowedModel, *, window: int | None = None, **compression: Any) -> World:
    models: dict[str, Any] = {"m": {"context_window": window}} if window else {}
    provider = {"kind": "openai", "base_url": "http://sim.invalid/v1", "models": models}
    world = make(settings={"providers": {"sim": provider}, "compression": compression})
    world.model = model  # type: ignore[assignment]
    return world


def talk(world: World, count: int, words: str = WORDS, first: int = 0) -> None:
    """So many messages, each answered before the next."""
    for number in range(first, first + count):
        heard = len(world.heard())
        world.say(f"number {number}: {words}")
        world.run(200)
        assert world.heard()[heard:] == [f"You said: number {number}: {words}"[:50]], f"message {number}"


@pytest.mark.parametrize("summaries", sorted(ANSWERS))
@pytest.mark.parametrize("known", [True, False], ids=["window configured", "window unknown"])
def test_a_chat_goes_on_whatever_the_summariser_does(make: Make, summaries: str, known: bool) -> None:
    model = WindowedModel(2_000, summaries)
    world = chat(make, model, window=2_000 if known else None)
    talk(world, 40)
    rows = world.rows("SELECT item FROM messages ORDER BY seq")
    assert len(rows) == 80, "nothing was deleted"
    assert all(f"number {n // 2}" in item for n, (item,) in enumerate(rows)), "and nothing changed"
    assert len(model.refused) <= (0 if known else 1), "an overflow teaches the window"
    installed = world.rows("SELECT count(*) FROM snapshots")[0][0]
    assert (installed > 0) == (summaries == "honest")
    last = model.turns[-1].items
    assert is_person(last[-1])
    marked = last[0].text.startswith(SUMMARY_HEAD) if summaries == "honest" else last[0] == LEFT_OUT
    assert marked, "the model is told that something is missing"


@pytest.mark.parametrize("words", [BARE, "the request exceeds the available context size, try increasing it"])
def test_an_overflow_that_names_no_number_is_met_once_and_not_at_every_message(make: Make, words: str) -> None:
    model = WindowedModel(2_000, words=words, reports=False)
    talk(chat(make, model), 40)
    assert 1 <= len(model.refused) <= 4


@pytest.mark.parametrize("chars", [1.0, 2.0, 6.0], ids=lambda c: f"{c} characters a token")
def test_vocabularies_that_differ_from_all_expectation_are_got_used_to(make: Make, chars: float) -> None:
    model = WindowedModel(int(9_000 / chars), chars=chars)
    talk(chat(make, model, window=int(9_000 / chars)), 30)
    assert len(model.refused) <= 1


def test_a_summary_is_remembered_over_a_restart_and_continued_by_the_next(make: Make) -> None:
    model = WindowedModel(2_000)
    world = chat(make, model, window=2_000)
    talk(world, 20)
    world.stop()
    talk(world, 20, first=20)
    snapshots = world.rows("SELECT covers_to_seq, previous_id FROM snapshots ORDER BY id")
    assert len(snapshots) >= 2
    assert [p for _, p in snapshots] == [None, *range(1, len(snapshots))]
    assert sorted(c for c, _ in snapshots) == [c for c, _ in snapshots]
    assert "<notes>" in model.asked_for_summaries[-1].items[0].text, "the one before goes into the next"


def test_the_requests_prefix_stays_between_compactions(make: Make) -> None:
    model = WindowedModel(4_000)
    talk(chat(make, model, window=4_000), 40)
    texts = [prompt_text(request) for request in model.turns]
    kept = sum(now.startswith(before[: int(len(before) * 0.95)]) for before, now in pairwise(texts))
    assert kept >= len(texts) - 1 - 2 * len(model.asked_for_summaries)


def test_a_summary_that_fails_is_not_asked_for_at_every_message(make: Make) -> None:
    model = WindowedModel(2_000, "fails")
    world = chat(make, model, window=2_000)
    world.run(1)
    for number in range(30):
        world.say(f"number {number}: {WORDS}")
        world.run(5)
    assert len(world.heard()) == 30
    assert 1 <= len(model.asked_for_summaries) <= 3


def test_a_stalled_summary_delays_an_answer_by_its_time_out_and_no_more(make: Make) -> None:
    model = WindowedModel(2_000, "stalls")
    world = chat(make, model, window=2_000, timeout=20)
    talk(world, 30)
    assert model.asked_for_summaries


def test_what_cannot_fit_is_told_without_a_call_and_the_next_message_is_answered(make: Make) -> None:
    model = WindowedModel(2_000)
    world = chat(make, model, window=2_000)
    world.say("word " * 20_000)
    world.run(60)
    assert "too long" in world.heard()[0]
    assert model.requests == []
    talk(world, 1)


def test_a_long_turn_keeps_its_question_while_its_steps_are_summarised(make: Make, tmp_path: Any) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "long.txt").write_text("A line of the long file, and then another one. " * 30)
    model = WindowedModel(3_000, calls=24)
    world = chat(make, model, window=3_000)
    world.say("Read the file again and again.")
    world.run(400)
    for request in model.turns:
        assert any(isinstance(i, UserItem) and i.text.startswith("Read the file") for i in request.items)
    assert not model.refused
    assert len(model.asked_for_summaries) <= 2 * 8
    assert world.heard()


def test_no_secret_enters_a_summary(make: Make) -> None:
    model = WindowedModel(2_000)
    world = chat(make, model, window=2_000)
    talk(world, 1, "the key is sk-proj-abcdefghijklmnop1234567890 " + WORDS)
    talk(world, 20, first=1)
    assert model.asked_for_summaries
    assert not any("abcdefghijklmnop" in request.items[0].text for request in model.asked_for_summaries)
    assert any("[redacted]" in request.items[0].text for request in model.asked_for_summaries)


def test_switched_off_nothing_is_summarised_and_the_chat_goes_on(make: Make) -> None:
    model = WindowedModel(2_000)
    talk(chat(make, model, window=2_000, enabled=False), 30)
    assert model.asked_for_summaries == []
    assert not model.refused


def test_a_summary_is_reserved_and_paid_for_like_any_call(make: Make) -> None:
    model = WindowedModel(2_000)
    world = chat(make, model, window=2_000)
    talk(world, 20)
    purposes = dict(world.rows("SELECT purpose, count(*) FROM ledger WHERE state<>'open' GROUP BY purpose"))
    assert purposes["summary"] >= 1
    assert world.rows("SELECT count(*) FROM ledger WHERE state='open'") == [(0,)]


# ---- /compress ----


def test_compress_tells_before_and_after(make: Make) -> None:
    model = WindowedModel(100_000)
    world = chat(make, model, window=100_000)
    talk(world, 20)
    world.say("/compress the harbour")
    told = world.run(60).heard()[-1]
    assert told.startswith("Compressed: 40 messages, about ")
    assert " → " in told
    assert "Above all keep what concerns: the harbour" in model.asked_for_summaries[0].items[0].text
    before = len(prompt_text(model.turns[-1]))
    talk(world, 1, "short", first=20)
    assert len(prompt_text(model.turns[-1])) < before / 2
    assert world.rows("SELECT count(*) FROM messages") == [(42,)]


def test_compress_of_a_short_conversation_says_so(make: Make) -> None:
    world = chat(make, WindowedModel(100_000))
    world.say("/compress")
    assert "nothing to compress" in world.run(30).heard()[-1]
    talk(world, 1, "hello")
    world.say("/compress")
    assert "nothing to compress" in world.run(30).heard()[-1]


def test_a_failed_compress_changes_nothing_and_says_why(make: Make) -> None:
    model = WindowedModel(100_000, "refuses")
    world = chat(make, model)
    talk(world, 20)
    world.say("/compress")
    told = world.run(60).heard()[-1]
    assert "the model declined" in told
    assert "Nothing was changed" in told
    assert world.rows("SELECT count(*) FROM snapshots") == [(0,)]


def test_compress_waits_for_the_running_turn(make: Make) -> None:
    model = WindowedModel(100_000)
    world = chat(make, model, window=100_000)
    talk(world, 20)
    world.say("one more")
    world.run(0.2)
    world.say("/compress")
    world.run(60)
    assert world.heard()[-2].startswith("You said: one more")
    assert world.heard()[-1].startswith("Compressed: 42 messages")
