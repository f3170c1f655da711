"""An HTTP door to a simulator that runs as a process of its own: JSON in, JSON out.

It listens on its own port, so it answers while the simulator refuses connections. Routes of all:

    GET  /state                                     listening, counters, waiting faults
    POST /fault        {"kind": "stall", ...}       see faults.read_rule
    POST /clear_faults
    POST /refuse       {"seconds": 2, "drop": true} closes the listening socket, reopens the same port
    POST /reset_connects {"count": 1}               resets the next connections before reading
    POST /drop                                      resets the open connections

Telegram: POST /say /edit /press /inject with the arguments of TelegramUser, /revoke /restore
/block /kick /reopen, GET /chat?id= /calls?since= /wait?id=&text=&count=&timeout= (until `count` messages that
contain `text` stand in the chat). Models: POST /script [answer or fault, ...], /config {"latency": ...},
/habit {"habit": "repeat", "calls": [["read_file", {"path": "a"}]], "width": 1} (see looping.py; {} ends it),
GET /requests?since= /wait?requests=&pieces=&timeout= (`pieces`: content events of the last request's stream).
/wait of Telegram takes calls=METHOD&count= and polls=1 as well. Discord and other chat platforms: the orders of
their `orders()`, and the same /chat, /calls and /wait.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from aiohttp import web

from hermes.simulators.answers import Answer, read_answer
from hermes.simulators.chatting import ChatSimulator
from hermes.simulators.faults import Fault, read_fault, read_rule
from hermes.simulators.loopback import Loopback
from hermes.simulators.looping import read_habit
from hermes.simulators.models import ModelSimulator
from hermes.simulators.telegram import TelegramSimulator

__all__ = ["Control"]

Handler: TypeAlias = Callable[[Any], Any]
_SETTINGS = {"latency": float, "gap": float, "pieces": int, "context_limit": int, "api_key": str}


class Control(Loopback):
    """Serves the control routes of one simulator; start and close it beside the simulator."""

    def __init__(self, sim: Loopback, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.sim = sim

    def routes(self, router: web.UrlDispatcher) -> None:
        orders: dict[str, Handler] = {
            "fault": lambda order: read_rule(self.sim.faults, order).fault.__class__.__name__,
            "clear_faults": lambda order: self.sim.faults.clear(),
            "refuse": lambda order: self.sim.refuse_for(
                float(order["seconds"]), drop=order.get("drop", True)
            ),
            "reset_connects": self._reset_connects,
            "drop": lambda order: self.sim.drop_connections(),
        }
        if isinstance(self.sim, TelegramSimulator):
            orders |= _telegram_orders(self.sim)
            router.add_get("/chat", self._chat)
            router.add_get("/calls", self._calls)
        elif isinstance(self.sim, ChatSimulator):
            orders |= self.sim.orders()
            router.add_get("/chat", self._chat)
            router.add_get("/calls", self._calls)
        elif isinstance(self.sim, ModelSimulator):
            orders |= {"script": self._script, "config": self._config, "habit": self._habit}
            router.add_get("/requests", self._requests)
        for name, handler in orders.items():
            router.add_post(f"/{name}", _order(handler))
        router.add_get("/state", self._state)
        router.add_get("/wait", self._wait)

    def _reset_connects(self, order: dict[str, Any]) -> None:
        self.sim.reset_connects = int(order.get("count", 1))

    def _script(self, order: list[dict[str, Any]]) -> int:
        sim = self.sim
        assert isinstance(sim, ModelSimulator)
        items: list[Answer | Fault] = [
            read_fault(item) if "kind" in item else read_answer(item) for item in order
        ]
        sim.script(*items)
        return len(sim.scripted)

    def _habit(self, order: dict[str, Any]) -> None:
        assert isinstance(self.sim, ModelSimulator)
        self.sim.endless = read_habit(order) if order else None

    def _config(self, order: dict[str, Any]) -> None:
        if unknown := sorted(set(order) - set(_SETTINGS)):
            raise ValueError(f"no setting {', '.join(unknown)}; known are {', '.join(sorted(_SETTINGS))}")
        for name, value in order.items():
            setattr(self.sim, name, None if value is None else _SETTINGS[name](value))

    async def _state(self, request: web.Request) -> web.Response:
        sim = self.sim
        found: dict[str, Any] = {
            "url": sim.url,
            "listening": sim.listening,
            "connections": sim.connections,
            "faults": [dataclasses.asdict(rule) for rule in sim.faults.rules],
        }
        if isinstance(sim, TelegramSimulator):
            found |= {
                "calls": len(sim.calls),
                "pending": len(sim.world.pending),
                "confirmed": len(sim.world.confirmed),
                "polls": sim.polls,
            }
        elif isinstance(sim, ChatSimulator):
            found |= sim.condition()
        elif isinstance(sim, ModelSimulator):
            found |= {
                "requests": len(sim.requests),
                "active": sim.active,
                "peak": sim.peak,
                "scripted": len(sim.scripted),
            }
        return web.json_response(found)

    async def _chat(self, request: web.Request) -> web.Response:
        sim, name = self.sim, request.query["id"]
        assert isinstance(sim, TelegramSimulator | ChatSimulator)
        seen = sim.chat(int(name)) if isinstance(sim, TelegramSimulator) else sim.chat(name)
        return web.json_response([dataclasses.asdict(message) for message in seen])

    async def _calls(self, request: web.Request) -> web.Response:
        assert isinstance(self.sim, TelegramSimulator | ChatSimulator)
        calls = self.sim.calls[int(request.query.get("since", 0)) :]
        return web.json_response(
            [
                {"method": call.method, "params": call.params, "at": call.at, "fault": call.fault}
                for call in calls
            ]
        )

    async def _requests(self, request: web.Request) -> web.Response:
        assert isinstance(self.sim, ModelSimulator)
        since = int(request.query.get("since", 0))
        return web.json_response([dataclasses.asdict(found) for found in self.sim.requests[since:]])

    async def _wait(self, request: web.Request) -> web.Response:
        query, sim = request.query, self.sim
        count = int(query.get("requests", query.get("count", 1)))

        def reached() -> bool:
            if isinstance(sim, TelegramSimulator):
                if "polls" in query:
                    return sim.polls >= int(query["polls"])
                if "calls" in query:
                    return len(sim.called(query["calls"])) >= count
                texts = sim.texts(int(query.get("id", 0)))
                return sum(query.get("text", "") in text for text in texts) >= count
            if isinstance(sim, ChatSimulator):
                if "polls" in query:
                    return sim.cycles() >= int(query["polls"])
                if "calls" in query:
                    return len(sim.called(query["calls"])) >= count
                return sum(query.get("text", "") in text for text in sim.texts(query.get("id", "0"))) >= count
            if not isinstance(sim, ModelSimulator) or len(sim.requests) < count:
                return False
            return count == 0 or sim.requests[-1].pieces >= int(query.get("pieces", 0))

        try:
            await sim.wait_for(reached, float(query.get("timeout", 10)))
        except TimeoutError as error:
            return web.json_response({"error": str(error)}, status=408)
        return web.json_response({"reached": True})


def _order(handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            result = handler(json.loads(await request.text() or "{}"))
        except (ValueError, TypeError, KeyError, RuntimeError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({"result": result})

    return answer


def _bytes(content: object) -> bytes:
    """A file's content: text, or ``{"base64": …}``."""
    if isinstance(content, dict):
        return base64.b64decode(content["base64"], validate=True)
    return str(content).encode()


def _telegram_orders(sim: TelegramSimulator) -> dict[str, Handler]:
    def say(order: dict[str, Any]) -> int:
        if document := order.pop("document", None):
            order["document"] = (document["name"], _bytes(document["text"]))
        for kind in ("photo", "voice"):
            if (content := order.pop(kind, None)) is not None:
                order[kind] = _bytes(content)
        return sim.say(**order)

    return {
        "say": say,
        "edit": lambda order: sim.edit(**order),
        "press": lambda order: sim.press(**order),
        "inject": sim.inject,
        "revoke": lambda order: sim.revoke(),
        "restore": lambda order: sim.restore(),
        "block": lambda order: sim.block(int(order["chat"])),
        "kick": lambda order: sim.kick(int(order["chat"])),
        "reopen": lambda order: sim.reopen(int(order["chat"])),
    }
