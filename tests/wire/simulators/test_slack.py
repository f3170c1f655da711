"""The Slack simulator by itself, met with Slack's own SDK: envelopes, repeats, ends, refusals, signed requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from hermes.simulators.control import Control
from hermes.simulators.slack import SIGNING_SECRET, Flood, SlackSimulator

pytestmark = pytest.mark.wire


@pytest.fixture
async def sim() -> AsyncIterator[SlackSimulator]:
    async with SlackSimulator(ack_timeout=0.2) as simulator:
        yield simulator


@pytest.fixture
async def client(sim: SlackSimulator) -> AsyncWebClient:
    return AsyncWebClient(token=sim.token, base_url=sim.base_url, retry_handlers=[])


@contextlib.asynccontextmanager
async def listening(sim: SlackSimulator, client: AsyncWebClient, *, acknowledge: bool = True) -> AsyncIterator[Any]:
    """Slack's own Socket Mode client; what it heard."""
    heard: list[SocketModeRequest] = []
    socket = SocketModeClient(app_token=sim.app_token, web_client=client, ping_interval=0.2)

    async def on_request(_: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        heard.append(request)
        if acknowledge:
            await socket.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    socket.socket_mode_request_listeners.append(on_request)
    await socket.connect()
    await sim.wait_for(lambda: sim.out.sockets)
    try:
        yield heard
    finally:
        await socket.close()
        left = [socket.message_processor, socket.current_session_monitor, socket.message_receiver]
        await asyncio.gather(*[task for task in left if task is not None], return_exceptions=True)


async def test_slacks_own_client_hears_a_message_and_is_believed_when_it_acknowledges(
    sim: SlackSimulator, client: AsyncWebClient
) -> None:
    async with listening(sim, client) as heard:
        ts = sim.say(7, "hello <you>")
        await sim.wait_for(lambda: sim.out.acknowledged)
        (request,) = heard
        event = request.payload["event"]
        assert (request.type, event["text"], event["ts"], event["channel_type"]) == (
            "events_api", "hello &lt;you&gt;", ts, "im",
        )  # fmt: skip
        assert not sim.out.pending


async def test_what_is_not_acknowledged_comes_again_with_its_number_and_its_reason(
    sim: SlackSimulator, client: AsyncWebClient
) -> None:
    async with listening(sim, client, acknowledge=False) as heard:
        sim.say(7, "hello")
        await sim.wait_for(lambda: len(heard) >= 2)
        assert [(one.retry_attempt, one.retry_reason) for one in heard[:2]] == [(0, ""), (1, "timeout")]
        assert heard[0].envelope_id == heard[1].envelope_id


async def test_slacks_own_client_comes_back_after_a_refresh(sim: SlackSimulator, client: AsyncWebClient) -> None:
    async with listening(sim, client) as heard:
        sim.disconnect("refresh_requested")
        await sim.wait_for(lambda: len(sim.called("apps.connections.open")) == 2 and len(sim.out.sockets) == 1)
        sim.say(7, "after")
        await sim.wait_for(lambda: heard)


async def test_a_message_stands_where_it_was_put_and_is_told_of(sim: SlackSimulator, client: AsyncWebClient) -> None:
    sim.add_channel("C1")
    top = sim.say("C1", "begin", user=8)
    metadata = {"event_type": "x", "event_payload": {"nonce": "1"}}
    answer = await client.chat_postMessage(channel="C1", text="a &amp; b", thread_ts=top, metadata=metadata)
    assert sim.texts("C1") == ["a & b"]
    replies = await client.conversations_replies(channel="C1", ts=top, include_all_metadata=True)
    assert [m["ts"] for m in replies["messages"]] == [top, answer["ts"]]
    assert replies["messages"][1]["metadata"] == metadata
    history = await client.conversations_history(channel="C1")
    assert [(m["ts"], m["reply_count"]) for m in history["messages"]] == [(top, 1)]


async def test_a_history_is_paged_newest_first(sim: SlackSimulator, client: AsyncWebClient) -> None:
    stamps = [sim.say(7, f"n{number}") for number in range(5)]
    first = await client.conversations_history(channel="D0007", limit=3, oldest=stamps[0])
    assert [m["text"] for m in first["messages"]] == ["n4", "n3", "n2"]
    following = first["response_metadata"]["next_cursor"]
    second = await client.conversations_history(channel="D0007", limit=3, oldest=stamps[0], cursor=following)
    assert [m["text"] for m in second["messages"]] == ["n1"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"channel": "C404", "text": "x"}, "channel_not_found"),
        ({"channel": "D0007", "text": " "}, "no_text"),
        ({"channel": "D0007", "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "D0007", "text": "x", "thread_ts": "1.1"}, "thread_not_found"),
        ({"channel": "D0007", "text": "x", "metadata": {"event_type": 5}}, "invalid_metadata_format"),
        ({"channel": "D0007", "blocks": [{"type": "section", "text": {"text": "x" * 3001}}]}, "invalid_blocks"),
        ({"channel": "D0007", "blocks": [{"type": "strange"}]}, "invalid_blocks"),
    ],
)
async def test_a_refusal_is_slacks_own(
    sim: SlackSimulator, client: AsyncWebClient, given: dict[str, Any], error: str
) -> None:
    sim.place(7)
    with pytest.raises(SlackApiError) as caught:
        await client.api_call("chat.postMessage", json=given)
    assert caught.value.response["error"] == error


