"""What a flood refusal closes, and how gently a chat is written to afterwards (R20). Pure.

A platform says "not before so many seconds"; it does not always say what for. Telegram means the chat. Discord says
whether it means a route or everything. Slack means the method, in the whole workspace, and the chat where a message
was posted. A call during a ban makes the ban longer, so a wait that is told in whole seconds is rounded up.

    open ── 429 ──► closed (wait + MARGIN) ──► one call an interval ── each clean call shortens it ──► open
                       ▲                              │ 429: the interval doubles
                       └──────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hermes.core.delivery import DeliveryFacts

EVERYWHERE = "*"
"""In a chat's place: all chats of the account. ``*edit``: all edits of the account. No platform has such a chat."""
MARGIN = 0.6
"""Seconds added to a stated wait: platforms round it to whole seconds, down too."""
FIRST_INTERVAL = 1.0
LONGEST_INTERVAL = 30.0
_SHORTEN = 0.9
_OPEN_BELOW = 0.2
BUSY_SECOND = 20
"""Calls within a second from which on a refusal is for all chats, where its own chat gave no reason for one."""
RECENT = 60.0
_SHARED = frozenset({"edit", "typing", "reaction", "delete"})


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two calls to a chat that has refused one; 0: open."""

    interval: float = 0.0


def places(chat_id: str, act: str) -> tuple[str, str, str]:
    """Where a call that does ``act`` in a chat may be closed: the chat, the act everywhere, everything."""
    return chat_id, f"{EVERYWHERE}{act}", EVERYWHERE


def closed_by(facts: DeliveryFacts, chat_id: str, act: str) -> str:
    """The place that a flood refusal closes; one of ``places``."""
    body = facts.body if isinstance(facts.body, Mapping) else {}
    headers = {name.lower(): value.lower() for name, value in facts.headers.items()}
    if (
        body.get("global") is True
        or headers.get("x-ratelimit-global") == "true"
        or headers.get("x-ratelimit-scope") == "global"
    ):
        return EVERYWHERE
    if facts.platform == "slack" and act in _SHARED:
        return f"{EVERYWHERE}{act}"
    return chat_id


def says_what(facts: DeliveryFacts) -> bool:
    """Whether the platform says what its limit is for, as Discord does: nothing is to be guessed then."""
    body = facts.body if isinstance(facts.body, Mapping) else {}
    return "global" in body or any(name.lower() == "x-ratelimit-scope" for name in facts.headers)


def is_for_all(recent: Sequence[tuple[float, str]], chat_id: str, now: float) -> bool:
    """Whether a refusal that names nothing closes the account: many calls in the last second, few of them here.

    ``recent``: times and chats of our last calls, oldest first. Telegram tells nobody which of its limits was met:
    one message a second to a chat, 20 a minute to a group, 30 a second to all (Bots FAQ, "My bot is hitting limits").
    """
    second = minute = everything = 0
    for at, chat in reversed(recent):
        if at <= now - RECENT:
            break
        last = at > now - 1.0
        everything += last
        second += last and chat == chat_id
        minute += chat == chat_id
    return everything >= BUSY_SECOND and second <= 1 and minute < BUSY_SECOND


def slowed(pace: Pace) -> Pace:
    """After a refusal: twice as slow, at least ``FIRST_INTERVAL``, at most ``LONGEST_INTERVAL`` seconds."""
    return Pace(min(LONGEST_INTERVAL, max(FIRST_INTERVAL, 2.0 * pace.interval)))


def passed(pace: Pace) -> Pace:
    """After a call that was not refused: a tenth faster, and open when that is fast."""
    interval = pace.interval * _SHORTEN
    return Pace(interval if interval >= _OPEN_BELOW else 0.0)
