"""The scenarios of `test_slack`: Slack is away for a while, in each way it can be; bounds are scaled down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until
from tests.wire.gateway.harness import Gateway, Model, Slack, configuration, free_port
from tests.wire.gateway.invariants import check_chats, check_disk, unanswered

SECONDS = 6.0
OUTAGES = (
    "refused", "black hole", "half open", "5xx", "ghost", "auth lost", "scope lost", "switched off", "too many sockets",
)  # fmt: skip
MENDED = {"auth lost": "refused", "scope lost": "refused", "switched off": "refused", "too many sockets": "conflict"}
"""What only a person, or somebody else's end, can mend, and the state that it is told as."""
CHATS = (10, 11, 12)


@dataclass(frozen=True, slots=True)
class Survived:
    """What an outage left behind; ``states`` are the link's, in order."""

    repeats: int
    states: list[str]
    answers: dict[int, list[str]]


@contextlib.contextmanager
def outside() -> Iterator[tuple[Slack, Model]]:
    """Slack in front, a model behind."""
    with contextlib.ExitStack() as stack:
        slack = Slack()
        stack.callback(slack.close)
        model = Model()
        stack.callback(model.close)
        yield slack, model


def play(tmp: Path, outage: str) -> Survived:
    """Answers fall due while Slack is away, and people write meanwhile."""
    with outside() as (slack, model):
        gateway = Gateway(tmp / "home", configuration(slack, model, free_port()))
        try:
            gateway.start()
            slack.connected()
            said = {chat: [f"«{chat}.0»"] for chat in CHATS}
            for chat in CHATS:
                slack.say(chat, said[chat][0])
            until(lambda: not unanswered(slack, said), within=60, why="all is answered before")
            model.order("config", {"latency": 1.0})
            for chat in CHATS:
                _say(slack, said, chat, 1)
            model.read("wait", requests=2 * len(CHATS), timeout=20)
            _away(gateway, slack, outage, said)
            for chat in CHATS:
                _say(slack, said, chat, 3)
            until(lambda: not unanswered(slack, said), within=90, why="all is answered", every=0.5)
            assert gateway.stop() == 0
            check_disk(gateway)
            tally = check_chats(slack, said)
            return Survived(tally.repeats, _states(gateway), {chat: slack.texts(chat) for chat in CHATS})
        finally:
            gateway.close()


def _say(slack: Slack, said: dict[int, list[str]], chat: int, number: int) -> None:
    text = f"«{chat}.{number}»"
    slack.say(chat, text)
    said[chat].append(text)


def _away(gateway: Gateway, slack: Slack, outage: str, said: dict[int, list[str]]) -> None:
    """Breaks it, lets people write, waits until the gateway has noticed, mends it."""
    before = len(gateway.events("link_failed"))
    _break(slack, outage)
    for chat in CHATS:
        _say(slack, said, chat, 2)
    until(lambda: len(gateway.events("link_failed")) > before, within=60, why="the gateway notices", every=0.2)
    if outage in MENDED:
        until(lambda: _states(gateway)[-1:] == [MENDED[outage]], within=30, why="it is told as what it is", every=0.2)
    slack.order("clear_faults")
    slack.order("restore")
    slack.order("scopes", {"scopes": None})
    slack.order("socket", {"mute": False, "ghost": False, "deaf": False})


def _break(slack: Slack, outage: str) -> None:
    match outage:
        case "refused":
            slack.order("refuse", {"seconds": SECONDS})
        case "black hole":
            slack.order("socket", {"mute": True, "deaf": True})
            slack.fault("stall", times=None)
        case "half open":
            slack.order("socket", {"mute": True})
        case "ghost":
            slack.order("socket", {"ghost": True})
        case "5xx":
            slack.fault("html", status=503, times=None)
            slack.order("drop")
        case "auth lost":
            slack.order("revoke")
            slack.order("revoke", {"app": True})
            slack.order("drop")
        case "scope lost":
            slack.order("scopes", {"scopes": ["im:history"]})
            slack.fault("error", status=200, message="missing_scope", endpoint="apps.connections.open", times=None)
            slack.order("drop")
        case _:
            reason = {"switched off": "link_disabled"}.get(outage, "too_many_websockets")
            slack.fault("error", status=200, message=reason, endpoint="apps.connections.open", times=None)
            slack.order("disconnect", {"reason": reason})


def _states(gateway: Gateway) -> list[str]:
    return [str(event["state"]) for event in gateway.events("link")]
