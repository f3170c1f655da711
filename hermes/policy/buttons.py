"""What stands on a question's buttons: which question, which option. Stateless, so that it survives a restart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_PREFIX = "q"
_TAG = 12
LABEL = 60
"""Characters of an option on its button; all of it stands in the question's text."""


def buttons(intent: str, options: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(label, data) for each option of the question that was asked by this intent; data is short ASCII."""
    return tuple(
        (option if len(option) <= LABEL else option[: LABEL - 1] + "…", f"{_PREFIX}:{_tag(intent)}:{number}")
        for number, option in enumerate(options, start=1)
    )


def pressed(data: str, intent: str) -> str | None:
    """The number of the chosen option as a text; None for a button of another question, or of something else."""
    prefix, _, rest = data.partition(":")
    tag, _, number = rest.partition(":")
    return number if prefix == _PREFIX and tag == _tag(intent) and is_place(number) else None


def is_place(number: str) -> bool:
    """Whether a text is a number that an option may have: digits as on a keyboard, few of them."""
    return number.isascii() and number.isdigit() and len(number) <= 3


def _tag(intent: str) -> str:
    return hashlib.sha256(intent.encode("utf-8", "surrogatepass")).hexdigest()[:_TAG]
