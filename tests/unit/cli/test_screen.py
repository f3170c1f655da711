"""What is printed must not steer a terminal, nor show what is not the reader's."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.screen import clean, console, table
from hermes.cli.shows import Live, Quiet


@given(st.text())
def test_no_control_character_survives_and_nothing_else_changes(text: str) -> None:
    shown = clean(text)
    assert len(shown) == len(text)
    for before, after in zip(text, shown, strict=True):
        steers = unicodedata.category(before) == "Cc" and before not in "\n\t"
        assert after == ("\N{REPLACEMENT CHARACTER}" if steers else before)


def test_a_table_prints_brackets_and_colons_as_they_are() -> None:
    out = io.StringIO()
    screen = console()
    screen.file = out
    lines = table("a", "b")
    lines.add_row("[bold]x[/bold]", ":smile:")
    screen.print(lines)
    assert "[bold]x[/bold]" in out.getvalue()
    assert ":smile:" in out.getvalue()


def test_a_streamed_answer_is_not_printed_twice(capsys: pytest.CaptureFixture[str]) -> None:
    show = Live()
    for piece in ("Hel", "lo"):
        show.event({"event": "text", "text": piece, "detail": ""})
    show.end("Hello")
    assert capsys.readouterr().out == "Hello\n"


def test_an_answer_that_began_anew_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    show = Live()
    show.event({"event": "text", "text": "Half an ans", "detail": ""})
    show.event({"event": "restarted", "text": "", "detail": ""})
    show.event({"event": "text", "text": "Whole", "detail": ""})
    show.end("Whole")
    out = capsys.readouterr().out
    assert out.startswith("Half an ans\n")
    assert out.endswith("\nWhole\n")


def test_pieces_that_were_lost_do_not_cost_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    show = Live()
    show.event({"event": "text", "text": "lo", "detail": ""})
    show.end("Hello")
    assert capsys.readouterr().out == "lo\nHello\n"


def test_an_answer_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show = Live()
    show.event({"event": "text", "text": "\x1b[2J", "detail": ""})
    show.end("\x1b]0;title\x07")
    assert "\x1b" not in capsys.readouterr().out


def test_a_quiet_show_keeps_notices_and_tells_them_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show = Quiet()
    show.event({"event": "text", "text": "piece", "detail": ""})
    show.event({"event": "notice", "text": "trying again", "detail": "retry"})
    said = capsys.readouterr()
    assert show.notices == ["trying again"]
    assert (said.out, said.err) == ("", "trying again\n")
