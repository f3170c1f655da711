"""What is on show while an answer comes in parts is what is stored in the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.continuation import Continuation, Showing
from hermes.core.transcript import FinishReason, ModelReply, Usage


class Screen:
    """An observer that shows text as the page does."""

    def __init__(self) -> None:
        self.text = ""
        self.restarts = 0

    def on_text(self, text: str) -> None:
        self.text += text

    def on_restart(self) -> None:
        self.text = ""
        self.restarts += 1

    def on_notice(self, kind: str, text: str) -> None:
        raise AssertionError("not expected here")

    def on_tool(self, name: str, phase: str) -> None:
        raise AssertionError("not expected here")

    async def settle(self) -> None:
        raise AssertionError("not expected here")


def reply(text: str, finish: FinishReason = FinishReason.STOP) -> ModelReply:
    return ModelReply(text, (), finish, Usage(1, 1), "m")


words = st.text("ab .\n一", min_size=1, max_size=30)


@given(st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=4))
def test_the_screen_shows_exactly_the_answer_however_the_parts_are_cut(attempts: list[list[str]]) -> None:
    screen, parts = Screen(), Continuation(len(attempts))
    for pieces in attempts:
        showing = Showing(screen, parts.kept, stale=parts.begun)
        for piece in pieces:
            showing.on_text(piece)
        showing.end(complete=True)
        last = reply("".join(pieces))
        final = parts.whole(last)
        if final.text != parts.kept:
            assert screen.text == final.text
        parts.take(last)
    assert screen.restarts <= len(attempts) - 1


def test_an_attempt_that_is_over_shows_nothing_more_and_what_it_held_back_is_dropped() -> None:
    screen = Screen()
    showing = Showing(screen, "The quick brown ", stale=True)
    showing.on_text("quick")
    showing.end(complete=False)
    showing.on_text(" brown fox")
    assert (screen.text, screen.restarts, showing.any) == ("", 0, False)


def test_a_part_that_adds_nothing_ends_the_continuing() -> None:
    parts = Continuation(9)
    assert parts.take(reply("The weather is fine ", FinishReason.LENGTH))
    assert not parts.take(reply("weather is fine ", FinishReason.LENGTH))
    assert parts.as_it_stands().text == "The weather is fine "


def test_no_more_than_the_limit_is_asked_for() -> None:
    parts = Continuation(2)
    asked = 0
    while parts.take(reply(f"part {asked} ", FinishReason.LENGTH)):
        asked += 1
    assert asked == 2
    assert parts.as_it_stands().usage == Usage(3, 3)