async def test_channels_end_in_slacks_words(sim: SlackSimulator, client: AsyncWebClient) -> None:
    sim.add_channel("C1")
    for change, error in ((sim.kick, "not_in_channel"), (sim.archive, "is_archived")):
        change("C1")
        with pytest.raises(SlackApiError, match=error):
            await client.chat_postMessage(channel="C1", text="x")
        sim.reopen("C1")
    await client.chat_postMessage(channel="C1", text="x")


async def test_a_ban_is_doubled_by_whoever_does_not_wait(sim: SlackSimulator, client: AsyncWebClient) -> None:
    sim.place(7)
    sim.world.flood = Flood(limit=1, window=60, ban=2)
    await client.chat_postMessage(channel="D0007", text="one")
    waits = []
    for _ in range(3):
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel="D0007", text="more")
        waits.append(int(caught.value.response.headers["Retry-After"]))
    assert waits == [2, 4, 8]
    assert sim.world.flood.violations == 2


async def test_a_file_goes_up_in_three_steps_and_comes_down_with_the_token(
    sim: SlackSimulator, client: AsyncWebClient
) -> None:
    sim.place(7)
    await client.files_upload_v2(channel="D0007", content=b"words", filename="a.txt", title="a.txt")
    assert sim.world.uploads == {"FUP1": b"words"}
    assert sim.texts("D0007") == ["[a.txt]"]
    about = sim.add_file("b.txt", b"more")
    found = (await client.files_info(file=about["id"]))["file"]["url_private_download"]
    async with aiohttp.ClientSession() as session:
        async with session.get(found) as refused:
            assert refused.content_type == "text/html"
        async with session.get(found, headers={"Authorization": f"Bearer {sim.token}"}) as given:
            assert await given.read() == b"more"


async def test_over_http_events_are_signed_and_come_again_until_they_are_answered(sim: SlackSimulator) -> None:
    seen: list[tuple[dict[str, str], str]] = []

    async def take(request: web.Request) -> web.Response:
        seen.append(({key.lower(): value for key, value in request.headers.items()}, await request.text()))
        return web.Response(status=500 if len(seen) == 1 else 200)

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        sim.out.request_url = f"http://127.0.0.1:{port}/"
        sim.say(7, "hello")
        sim.command(7, "status")
        await sim.wait_for(lambda: len(sim.out.acknowledged) == 2)
    finally:
        await runner.cleanup()
    assert all(SignatureVerifier(SIGNING_SECRET).is_valid_request(body, head) for head, body in seen)
    assert [head.get("x-slack-retry-num") for head, body in seen if body.startswith("{")] == [None, "1"]
    assert json.loads(seen[0][1])["event"]["text"] == "hello"


async def test_it_is_steered_from_another_process(sim: SlackSimulator, client: AsyncWebClient) -> None:
    async with Control(sim) as control, aiohttp.ClientSession(control.url) as door:

        async def order(name: str, **body: Any) -> Any:
            async with door.post(f"/{name}", json=body) as answer:
                return (await answer.json())["result"]

        ts = await order("say", chat=7, text="hello")
        assert ts in sim.world.channels["D0007"].messages
        await order("revoke", error="account_inactive")
        with pytest.raises(SlackApiError, match="account_inactive"):
            await client.auth_test()
        await order("restore")
        await client.chat_postMessage(channel="D0007", text="hi")
        async with door.get("/wait", params={"id": "7", "text": "hi"}) as answer:
            assert answer.status == 200
        async with door.get("/state") as answer:
            assert (await answer.json())["sockets"] == 0
