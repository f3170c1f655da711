"""People who go on talking while the gateway is killed at random moments; used by several tests."""

from __future__ import annotations

import random
import time
from collections import defaultdict

from tests.waiting import until
from tests.wire.gateway.harness import Lab
from tests.wire.gateway.invariants import check_chats, check_disk, stop_when_delivered, texts_done, unanswered

CHATS = range(10, 30)
TOOL_CALL = {"tool": "session_search", "arguments": {"query": "tea"}}


class Talk:
    """People who go on talking; each text is different."""

    def __init__(self, it: Lab, rng: random.Random) -> None:
        self.it, self.rng = it, rng
        self.said: dict[int, list[str]] = defaultdict(list)
        self._number = 0

    def some(self, seconds: float) -> None:
        """Messages for so long; now and then the model is told to call a tool or to be slow first."""
        until_ = time.monotonic() + seconds
        until(lambda: self._one() and time.monotonic() >= until_, within=seconds + 30, why="talking", every=0.02)

    def _one(self) -> bool:
        self._number += 1
        chat, text = self.rng.choice(CHATS), f"«{self._number}»"
        match self.rng.randrange(12):
            case 0:
                self.it.model.script(TOOL_CALL)
            case 1:
                self.it.model.order("config", {"latency": self.rng.choice((0.0, 0.05, 0.3))})
            case 2:
                self.it.model.order("config", {"gap": self.rng.choice((0.0, 0.0, 0.25)), "pieces": 6})
            case _:
                pass
        self.it.telegram.say(chat, text)
        self.said[chat].append(text)
        return True


def survive(it: Lab, rng: random.Random, kills: int) -> str:
    """So many kills under load, then quiet; checks everything and returns one line of figures."""
    talk = Talk(it, rng)
    done_at: list[tuple[float, set[str]]] = []
    for _ in range(kills):
        it.gateway.start(ready=False)
        if rng.random() < 0.8:
            it.gateway.wait_ready()
        talk.some(rng.uniform(0.05, 1.2))
        it.gateway.kill()
        if (it.gateway.home / "state.db").exists():
            done_at.append((time.monotonic(), texts_done(it.gateway)))
    it.model.order("config", {"latency": 0, "gap": 0})
    it.gateway.start()
    until(lambda: not unanswered(it.telegram, talk.said), within=120, why="all is answered", every=0.5)
    until(it.telegram.all_received, within=20, why="all is confirmed")
    stop_when_delivered(it.gateway, it.telegram)
    check_disk(it.gateway)
    tally = check_chats(it.telegram, talk.said)
    requests = it.model.requests()
    for at, done in done_at:
        again = [r["text"] for r in requests if r["at"] > at and any(text and text in r["text"] for text in done)]
        assert not again, f"asked again although T2 was committed: {again}"
    refused = [c for c in it.telegram.calls("sendMessage") if c["fault"]]
    assert not refused
    return f"{kills} kills, {tally.messages} messages, {len(requests)} model requests, {tally.repeats} marked repeats"
