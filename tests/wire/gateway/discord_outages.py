"""The scenarios of `test_discord`: Discord is away for a while, in each way it can be; bounds are scaled down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until
from tests.wire.gateway.harness import Discord, Gateway, Model, configuration, free_port, merged
from tests.wire.gateway.invariants import check_chats, check_disk, unanswered

SECONDS = 8.0
OUTAGES = ("refused", "black hole", "half open", "5xx", "auth lost", "intent lost", "poisoned session", "ghost")
CHATS = (10, 11, 12)
_FLAGS = {"black hole": "deaf", "half open": "mute", "ghost": "ghost"}


@dataclass(frozen=True, slots=True)
class Survived:
    """What an outage left behind; ``states`` are the link's, in order."""

    repeats: int
    states: list[str]
    identifies: int
    answers: dict[int, list[str]]
    sentence: str


@contextlib.contextmanager
def outside() -> Iterator[tuple[Discord, Model]]:
    """Discord in front, a model behind."""
    with contextlib.ExitStack() as stack:
        discord = Discord()
        stack.callback(discord.close)
        model = Model()
        stack.callback(model.close)
        yield discord, model


def play(tmp: Path, outage: str) -> Survived:
    """Answers fall due while Discord is away, and people write meanwhile."""
    with outside() as (discord, model):
        quick = {"gateway": {"reconnect": {"base": 1, "cap": 2, "park_probe": 2}}}
        gateway = Gateway(tmp / "home", merged(configuration(discord, model, free_port()), quick))
        try:
            gateway.start()
            discord.connected()
            said = {chat: [f"«{chat}.0»"] for chat in CHATS}
            for chat in CHATS:
                discord.say(chat, said[chat][0])
            until(lambda: not unanswered(discord, said), within=60, why="all is answered before")
            model.order("config", {"latency": 1.0})
            for chat in CHATS:
                _say(discord, said, chat, 1)
            model.read("wait", requests=2 * len(CHATS), timeout=20)
            sentence = _away(gateway, discord, outage, said)
            for chat in CHATS:
                _say(discord, said, chat, 3)
            until(lambda: not unanswered(discord, said), within=90, why="all is answered", every=0.5)
            assert gateway.stop() == 0
            check_disk(gateway)
            tally = check_chats(discord, said)
            states = [event["state"] for event in gateway.events("link")]
            answers = {chat: discord.texts(chat) for chat in CHATS}
            return Survived(tally.repeats, states, discord.read("state")["identifies"], answers, sentence)
        finally:
            gateway.close()


def _say(discord: Discord, said: dict[int, list[str]], chat: int, number: int) -> None:
    text = f"«{chat}.{number}»"
    discord.say(chat, text)
    said[chat].append(text)


def _away(gateway: Gateway, discord: Discord, outage: str, said: dict[int, list[str]]) -> str:
    """Breaks it, lets people write, waits until the gateway has noticed, mends it; what the link said."""
    before = len(gateway.events("link_failed"))
    match outage:
        case "refused":
            discord.order("refuse", {"seconds": SECONDS})
        case "5xx":
            discord.fault("html", status=503, seconds_active=SECONDS)
            discord.order("close_sockets", {"code": 1001})
        case "auth lost":
            discord.order("revoke")
        case "intent lost":
            discord.order("disallow_content")
        case "poisoned session":
            discord.order("drop")
            discord.order("forget")
        case _:
            discord.order("gateway", {_FLAGS[outage]: True})
    for chat in CHATS:
        _say(discord, said, chat, 2)
    until(lambda: len(gateway.events("link_failed")) > before, within=120, why="the gateway notices", every=0.2)
    if outage in ("auth lost", "intent lost"):
        until(lambda: _states(gateway)[-1:] == ["refused"], within=60, why="only a person can mend it", every=0.2)
    for name in ("restore", "allow_content"):
        discord.order(name)
    discord.order("gateway", dict.fromkeys(_FLAGS.values(), False))
    notices = [event["told"] for event in gateway.events("link_needs_you")]
    return str(notices[-1]) if notices else ""


def _states(gateway: Gateway) -> list[str]:
    return [str(event["state"]) for event in gateway.events("link")]
