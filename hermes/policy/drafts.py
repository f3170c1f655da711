"""When a streamed answer shows what it has so far (R17): pure, the shell sends the drafts.

A reader gains from the first words soon and from fewer, larger steps later; a platform counts every
edit. So: nothing before ``first_after`` seconds, then at most one draft per interval, and the interval
doubles with each refusal up to ``MAX_INTERVAL``. A draft that would show nothing new is not made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MAX_INTERVAL = 30.0


@dataclass(frozen=True, slots=True)
class DraftState:
    """One answer's stream. Times are monotonic seconds; ``shown`` is the length last drafted."""

    started_at: float
    shown: int = 0
    drafted_at: float | None = None
    slowed: int = 0  # refusals so far: each doubles the interval


@dataclass(frozen=True, slots=True)
class Draft:
    """Show the text now, up to ``length`` characters."""

    length: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to show before ``until``; None: not before there is more text."""

    until: float | None


def step(
    state: DraftState, text_len: int, now: float, first_after: float, min_interval: float
) -> tuple[DraftState, Draft | Wait]:
    """What to do now that ``text_len`` characters are there. Total for any arguments."""
    if text_len <= state.shown:
        return state, Wait(None)
    if state.drafted_at is None:
        due = state.started_at + first_after
    else:
        due = state.drafted_at + interval(state, min_interval)
    if now < due:
        return state, Wait(due)
    return replace(state, shown=text_len, drafted_at=now), Draft(text_len)


def interval(state: DraftState, min_interval: float) -> float:
    """Seconds between two drafts, given the refusals so far."""
    return max(min_interval, min(MAX_INTERVAL, min_interval * 2.0 ** min(state.slowed, 16)))


def refused(state: DraftState, now: float, retry_after: float | None) -> DraftState:
    """The platform refused a draft: slower from here, and not before ``retry_after`` seconds."""
    wait = max(0.0, retry_after or 0.0)
    return replace(state, slowed=state.slowed + 1, drafted_at=now + wait)


def restarted(state: DraftState, now: float) -> DraftState:
    """The attempt began again and what was shown is void: the next draft starts from nothing."""
    return replace(state, shown=0, started_at=now)
