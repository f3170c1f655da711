"""What people see: plain where it is piped, coloured where it is a terminal, never coloured with NO_COLOR."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing import IO

    from rich.console import Console
    from rich.table import Table

PIPED_WIDTH = 120
STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red", "unchecked": "dim"}
WORDS = {"unchecked": "not checked"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """Without control characters: what others wrote must not steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def console(*, errors: bool = False) -> Console:
    """Standard output, or standard error. Names and texts are printed as they are: no markup in them."""
    from rich.console import Console

    stream = sys.stderr if errors else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=cast("IO[str]", stream), width=width, highlight=False, markup=False, emoji=False)


def table(*columns: str, title: str = "") -> Table:
    """A table whose last column takes the room that is left; no lines, hence as good on light as on dark."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
    if title:
        made.title = title
        made.title_style = "bold underline"
    for column in columns[:-1]:
        made.add_column(column, overflow="fold")
    made.add_column(columns[-1], overflow="fold")
    return made


def print_json(value: object) -> None:
    """One object on one line, for programs."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
