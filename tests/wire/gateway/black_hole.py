"""The scenario of `test_black_hole`, run as a program inside a network namespace of its own.

One gateway on three platforms; the packets of one of them vanish in both directions, without RST or FIN. Prints one
line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.waiting import until
from tests.wire.gateway.harness import (
    Chat,
    Discord,
    Gateway,
    Model,
    Telegram,
    configuration,
    free_port,
    merged,
)
from tests.wire.gateway.invariants import check_chats, check_disk, stop_when_delivered, unanswered
from tests.wire.gateway.simulated import Slack

PLATFORMS = ("telegram", "discord", "slack")
CHATS = (10, 11)


class Wall:
    """Swallows every packet of one port while it stands."""

    def __init__(self, port: int) -> None:
        self._rules = [["-p", "tcp", side, str(port), "-j", "DROP"] for side in ("--dport", "--sport")]

    def __enter__(self) -> None:
        for rule in self._rules:
            subprocess.run(["iptables", "-w", "-I", "INPUT", *rule], check=True)

    def __exit__(self, *_: object) -> None:
        for rule in self._rules:
            subprocess.run(["iptables", "-w", "-D", "INPUT", *rule], check=True)


def play(tmp: Path, cut: str) -> dict[str, Any]:
    """What was found; raises AssertionError."""
    with contextlib.ExitStack() as stack:
        outside: dict[str, Chat] = {"telegram": Telegram(), "discord": Discord(), "slack": Slack()}
        model = Model()
        for simulator in (*outside.values(), model):
            stack.callback(simulator.close)
        config = configuration(outside["telegram"], model, free_port())
        for chat in outside.values():
            config = merged(config, {"platforms": chat.section()})
        gateway = Gateway(tmp / "home", config)
        stack.callback(gateway.close)
        gateway.start()
        for chat in outside.values():
            if not isinstance(chat, Telegram):
                chat.connected()
        said = {name: {chat: [] for chat in CHATS} for name in PLATFORMS}
        _say(outside, said, "before")
        until(lambda: not _missing(outside, said, PLATFORMS), within=60, why="all is answered before")
        model.order("config", {"latency": 1.0})
        _say(outside, said, "due")
        model.read("wait", requests=2 * len(CHATS) * len(PLATFORMS), timeout=30)
        port = urlsplit(outside[cut].where["base_url"]).port
        assert port is not None
        others = [name for name in PLATFORMS if name != cut]
        with Wall(port):
            _say(outside, said, "during")
            until(lambda: not _missing(outside, said, others), within=30, why="the others are undisturbed")
            until(lambda: cut in _failed(gateway), within=120, why="the silence is noticed", every=0.2)
        _say(outside, said, "after")
        until(lambda: not _missing(outside, said, PLATFORMS), within=120, why="all is answered", every=0.5)
        stop_when_delivered(gateway, outside[cut])
        check_disk(gateway)
        repeats = {name: check_chats(outside[name], said[name]).repeats for name in PLATFORMS}
        return {"failed": sorted(_failed(gateway)), "repeats": repeats}


def _say(outside: dict[str, Chat], said: dict[str, dict[int, list[str]]], word: str) -> None:
    for name, chats in said.items():
        for chat, texts in chats.items():
            texts.append(f"«{name} {chat} {word}»")
            outside[name].say(chat, texts[-1])


def _missing(outside: dict[str, Chat], said: dict[str, dict[int, list[str]]], names: Any) -> list[str]:
    return [text for name in names for text in unanswered(outside[name], said[name])]


def _failed(gateway: Gateway) -> set[str]:
    return {event["platform"] for event in gateway.events("link_failed")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(Path(sys.argv[2]), sys.argv[1])) + "\n")
