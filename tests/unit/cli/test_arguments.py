"""From arguments to exit codes, without a process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.codes import FAILED, INTERRUPTED, OK, REFUSED, RESTART
from hermes.cli.commands import names
from hermes.cli.entry import Asked, code_of, polite, read_globals
from hermes.cli.overview import ALL, EVERYDAY
from hermes.config.errors import ConfigError, Problem
from hermes.core.errors import (
    ForeignHome,
    HermesError,
    HomeInUse,
    LostOwnership,
    StoreUnavailable,
    TargetUnknown,
)


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("status",), Asked(("status",))),
        (("--json", "status"), Asked(("status",), json=True)),
        (("status", "--json", "--debug"), Asked(("status",), debug=True, json=True)),
        (("send", "web:cli", "--", "--json"), Asked(("send", "web:cli", "--", "--json"))),
        ((), Asked(())),
    ],
)
def test_global_options_may_stand_anywhere_before_the_dashes(
    arguments: tuple[str, ...], asked: Asked
) -> None:
    assert read_globals(arguments) == asked


@given(st.lists(st.sampled_from(["chat", "--json", "--debug", "--", "x", "--config"]), max_size=8))
def test_nothing_but_global_options_is_taken_out_and_the_order_stays(arguments: list[str]) -> None:
    asked = read_globals(arguments)
    before, dashes, after = _split(arguments)
    assert list(asked.arguments) == [a for a in before if a not in ("--json", "--debug")] + dashes + after
    assert asked.json is ("--json" in before)
    assert asked.debug is ("--debug" in before)


def _split(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    if "--" not in arguments:
        return arguments, [], []
    at = arguments.index("--")
    return arguments[:at], ["--"], arguments[at + 1 :]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError((Problem("f", 1, "", "x"),)), REFUSED),
        (ForeignHome("x"), REFUSED),
        (HomeInUse("x"), REFUSED),
        (StoreUnavailable("x"), RESTART),
        (LostOwnership("x"), RESTART),
        (TargetUnknown("x"), FAILED),
        (HermesError("x"), FAILED),
        (PermissionError(13, "Permission denied"), FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_error_ends_as_one_sentence_with_its_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> int:
        raise error

    assert code_of(error) == code
    assert polite(act, debug=False) == code
    assert capsys.readouterr().err == f"hermes: {error}\n"


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), INTERRUPTED), (BrokenPipeError(), OK)])
def test_an_impatient_person_or_reader_is_no_error(error: BaseException, code: int) -> None:
    def act() -> int:
        raise error

    assert polite(act, debug=False) == code


def test_what_nobody_expects_is_not_swallowed() -> None:
    def act() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        polite(act, debug=False)


def test_the_overview_names_every_command() -> None:
    shown = {line.split()[0] for line in ALL.splitlines() if line.startswith("  ")}
    assert set(names()) <= shown
    assert EVERYDAY.count("\n") <= 24
