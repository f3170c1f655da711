"""``HERMES_HOME/.env``: one NAME=value a line. Cheap to import."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.config.errors import Problem

MAX_BYTES = 256 * 1024
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)\Z", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def read_dotenv(file: Path) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Variables of the file, and what is wrong with it; no values are in the problems. Absent: nothing."""
    name = str(file)
    try:
        if file.is_dir():
            return {}, (
                Problem(
                    name, 0, "", "a directory stands where the file .env belongs", "a file", "move it away"
                ),
            )
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return {}, ()
    except OSError as error:
        return {}, (
            Problem(
                name,
                0,
                "",
                f"it cannot be read: {error.strerror}",
                "a readable file",
                "give yourself the right to read it (chmod 600)",
            ),
        )
    if len(raw) > MAX_BYTES:
        return {}, (
            Problem(name, 0, "", f"it is larger than {MAX_BYTES} bytes", "NAME=value lines", "shorten it"),
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return {}, (Problem(name, line, "", "bytes that are not UTF-8", "UTF-8 text", "save it as UTF-8"),)
    return parse_dotenv(text, name)


def parse_dotenv(text: str, name: str) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """As `read_dotenv`, from text. The last of two equal names wins, as in a shell."""
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        value = _value(match.group(2)) if match is not None else None
        if match is None or value is None or "\x00" in line:
            problems.append(
                Problem(
                    name,
                    number,
                    "",
                    "a line that is not NAME=value",
                    "NAME=value, # for remarks",
                    'put values with blanks or # in "quotes"',
                )
            )
            continue
        values[match.group(1)] = value
    return values, tuple(problems)


def _value(text: str) -> str | None:
    """The value without quotes and remark; None when a quote does not close or something follows it."""
    if text[:1] in {"'", '"'}:
        return _quoted(text[0], text[1:])
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()


def _quoted(quote: str, text: str) -> str | None:
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == quote:
            rest = text[at + 1 :].strip()
            return "".join(out) if not rest or rest.startswith("#") else None
        if char == "\\" and quote == '"' and at + 1 < len(text):
            at += 1
            out.append(_ESCAPES.get(text[at], "\\" + text[at]))
        else:
            out.append(char)
        at += 1
    return None
