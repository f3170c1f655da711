"""What people call themselves: events name users by id only, so each is asked for once, best effort.

Asking must not hold back what came: few at once, briefly, and after a failure not at all for a while.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from hermes.core.errors import PlatformFailure

AT_ONCE = 5
KEPT = 5000
AGE = 6 * 3600.0  # seconds after which a name is asked for again
PAUSE = 60.0  # seconds without asking after a failure
MENTIONED = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^<>]*)?>")

Ask = Callable[[str], Awaitable[Mapping[str, Any]]]


class Names:
    """``ask(user)`` is users.info, within a short limit."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._quiet_until = 0.0

    def of(self, user: str) -> str:
        """The name, empty where it is not known."""
        return self._known.get(user, ("", 0.0))[0]

    async def learn(self, events: Iterable[object]) -> None:
        """Asks for who speaks and who is named in these events. Never raises for a call that failed."""
        now = time.monotonic()
        if now < self._quiet_until:
            return
        wanted = dict.fromkeys(user for event in events for user in _people(event))
        due = [user for user in wanted if now - self._known.get(user, ("", -AGE))[1] >= AGE][:AT_ONCE]
        for user in due:
            try:
                answer = await self._ask(user)
            except PlatformFailure as failure:
                if failure.facts.code != "user_not_found":
                    self._quiet_until = now + max(PAUSE, failure.facts.retry_after or 0.0)
                    return
                answer = {}
            self._known[user] = (_name(answer.get("user")), now)
            self._known.move_to_end(user)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)


def _people(event: object) -> Iterator[str]:
    if not isinstance(event, Mapping):
        return
    message = event.get("message") if event.get("subtype") == "message_changed" else event
    if not isinstance(message, Mapping) or message.get("bot_id"):
        return
    user, text = message.get("user"), message.get("text")
    if isinstance(user, str):
        yield user
    if isinstance(text, str):
        yield from (found[1] for found in MENTIONED.finditer(text[:4000]))


def _name(user: object) -> str:
    """What Slack shows: the display name, else the full name, else the handle."""
    if not isinstance(user, Mapping):
        return ""
    profile = user.get("profile")
    told = profile if isinstance(profile, Mapping) else {}
    found = (told.get("display_name"), told.get("real_name"), user.get("real_name"), user.get("name"))
    return next((one[:80] for one in found if isinstance(one, str) and one.strip()), "")
