"""The simulated services are as strict about pictures and recordings as the real ones, in their words."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import aiohttp
import pytest

from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.images import ImageRules
from hermes.simulators.models import ModelSimulator
from hermes.simulators.openai import OpenAISimulator
from tests.pictures import noise, picture

pytestmark = pytest.mark.wire


def openai_body(content: bytes | str, mime: str = "image/png", role: str = "user") -> dict[str, Any]:
    data = content if isinstance(content, str) else base64.b64encode(content).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    before: list[dict[str, Any]] = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]
    if role == "tool":
        return {"model": "m", "messages": [*before, {"role": "tool", "tool_call_id": "c", "content": [part]}]}
    return {"model": "m", "messages": [{"role": "user", "content": [part]}]}


def anthropic_body(content: bytes | str, mime: str = "image/png", count: int = 1) -> dict[str, Any]:
    data = content if isinstance(content, str) else base64.b64encode(content).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
    return {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": [block] * count}]}


async def answered(sim: ModelSimulator, path: str, body: dict[str, Any]) -> tuple[int, str]:
    sent, how = io.BytesIO(json.dumps(body).encode()), {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as http, http.post(f"{sim.url}{path}", data=sent, headers=how) as response:
        found = await response.json()
        return response.status, found["error"]["message"] if response.status >= 400 else ""


@pytest.mark.parametrize(
    ("body", "rules", "status", "says"),
    [
        (openai_body(picture()), None, 200, ""),
        (openai_body(picture(), role="tool"), None, 400, "this message with role 'tool' contains an image URL"),
        (openai_body(picture(), role="tool"), ImageRules(), 200, ""),
        (openai_body(picture(), "image/svg"), None, 400, "unsupported MIME type 'image/svg'"),
        (openai_body("@@"), None, 400, "Expected a base64-encoded data URL"),
        (openai_body(picture()[:50]), None, 400, "make sure your image is valid"),
        (openai_body(noise(50, 50)), ImageRules(decoded=2**10), 400, "Image size exceeds 0.000976562MB limit"),
        (openai_body(picture(90, 90)), ImageRules(pixels=8000), 400, "maximum 8000 pixels"),
        (openai_body(picture()), ImageRules(taken=False), 404, "No endpoints found that support image input"),
    ],
)
async def test_openais_refusals(body: dict[str, Any], rules: ImageRules | None, status: int, says: str) -> None:
    async with OpenAISimulator(images=rules) as sim:
        got, said = await answered(sim, "/v1/chat/completions", body)
        assert got == status
        assert says in said


@pytest.mark.parametrize(
    ("body", "rules", "status", "says"),
    [
        (anthropic_body(picture()), None, 200, ""),
        (anthropic_body(noise(1300, 1100)), None, 400, "bytes > 5242880 bytes"),
        (anthropic_body(picture(8001, 2)), None, 400, "exceed max allowed size: 8000 pixels"),
        (anthropic_body(picture(2001, 2), count=21), None, 400, "for many-image requests: 2000 pixels"),
        (anthropic_body(picture(2001, 2), count=20), None, 200, ""),
        (anthropic_body(picture(), "image/jpeg"), None, 400, "appears to be a image/png image"),
        (anthropic_body(picture(), "image/bmp"), None, 400, "media_type: Input should be 'image/jpeg'"),
        (anthropic_body(picture()[:50]), None, 400, "Could not process image"),
        (anthropic_body(""), None, 400, "image cannot be empty"),
        (anthropic_body(picture()), ImageRules(taken=False), 400, "does not support image input"),
    ],
)
async def test_anthropics_refusals(body: dict[str, Any], rules: ImageRules | None, status: int, says: str) -> None:
    async with AnthropicSimulator(images=rules) as sim:
        got, said = await answered(sim, "/v1/messages", body)
        assert got == status
        assert says in said


async def test_a_picture_counts_for_a_fixed_number_of_tokens() -> None:
    async with OpenAISimulator(context_limit=1500) as sim:
        assert (await answered(sim, "/v1/chat/completions", openai_body(noise(100, 100))))[0] == 200


async def test_a_body_above_its_limit_is_refused_with_413() -> None:
    async with AnthropicSimulator(body_limit=1000) as sim:
        assert (await answered(sim, "/v1/messages", anthropic_body(noise(30, 30))))[0] == 413


@pytest.mark.parametrize(
    ("fields", "name", "status"),
    [({"model": "ears"}, "a.ogg", 200), ({}, "a.ogg", 400), ({"model": "ears"}, "a.xyz", 400)],
)
async def test_recordings_need_a_model_and_a_known_format(fields: dict[str, str], name: str, status: int) -> None:
    async with OpenAISimulator() as sim:
        form = aiohttp.FormData(fields)
        form.add_field("file", b"OggS", filename=name)
        async with aiohttp.ClientSession() as http, http.post(f"{sim.base_url}/audio/transcriptions", data=form) as got:
            assert got.status == status
