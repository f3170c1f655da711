"""Addresses at which platforms call us: ``POST /hooks/NAME``. Whoever calls proves nothing by being heard (R38).

The platform's own adapter checks the signature before anything of the body is believed; here only the size, the time
and the number of requests are bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from hermes.core.door import Called, IsCalled

PREFIX = "/hooks/"
MOST_BYTES = 1 << 20
MOST_AT_ONCE = 128
BODY_SECONDS = 10.0

Find = Callable[[str], IsCalled | None]


class Hooks:
    """``find`` names the platform that is called; ``on_answer`` is told of each answer's platform and status."""

    def __init__(
        self, find: Find = lambda name: None, on_answer: Callable[[str, int], None] = lambda name, status: None
    ) -> None:
        self.find = find
        self._on_answer = on_answer
        self._open = 0

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Adds the route."""
        router.add_post(f"{PREFIX}{{platform}}", self._called)

    async def _called(self, request: web.Request) -> web.Response:
        name = request.match_info["platform"]
        platform = self.find(name)
        if platform is None:
            return web.Response(status=404)
        if self._open >= MOST_AT_ONCE:
            return web.Response(status=503)
        self._open += 1
        try:
            headers = {key.lower(): value for key, value in request.headers.items()}
            answer = await platform.called(Called(headers, await _body(request)))
        finally:
            self._open -= 1
        self._on_answer(name, answer.status)
        return web.Response(status=answer.status, text=answer.text)


async def _body(request: web.Request) -> bytes:
    """Raises HTTPException for too much or too slow."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.clone(client_max_size=MOST_BYTES).read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="the body did not arrive in time") from None
