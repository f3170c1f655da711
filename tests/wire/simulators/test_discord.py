"""The simulator speaks Discord's protocol: gateway opcodes and close codes, REST refusals, limits, files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import aiohttp
import pytest

from hermes.simulators.control import Control
from hermes.simulators.discord import TOKEN, Buckets, DiscordSimulator
from hermes.simulators.discord_gateway import MESSAGE_CONTENT, PRIVILEGED

pytestmark = pytest.mark.wire
IDENTIFY = {"op": 2, "d": {"token": TOKEN, "intents": 37377, "properties": {}}}


@pytest.fixture
async def sim() -> AsyncIterator[DiscordSimulator]:
    async with DiscordSimulator() as simulator:
        yield simulator


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {TOKEN}"}) as opened:
        yield opened
        for client in Client.opened:
            await client.ws.close()
        Client.opened.clear()


class Client:
    """A gateway client that says exactly what a test wants."""

    opened: ClassVar[list[Client]] = []

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws
        self.opened.append(self)

    @classmethod
    async def open(cls, sim: DiscordSimulator, session: aiohttp.ClientSession) -> Client:
        client = cls(await session.ws_connect(f"{sim.gateway_url}?v=10&encoding=json"))
        assert (await client.hear())["op"] == 10
        return client

    async def hear(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.ws.receive_json(timeout=2)
        return found

    async def say(self, frame: Any) -> None:
        await self.ws.send_str(frame if isinstance(frame, str) else json.dumps(frame))

    async def ended(self) -> int | None:
        message = await self.ws.receive(timeout=2)
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED), message
        return self.ws.close_code


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("not json", 4002),
        ({"op": 99, "d": None}, 4001),
        ({"op": 3, "d": {}}, 4003),
        ({"op": 2, "d": {"token": "wrong", "intents": 1}}, 4004),
        ({"op": 2, "d": {"token": TOKEN, "intents": 1 << 40}}, 4013),
        ({"op": 6, "d": {"token": "wrong", "session_id": "x", "seq": 1}}, 4004),
    ],
)
async def test_what_is_wrong_ends_with_its_close_code(
    sim: DiscordSimulator, session: aiohttp.ClientSession, frame: Any, code: int
) -> None:
    client = await Client.open(sim, session)
    await client.say(frame)
    assert await client.ended() == code


async def test_a_second_identify_and_a_switched_off_intent_are_refused(
    sim: DiscordSimulator, session: aiohttp.ClientSession
) -> None:
    client = await Client.open(sim, session)
    await client.say(IDENTIFY)
    assert (await client.hear())["t"] == "READY"
    await client.say(IDENTIFY)
    assert await client.ended() == 4005
    sim.gateway.allowed_intents = PRIVILEGED & ~MESSAGE_CONTENT
    other = await Client.open(sim, session)
    await other.say(IDENTIFY)
    assert await other.ended() == 4014


async def test_a_session_is_resumed_with_what_it_missed_and_only_with_that(
    sim: DiscordSimulator, session: aiohttp.ClientSession
) -> None:
    client = await Client.open(sim, session)
    await client.say(IDENTIFY)
    name = (await client.hear())["d"]["session_id"]
    sim.say(7, "one")
    assert (await client.hear())["d"]["content"] == "one"
    await client.ws.close(code=4000)
    sim.say(7, "two")
    later = await Client.open(sim, session)
    await later.say({"op": 6, "d": {"token": TOKEN, "session_id": name, "seq": 2}})
    assert [(await later.hear())["t"] for _ in range(2)] == ["MESSAGE_CREATE", "RESUMED"]
    await later.say({"op": 1, "d": 4})
    assert (await later.hear())["op"] == 11
    await later.ws.close(code=1000)
    await sim.wait_for(lambda: not sim.gateway.sessions)
    last = await Client.open(sim, session)
    await last.say({"op": 6, "d": {"token": TOKEN, "session_id": name, "seq": 2}})
    assert await last.hear() == {"op": 9, "d": False, "s": None, "t": None}


async def test_without_the_intent_what_others_say_arrives_empty(
    sim: DiscordSimulator, session: aiohttp.ClientSession
) -> None:
    sim.add_guild(900, [901])
    client = await Client.open(sim, session)
    await client.say({"op": 2, "d": {**IDENTIFY["d"], "intents": 37377 & ~MESSAGE_CONTENT}})  # type: ignore[dict-item]
    assert [(await client.hear())["t"] for _ in range(2)] == ["READY", "GUILD_CREATE"]
    sim.say(901, "hidden", user=8)
    sim.say(901, "<@424242> shown", user=8)
    sim.say(8, "private")
    assert [(await client.hear())["d"]["content"] for _ in range(3)] == ["", "<@424242> shown", "private"]


async def call(
    sim: DiscordSimulator, session: aiohttp.ClientSession, method: str, path: str, **more: Any
) -> tuple[int, Any, Any]:
    async with session.request(method, f"{sim.api_url}/{path}", **more) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if text else None, answer.headers


async def test_rest_refuses_in_discords_words(sim: DiscordSimulator, session: aiohttp.ClientSession) -> None:
    sim.say(7, "hello")
    cases: list[tuple[str, str, Any, int, int]] = [
        ("POST", "channels/5/messages", {"content": "x"}, 404, 10003),
        ("POST", "channels/7/messages", {"content": "x" * 2001}, 400, 50035),
        ("POST", "channels/7/messages", {"content": " "}, 400, 50006),
        ("POST", "channels/7/messages", {"content": "x", "nonce": "n" * 26}, 400, 50035),
        ("POST", "channels/7/messages", {"content": "x", "message_reference": {"message_id": "5"}}, 400, 50035),
        ("PATCH", "channels/7/messages/5", {"content": "x"}, 404, 10008),
        ("DELETE", "channels/7/messages/5", None, 404, 10008),
        ("GET", "channels/x/messages", None, 400, 50035),
        ("GET", "channels/7/messages?limit=101", None, 400, 50035),
        ("POST", "interactions/5/token/callback", {"type": 6}, 404, 10062),
        ("GET", "nowhere", None, 404, 0),
    ]
    for method, path, body, status, code in cases:
        found = await call(sim, session, method, path, json=body)
        assert (found[0], found[1]["code"]) == (status, code), path
        assert found[2]["Content-Type"] == "application/json"
    said = next(iter(sim.channel(7).messages))
    assert (await call(sim, session, "PATCH", f"channels/7/messages/{said}", json={"content": "x"}))[1]["code"] == 50005
    async with session.get(f"{sim.api_url}/users/@me", headers={"Authorization": "Bot x"}) as answer:
        assert answer.status == 401


async def test_a_limit_announces_itself_refuses_and_doubles_for_who_does_not_wait(
    sim: DiscordSimulator, session: aiohttp.ClientSession
) -> None:
    sim.say(7, "hello")
    sim.world.buckets = Buckets(limit=2, window=60, ban=10)
    path = "channels/7/messages"
    left = [(await call(sim, session, "POST", path, json={"content": "x"}))[2] for _ in range(2)]
    assert [headers["X-RateLimit-Remaining"] for headers in left] == ["1", "0"]
    waits = []
    for _ in range(3):
        status, body, headers = await call(sim, session, "POST", path, json={"content": "x"})
        assert (status, body["global"], headers["X-RateLimit-Scope"]) == (429, False, "user")
        waits.append(round(body["retry_after"]))
    assert waits == [10, 20, 40]
    assert sim.world.buckets.violations == 3


async def test_a_nonce_makes_one_message_and_an_upload_is_served_while_its_address_is_valid(
    sim: DiscordSimulator, session: aiohttp.ClientSession
) -> None:
    sim.say(7, "hello")
    body = {"content": "once", "nonce": "n", "enforce_nonce": True}
    first = await call(sim, session, "POST", "channels/7/messages", json=body)
    again = await call(sim, session, "POST", "channels/7/messages", json=body)
    assert first[1]["id"] == again[1]["id"]
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("payload_json", json.dumps({"content": "file"}), content_type="application/json")
    form.add_field("files[0]", b"data", filename="a.bin", content_type="application/octet-stream")
    sent = await call(sim, session, "POST", "channels/7/messages", data=form)
    (file,) = sent[1]["attachments"]
    assert sim.chat(7)[-1].attachments == ["a.bin"]
    async with session.get(file["url"]) as answer:
        assert await answer.read() == b"data"
    async with session.get(file["url"].replace("ex=", "ex=0&old=")) as answer:
        assert answer.status == 404


async def test_an_interaction_is_answered_once(sim: DiscordSimulator, session: aiohttp.ClientSession) -> None:
    name = sim.command(7, "status")
    token = sim.world.interactions[name][1]
    path = f"interactions/{name}/{token}/callback"
    assert (await call(sim, session, "POST", path, json={"type": 99}))[1]["code"] == 50035
    assert (await call(sim, session, "POST", path, json={"type": 5}))[0] == 204
    assert (await call(sim, session, "POST", path, json={"type": 5}))[1]["code"] == 40060


async def test_it_is_steered_from_another_process(sim: DiscordSimulator, session: aiohttp.ClientSession) -> None:
    async with Control(sim) as control:

        async def order(name: str, body: Any = None) -> Any:
            async with session.post(f"{control.url}/{name}", data=json.dumps(body or {})) as answer:
                return (await answer.json()).get("result")

        await order("guild", {"guild": 900, "channels": [901]})
        await order("thread", {"parent": 901, "thread": 903})
        said = await order("say", {"chat": 903, "text": "hi", "user": 8, "files": {"a.txt": "text"}})
        await order("edit", {"chat": 903, "message_id": said, "text": "hello"})
        await order("press", {"chat": 903, "message_id": said, "custom_id": "x", "user": 8})
        await order("command", {"chat": 901, "name": "status", "user": 8})
        await order("inject", {"event": "TYPING_START", "data": {}})
        for name, body in (("gateway", {"mute": True}), ("ask", {"op": 7}), ("close_sockets", {"code": 4000})):
            await order(name, body)
        for name in ("forget", "revoke", "restore", "disallow_content", "allow_content"):
            await order(name)
        for name in ("block", "reopen"):
            await order(name, {"chat": 901})
        assert sim.channel(903).messages[said]["content"] == "hello"
        assert sim.gateway.mute
        async with session.get(f"{control.url}/state") as answer:
            assert (await answer.json())["sockets"] == 0
        async with session.post(f"{control.url}/gateway", data='{"odd": 1}') as answer:
            assert answer.status == 400


async def test_it_closes_with_clients_connected(session: aiohttp.ClientSession) -> None:
    async with DiscordSimulator() as sim:
        client = await Client.open(sim, session)
        await client.say(IDENTIFY)
        await client.hear()
    assert await client.ended() is not None or client.ws.closed
    assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("simulator")]
