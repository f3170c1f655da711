"""Simulators on threads of their own, driven through their control ports: what stands around a gateway."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeAlias

from hermes.simulators.control import Control
from hermes.simulators.discord import TOKEN as DISCORD_TOKEN
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.discord_world import BOT as DISCORD_BOT
from hermes.simulators.openai import OpenAISimulator
from hermes.simulators.slack import SlackSimulator
from hermes.simulators.telegram import TelegramSimulator

TOKEN = "424242:simulated-token-of-a-bot"
PEOPLE = tuple(range(7, 60))
"""Chats that the configuration allows."""
AnySimulator: TypeAlias = TelegramSimulator | DiscordSimulator | SlackSimulator | OpenAISimulator


class Simulator:
    """A simulator on a thread of its own, driven through its control port as one in another process is."""

    def __init__(self, make: Callable[[], AnySimulator]) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, dict[str, Any]]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(_serve(make, started)), name="simulator")
        self._thread.start()
        self._loop, self._stop, self.where = started.result(10)

    def order(self, name: str, body: Any = None) -> Any:
        """POST; raises AssertionError with the simulator's own words when it refuses."""
        data = json.dumps({} if body is None else body).encode()
        request = urllib.request.Request(f"{self.where['control']}/{name}", data=data, method="POST")
        return json.loads(_fetch(request))["result"]

    def read(self, name: str, **query: Any) -> Any:
        """GET."""
        return json.loads(_fetch(f"{self.where['control']}/{name}?{urllib.parse.urlencode(query)}"))

    def fault(self, kind: str, **more: Any) -> None:
        """Orders a fault; see `hermes.simulators.faults.read_rule`."""
        self.order("fault", {"kind": kind, **more})

    def close(self) -> None:
        """Ends the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


async def _serve(
    make: Callable[[], AnySimulator],
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, dict[str, Any]]],
) -> None:
    stop = asyncio.Event()
    try:
        async with make() as sim, Control(sim) as control:
            where = {"base_url": sim.base_url, "control": control.url}
            if isinstance(sim, DiscordSimulator | SlackSimulator):
                where |= sim.where()
            started.set_result((asyncio.get_running_loop(), stop, where))
            await stop.wait()
    except OSError as error:
        started.set_exception(error)


def _fetch(request: urllib.request.Request | str) -> bytes:
    try:
        with urllib.request.urlopen(request, timeout=150) as answer:
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{error.code}: {error.read().decode()}") from None


class Telegram(Simulator):
    """Telegram's side: people write, and read what the bot wrote."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__(lambda: TelegramSimulator(token))
        self.token = token

    def say(self, chat: int, text: str, **more: Any) -> int:
        """A person writes; works while the gateway is down."""
        number: int = self.order("say", {"chat": chat, "text": text, **more})
        return number

    def texts(self, chat: int) -> list[str]:
        """What stands in the chat from the bot, in order."""
        return [seen["text"] for seen in self.read("chat", id=chat)]

    def wait(self, chat: int, text: str, *, count: int = 1, within: float = 30.0) -> list[str]:
        """Until ``count`` messages with ``text`` stand in the chat; returns all of the chat."""
        self.read("wait", id=chat, text=text, count=count, timeout=within)
        return self.texts(chat)

    def calls(self, method: str = "") -> list[dict[str, Any]]:
        """The bot's calls."""
        return [call for call in self.read("calls") if call["method"].lower() == (method or call["method"]).lower()]


    def all_received(self) -> bool:
        """Whether nothing waits to be received any more."""
        return bool(self.read("state")["pending"] == 0)

    def section(self) -> dict[str, Any]:
        """The platform's section of a configuration, by its name."""
        return {
            "telegram": {
                "enabled": True, "token": self.token, "base_url": self.where["base_url"].removesuffix("/bot"),
                "allowed_users": list(PEOPLE), "poll_timeout": 5, "read_timeout": 5, "connect_timeout": 2,
            }
        }  # fmt: skip


