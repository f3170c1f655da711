"""One pipeline, redacted at its end."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from hermes.runtime.logs import StreamSink, configure, get_logger
from hermes.runtime.redaction import MARK, Redactor

SECRET = 'canary"secret/1'


class Lines:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, line: str) -> None:
        self.lines.append(line)

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def lines() -> Iterator[Lines]:
    root = logging.getLogger()
    before, level, raises = list(root.handlers), root.level, logging.raiseExceptions
    yield Lines()
    root.handlers[:] = before
    root.setLevel(level)
    logging.raiseExceptions = raises
    structlog.reset_defaults()


@pytest.fixture
def redactor() -> Redactor:
    made = Redactor()
    made.register(SECRET)
    return made


def test_a_line_is_one_json_object_with_name_level_and_time(lines: Lines, redactor: Redactor) -> None:
    configure(sink=lines, terminal=False, level="INFO", redactor=redactor)
    get_logger("hermes.x").info("turn_done", turn=3, text="zwei\nZeilen ü")
    get_logger("hermes.x").debug("not shown")
    (line,) = lines.objects
    assert str(line.pop("timestamp")).endswith("Z")
    assert line == {
        "event": "turn_done",
        "turn": 3,
        "text": "zwei\nZeilen ü",
        "level": "info",
        "logger": "hermes.x",
    }


@pytest.mark.parametrize("terminal", [True, False])
def test_no_path_lets_a_secret_out(lines: Lines, redactor: Redactor, terminal: bool) -> None:
    configure(sink=lines, terminal=terminal, level="info", redactor=redactor)
    log = get_logger("hermes.x")
    log.info("event " + SECRET, value=SECRET, nested={"a": [SECRET]}, error=ValueError(SECRET))
    try:
        raise ValueError(f"https://api.example/bot{SECRET}/getMe")
    except ValueError:
        log.exception("failed")
        logging.getLogger("some.library").exception("request to %s failed", SECRET)
    logging.getLogger("some.library").warning("plain %s", SECRET)
    text = "\n".join(lines.lines)
    assert len(lines.lines) == 4 if not terminal else len(lines.lines) >= 4
    assert text.count(MARK) >= 7
    assert "canary" not in text
    assert "Traceback" in text


def test_libraries_share_the_pipeline_and_noisy_ones_speak_from_warning_on(
    lines: Lines, redactor: Redactor
) -> None:
    configure(sink=lines, terminal=False, level="info", redactor=redactor)
    logging.getLogger("httpx").info("HTTP Request: GET")
    logging.getLogger("telegram.ext").info("polling")
    logging.getLogger("httpx").warning("odd %s", "thing")
    logging.getLogger("other").info("heard")
    assert [(line["logger"], line["level"], line["event"]) for line in lines.objects] == [
        ("httpx", "warning", "odd thing"),
        ("other", "info", "heard"),
    ]


def test_a_librarys_wrong_format_string_is_no_error_of_ours(lines: Lines, redactor: Redactor) -> None:
    configure(sink=lines, terminal=False, level="info", redactor=redactor)
    logging.getLogger("other").warning("%d items", "three")
    assert len(lines.lines) == 1
    assert "other" in lines.lines[0]


def test_debug_lowers_the_level_and_configuring_twice_does_not_double(
    lines: Lines, redactor: Redactor
) -> None:
    configure(sink=lines, terminal=False, level="warning", redactor=redactor)
    configure(sink=lines, terminal=False, level="warning", redactor=redactor, debug=True)
    get_logger("hermes.x").debug("ours")
    logging.getLogger("other").debug("theirs")
    logging.getLogger("httpx").debug("too much")
    assert [line["event"] for line in lines.objects] == ["ours", "theirs"]


def test_an_unknown_level_names_the_allowed_ones(lines: Lines, redactor: Redactor) -> None:
    with pytest.raises(ValueError, match="'loud': allowed are debug, info"):
        configure(sink=lines, terminal=False, level="loud", redactor=redactor)


def test_a_stream_sink_ends_each_line() -> None:
    written: list[str] = []
    StreamSink(written.append).write_line("a")
    assert written == ["a\n"]
