"""One-time codes: an owner lets a stranger in, or a person joins a second identity to the first (R37). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hermes.core.people import PairingPolicy

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""32 letters that nobody confuses."""
CODE_LENGTH = 8
"""40 bits: at one guess a second, twice the age of writing."""


def code_of(numbers: Sequence[int]) -> str:
    """CODE_LENGTH random numbers below 32 as a code, in two groups: ``7KQ2-M9XB``."""
    letters = "".join(ALPHABET[n] for n in numbers)
    return f"{letters[: CODE_LENGTH // 2]}-{letters[CODE_LENGTH // 2 :]}"


def digest_of(typed: str) -> str | None:
    """What is kept of a code; None for what cannot be one. Case, spaces and dashes do not matter."""
    plain = "".join(c for c in typed.upper() if c not in " -\t")
    if len(plain) != CODE_LENGTH or any(c not in ALPHABET for c in plain):
        return None
    return hashlib.sha256(plain.encode()).hexdigest()


def may_offer(policy: PairingPolicy, *, last_offer: float | None, pending: int, now: float) -> bool:
    """Whether a stranger is offered a code now."""
    return pending < policy.pending and (last_offer is None or now - last_offer >= policy.every)
