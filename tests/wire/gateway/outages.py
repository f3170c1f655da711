"""The scenarios of `test_outages`: Telegram is away for twenty seconds, in three ways; and one lost receipt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until
from tests.wire.gateway.harness import Lab, lab
from tests.wire.gateway.invariants import check_chats, check_disk, unanswered

SECONDS = 20.0
OUTAGES = ("refused", "bad gateway", "hanging")
CHATS = (10, 11, 12)


@dataclass(frozen=True, slots=True)
class Survived:
    """``orders``: for each chat the numbers of its messages as their first answers arrived."""

    repeats: int
    orders: list[list[int]]
    links: list[str]
    requests: int
    messages: int


def play(tmp: Path, outage: str) -> Survived:
    """Answers fall due while Telegram is away, and people write meanwhile."""
    with lab(tmp / outage.replace(" ", "-")) as it:
        it.gateway.start()
        it.model.order("config", {"latency": 2.0})
        said = {chat: [f"«{chat}.0»"] for chat in CHATS}
        for chat in CHATS:
            it.telegram.say(chat, said[chat][0])
        it.model.read("wait", requests=len(CHATS), timeout=20)
        _break(it, outage)
        for number in range(1, 4):
            for chat in CHATS:
                it.telegram.say(chat, f"«{chat}.{number}»")
                said[chat].append(f"«{chat}.{number}»")
        until(lambda: not unanswered(it.telegram, said), within=SECONDS + 60, why="all is answered", every=0.5)
        until(lambda: it.telegram.read("state")["pending"] == 0, within=30, why="all is confirmed")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        tally = check_chats(it.telegram, said)
        orders = [_order(it.telegram.texts(chat)) for chat in CHATS]
        links = [event["state"] for event in it.gateway.events("link")]
        return Survived(tally.repeats, orders, links, len(it.model.requests()), tally.messages)


def _break(it: Lab, outage: str) -> None:
    match outage:
        case "refused":
            it.telegram.order("refuse", {"seconds": SECONDS})
        case "bad gateway":
            it.telegram.fault("html", status=502, seconds_active=SECONDS)
        case _:
            it.telegram.fault("stall", seconds=SECONDS, seconds_active=SECONDS)


def _order(texts: list[str]) -> list[int]:
    found: list[int] = []
    for text in texts:
        found += [n for n in (int(m) for m in re.findall(r"«\d+\.(\d+)»", text)) if n not in found]
    return found


def play_lost_receipt(tmp: Path) -> list[str]:
    """Telegram carries a send out and says nothing; returns what stands in the chat in the end."""
    with lab(tmp / "receipt") as it:
        it.gateway.start()
        it.telegram.fault("stall", seconds=60, delivered=True, endpoint="sendMessage")
        it.telegram.say(10, "«once»")
        texts = it.telegram.wait(10, "«once»", count=2, within=60)
        it.telegram.say(10, "«after»")
        it.telegram.wait(10, "«after»")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        check_chats(it.telegram, {10: ["«once»", "«after»"]})
        return texts
