"""``did you mean …?`` within two letters."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.config.display import show_key

_LONGEST = 64


def distance(left: str, right: str, limit: int) -> int:
    """Letters to insert, delete, replace or swap with their neighbour (optimal string alignment).

    Anything above ``limit`` comes back as ``limit + 1``.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        current = [i]
        for j, b in enumerate(right, start=1):
            best = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, before[j - 2] + 1)
            current.append(best)
        if min(current) > limit:
            return limit + 1
        before, row = row, current
    return min(row[-1], limit + 1)


def nearest(word: str, choices: Iterable[str], limit: int = 2) -> str | None:
    """The choice at most ``limit`` letters from ``word``, the closest first; None when there is none.

    Case and the difference of ``-`` and ``_`` do not count. A word of three letters or fewer must be nearer.
    """
    plain = _plain(word)
    if not plain or len(plain) > _LONGEST:
        return None
    allowed = min(limit, max(1, len(plain) - 2))
    scored = [(distance(plain, _plain(choice), allowed), choice) for choice in choices]
    best = min(scored, default=None)
    return best[1] if best is not None and best[0] <= allowed else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`` (did you mean …?)`` or nothing."""
    found = nearest(word, choices)
    return f" (did you mean {show_key(found)}?)" if found is not None else ""


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_")
