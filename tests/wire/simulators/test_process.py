"""A simulator as a process of its own, driven through its control API; and what importing it costs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from telegram import Bot
from telegram.error import InvalidToken

from hermes.simulators.control import Control
from hermes.simulators.openai import OpenAISimulator

pytestmark = pytest.mark.wire
ROOT = Path(__file__).resolve().parents[3]


class Door:
    """The control API of a running simulator."""

    def __init__(self, where: dict[str, Any], session: aiohttp.ClientSession) -> None:
        self.where, self.session = where, session

    async def order(self, name: str, body: Any = None) -> Any:
        async with self.session.post(f"{self.where['control']}/{name}", json=body or {}) as answer:
            return {"status": answer.status, **(await answer.json())}

    async def read(self, name: str, **query: Any) -> Any:
        async with self.session.get(f"{self.where['control']}/{name}", params=query) as answer:
            return await answer.json()


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Door]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hermes.simulators", *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        where = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        async with aiohttp.ClientSession() as session:
            yield Door(where, session)
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_telegram_runs_as_a_process() -> None:
    async with running("telegram") as door:
        where = door.where
        bot = Bot(where["token"], base_url=where["base_url"], base_file_url=where["base_file_url"])
        async with bot:
            assert (await door.order("say", {"chat": 7, "text": "hi"}))["result"] == 1
            (update,) = await bot.get_updates()
            assert update.message
            await bot.send_message(7, "seen from outside")
            assert await door.read("wait", id=7, text="outside", timeout=5) == {"reached": True}
            (seen,) = await door.read("chat", id=7)
            assert seen["text"] == "seen from outside"
            await door.order("revoke")
            with pytest.raises(InvalidToken):
                await bot.get_me()
            await door.order("restore")
            assert await bot.get_me()
            calls = await door.read("calls")
            assert [call["method"] for call in calls[-3:]] == ["sendMessage", "getMe", "getMe"]


async def test_a_process_refuses_connections_while_its_control_answers() -> None:
    async with running("openai") as door:
        client = openai.AsyncOpenAI(api_key="k", base_url=door.where["base_url"], max_retries=0, timeout=5)
        async with client:
            await door.order("refuse", {"seconds": 3600})
            state = await door.read("state")
            assert state["listening"] is False
            with pytest.raises(openai.APIConnectionError):
                await client.models.list()


async def test_a_test_can_wait_for_the_middle_of_a_stream() -> None:
    async with running("openai") as door:
        client = openai.AsyncOpenAI(api_key="k", base_url=door.where["base_url"], max_retries=0, timeout=5)
        async with client:
            await door.order("script", [{"text": "abcdefgh", "pieces": 4, "gap": 0.05}])
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            )
            assert await door.read("wait", requests=1, pieces=2, timeout=5) == {"reached": True}
            await stream.close()
            (request,) = await door.read("requests")
            assert request["pieces"] >= 2


async def test_scripts_and_faults_come_from_outside() -> None:
    async with running("anthropic", "--api-key", "k") as door:
        client = anthropic.AsyncAnthropic(
            api_key="k", base_url=door.where["base_url"], max_retries=0, timeout=5
        )
        async with client:
            asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
            script = [{"tool": "f", "arguments": {"a": 1}}, {"kind": "error", "status": 529}]
            assert (await door.order("script", script))["result"] == 2
            message = await client.messages.create(**asked)
            assert message.stop_reason == "tool_use"
            with pytest.raises(anthropic.InternalServerError):
                await client.messages.create(**asked)
            await door.order("fault", {"kind": "html", "status": 503, "times": 2, "after_calls": 1})
            assert await client.messages.create(**asked)
            for _ in range(2):
                with pytest.raises(anthropic.InternalServerError):
                    await client.messages.create(**asked)
            requests = await door.read("requests")
            assert [request["outcome"] for request in requests] == [
                "answered",
                "broken",
                "answered",
                "broken",
                "broken",
            ]


@pytest.mark.parametrize(
    ("name", "order", "words"),
    [
        ("fault", {"kind": "nonsense"}, "no fault 'nonsense'; known are"),
        ("fault", {"kind": "stall", "minutes": 3}, "has no minutes; it takes"),
        ("fault", {"kind": "flood"}, "retry_after"),
        ("config", {"speed": 3}, "no setting speed; known are"),
        ("script", [{"words": "x"}], "an answer has no words"),
    ],
)
async def test_a_wrong_order_is_refused_with_the_cure(name: str, order: Any, words: str) -> None:
    async with (
        OpenAISimulator() as sim,
        Control(sim) as control,
        aiohttp.ClientSession() as session,
    ):
        refused = await Door({"control": control.url}, session).order(name, order)
    assert refused["status"] == 400
    assert words in refused["error"]


def test_importing_the_simulators_loads_no_sdk() -> None:
    code = (
        "import sys, hermes.simulators.__main__\n"
        "sdks = ('telegram', 'openai', 'anthropic', 'httpx', 'httpx2', 'discord', 'slack_sdk', 'pydantic')\n"
        "print([name for name in sdks if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