class Discord(Simulator):
    """Discord's side: a guild in which each chat is a channel, and the person of that number writes in it."""

    token = DISCORD_TOKEN

    def __init__(self) -> None:
        super().__init__(lambda: DiscordSimulator(heartbeat_interval=2.0))
        self.order("guild", {"guild": 900, "channels": list(PEOPLE)})

    def say(self, chat: int, text: str, **more: Any) -> int:
        """A person writes to the bot; works while the gateway is down."""
        order = {"chat": chat, "text": f"<@{DISCORD_BOT}> {text}", "user": chat, **more}
        number: int = self.order("say", order)
        return number

    def texts(self, chat: int) -> list[str]:
        """What stands in the channel from the bot, in order."""
        return [seen["text"] for seen in self.read("chat", id=chat)]

    def wait(self, chat: int, text: str, *, count: int = 1, within: float = 30.0) -> list[str]:
        """Until ``count`` messages with ``text`` stand in the channel; returns all of it."""
        self.read("wait", id=chat, text=text, count=count, timeout=within)
        return self.texts(chat)

    def calls(self, method: str = "") -> list[dict[str, Any]]:
        """The bot's calls."""
        return [call for call in self.read("calls") if method in ("", call["method"])]

    def connected(self) -> None:
        """Until the bot listens: what was said before its first session is none of its business."""
        self.read("wait", polls=1, timeout=20)

    def all_received(self) -> bool:
        """Discord knows nothing of what was received."""
        return True

    def section(self) -> dict[str, Any]:
        """The platform's section of a configuration, by its name."""
        where = self.where
        return {
            "discord": {
                "enabled": True, "token": self.token, "api_url": where["api_url"], "gateway_url": where["gateway_url"],
                "allowed_users": list(PEOPLE), "request_timeout": 3, "connect_timeout": 2, "stall_after": 6,
            }
        }  # fmt: skip


class Slack(Simulator):
    """Slack's side: each chat is the direct messages with the person of that number."""

    def __init__(self) -> None:
        super().__init__(SlackSimulator)

    def say(self, chat: int, text: str, **more: Any) -> str:
        """A person writes to the bot; works while the gateway is down."""
        ts: str = self.order("say", {"chat": chat, "text": text, **more})
        return ts

    def texts(self, chat: int | str) -> list[str]:
        """What stands in the channel from the bot, in order."""
        return [seen["text"] for seen in self.read("chat", id=chat)]

    def wait(self, chat: int | str, text: str, *, count: int = 1, within: float = 30.0) -> list[str]:
        """Until ``count`` messages with ``text`` stand in the channel; returns all of it."""
        self.read("wait", id=chat, text=text, count=count, timeout=within)
        return self.texts(chat)

    def calls(self, method: str = "") -> list[dict[str, Any]]:
        """The bot's calls."""
        return [call for call in self.read("calls") if method in ("", call["method"])]

    def connected(self) -> None:
        """Until the bot listens: what was said before its first start is none of its business."""
        self.read("wait", polls=1, timeout=20)

    def all_received(self) -> bool:
        """What was said while nobody listened is read in the history; its event comes again a minute later."""
        return True

    def section(self) -> dict[str, Any]:
        """The platform's section of a configuration, by its name."""
        where = self.where
        return {
            "slack": {
                "enabled": True, "bot_token": where["token"], "app_token": where["app_token"],
                "base_url": where["base_url"], "allowed_users": [f"U{number:04d}" for number in PEOPLE],
                "request_timeout": 3, "ping_interval": 1, "audit_interval": 3,
            }
        }  # fmt: skip


Chat: TypeAlias = Telegram | Discord | Slack


class Model(Simulator):
    """An OpenAI-compatible server that answers `You said: …` unless told otherwise."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(lambda: OpenAISimulator(api_key=key))

    def script(self, *items: Mapping[str, Any]) -> None:
        """Answers and faults, consumed in order."""
        self.order("script", list(items))

    def requests(self, since: int = 0) -> list[dict[str, Any]]:
        """The requests so far."""
        found: list[dict[str, Any]] = self.read("requests", since=since)
        return found
