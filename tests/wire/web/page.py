"""A gateway with the rehearsal behind its page, and a browser's side of the page's HTTP."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.wire.gateway.harness import Gateway, free_port, merged

WITHIN = 20.0
"""Seconds after which something that should have come has not."""


def rehearsing(home: Path, settings: Mapping[str, Any] | None = None) -> Gateway:
    """Not started; no model, no platform but the page."""
    base = {
        "timezone": "UTC",
        "agent": {"retry_base": 0.2, "retry_cap": 1},
        "gateway": {"bind": f"127.0.0.1:{free_port()}", "drain_timeout": 5},
    }
    return Gateway(home, merged(base, settings or {}))


def token_of(gateway: Gateway) -> str:
    """The page's token, as its file holds it."""
    token: str = json.loads((gateway.home / "credentials.json").read_text("utf-8"))["page_token"]
    return token


@dataclass(frozen=True, slots=True)
class Heard:
    """One server-sent event."""

    name: str
    data: dict[str, Any]
    id: str | None = None


@dataclass(slots=True)
class Stream:
    """An open event stream; what it has brought so far is in ``heard``."""

    response: aiohttp.ClientResponse
    heard: list[Heard] = field(default_factory=list)

    async def next(self) -> Heard:
        """The next event. Raises EOFError when the gateway has ended the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(WITHIN):
            while raw := await self.response.content.readline():
                line = raw.decode().rstrip("\n")
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    self.heard.append(Heard(fields["event"], json.loads(fields["data"]), fields.get("id")))
                    return self.heard[-1]
        raise EOFError

    async def until(self, found: Callable[[Heard], bool]) -> Heard:
        """The first event from now on for which ``found`` holds. Raises TimeoutError, signs of life or not."""
        async with asyncio.timeout(WITHIN):
            while not found(event := await self.next()):
                pass
            return event

    async def line(self, text: str) -> Heard:
        """The next stored line that holds ``text``."""
        return await self.until(lambda e: e.name == "line" and text in e.data["text"])

    @property
    def lines(self) -> list[Heard]:
        return [event for event in self.heard if event.name == "line"]


@dataclass(slots=True)
class Page:
    """One browser: its cookies, its Origin."""

    url: str
    session: aiohttp.ClientSession

    @property
    def origin(self) -> dict[str, str]:
        return {"Origin": self.url}

    async def sign_in(self, token: str) -> Self:
        """Raises AssertionError when the token is refused."""
        status, body = await self.post("/api/login", {"token": token})
        assert status == 200, body
        return self

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """Status and JSON."""
        async with self.session.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.json()

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Status and JSON; with our own Origin unless ``headers`` says otherwise."""
        data = body if isinstance(body, bytes) else json.dumps(body)
        sent = self.origin if headers is None else headers
        async with self.session.post(self.url + path, data=data, headers=sent) as answer:
            return answer.status, await answer.json()

    async def say(self, text: str, key: str = "") -> str:
        """Says a line and returns its key. Raises AssertionError unless it was taken."""
        key = key or str(uuid.uuid4())
        status, body = await self.post("/api/say", {"key": key, "text": text})
        assert status == 202, body
        return key

    @asynccontextmanager
    async def events(self, after: str = "", **headers: str) -> AsyncIterator[Stream]:
        """The event stream, from a position on."""
        async with self.session.get(f"{self.url}/api/events?after={after}", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            yield Stream(answer)


@asynccontextmanager
async def browser(gateway: Gateway, *, token: str | None = "") -> AsyncIterator[Page]:
    """A browser, signed in with the gateway's token; with None it has not signed in."""
    jar = aiohttp.CookieJar(unsafe=True)  # keeps the cookies of an address of numbers too
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=WITHIN)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session:
        page = Page(gateway.url, session)
        if token is not None:
            await page.sign_in(token or token_of(gateway))
        yield page
