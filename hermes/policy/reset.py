"""When a conversation starts afresh by itself (``session_reset``). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum


class ResetMode(StrEnum):
    """``session_reset.mode``."""

    NONE = "none"
    IDLE = "idle"
    DAILY = "daily"
    BOTH = "both"


class Why(StrEnum):
    """What ended the conversation."""

    IDLE = "idle"
    DAILY = "daily"


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """``at_hour`` is an hour of ``zone``."""

    mode: ResetMode = ResetMode.NONE
    at_hour: int = 4
    idle_minutes: int = 1440
    zone: tzinfo = UTC


def reset_due(policy: ResetPolicy, *, last_active: float, now: float) -> Why | None:
    """Whether the message of ``now`` begins a new conversation; both in unix seconds.

    Daily: the newest ``at_hour`` lies between the two. An hour that daylight saving skips is the moment at which
    it would have been; one that comes twice is its first.
    """
    if policy.mode in (ResetMode.IDLE, ResetMode.BOTH) and now - last_active >= policy.idle_minutes * 60.0:
        return Why.IDLE
    if policy.mode in (ResetMode.DAILY, ResetMode.BOTH) and last_active < newest_hour(policy, now) <= now:
        return Why.DAILY
    return None


def newest_hour(policy: ResetPolicy, now: float) -> float:
    """The last moment, at or before ``now``, at which the clock of the zone struck ``at_hour``; unix seconds."""
    today = datetime.fromtimestamp(now, policy.zone).date()
    struck = [
        datetime(day.year, day.month, day.day, policy.at_hour, tzinfo=policy.zone).timestamp()
        for day in (today - timedelta(days=1), today)
    ]
    return max(at for at in struck if at <= now)
