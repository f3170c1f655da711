"""The HTTP entrance on ``gateway.bind``: probes for everybody, the page for its owner (R38)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from hermes.core.clock import Clock
from hermes.core.door import FrontDoor, Health
from hermes.core.errors import HermesError, StoreUnavailable
from hermes.runtime.logs import get_logger
from hermes.web.auth import PageAuth
from hermes.web.hooks import PREFIX, Hooks
from hermes.web.stream import line_dict, serve_events
from hermes.web.uploads import described, file_dict, files_of, receive

log = get_logger(__name__)

STATIC = Path(__file__).parent / "static"
CHAT = "page"
BODY_SECONDS = 20.0
"""A body that takes longer to arrive is refused: it would hold its connection."""

MOST_UPLOADS = 4
"""Files on their way at one time: each is in memory until it is whole."""

ESCAPE_FACTOR = 6
"""JSON may write one byte of text as six."""

KEY = re.compile(r"[0-9A-Za-z-]{8,80}")
PUBLIC = frozenset({"/healthz", "/readyz", "/startupz"})
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(slots=True)
class WebSettings:
    """Live limits of the page; bytes and seconds."""

    page: bool = True
    max_message_bytes: int = 64 * 1024
    max_streams: int = 64
    heartbeat: float = 15.0
    max_upload_bytes: int = 20 * 2**20


class WebServer:
    """Serves until ``aclose``."""

    def __init__(
        self,
        door: FrontDoor,
        auth: PageAuth,
        clock: Clock,
        settings: WebSettings,
        health_dict: Callable[[Health], dict[str, object]],
        hooks: Hooks | None = None,
    ) -> None:
        self._door = door
        self._auth = auth
        self._clock = clock
        self.settings = settings
        self._health_dict = health_dict
        self._hooks = hooks or Hooks()
        self._streams = 0
        self._uploads = 0
        self._static = _load_static()
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Raises OSError when the address cannot be bound."""
        app = web.Application(middlewares=[self._guard])
        app.on_response_prepare.append(_protect)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/startupz", self._startupz)
        app.router.add_get("/metrics", self._metrics)
        self._hooks.add_to(app.router)
        app.router.add_get("/", self._page)
        app.router.add_get("/static/{name}", self._static_file)
        app.router.add_post("/api/login", self._login)
        app.router.add_get("/api/health", self._health)
        app.router.add_get("/api/recent", self._recent)
        app.router.add_get("/api/events", self._events, allow_head=False)
        app.router.add_post("/api/say", self._say)
        app.router.add_post("/api/upload", self._upload)
        app.router.add_post("/api/stop", self._stop)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        server = site._server
        sockets = getattr(server, "sockets", None) or []
        self.port = sockets[0].getsockname()[1] if sockets else port

    def reconfigure(self, settings: WebSettings, cookie_age: float, allowed_hosts: frozenset[str]) -> None:
        """In force from the next call on (R42); open streams go on."""
        self.settings = settings
        self._auth = replace(self._auth, cookie_age=cookie_age, allowed_hosts=allowed_hosts)

    async def aclose(self) -> None:
        """Calls under way get a second; the door has told the event streams to end. Idempotent."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            response = await handler(request)
        except web.HTTPRequestEntityTooLarge:
            response = self._too_long()
        except web.HTTPException as error:
            response = _problem(error.status, error.reason)
        except StoreUnavailable as error:
            log.error("page_store_unavailable", error=str(error))
            response = _problem(503, "the store does not take anything at the moment; try again in a minute")
        except HermesError as error:
            response = _problem(503, str(error))
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        """None when the call may go on; probes need neither token nor name, and a platform signs its calls."""
        if request.path in PUBLIC or request.path.startswith(PREFIX):
            return None
        host = request.headers.get("Host")
        if not self._auth.host_is_ours(host):
            return _problem(421, "unknown host name; add it to gateway.allowed_hosts if it is yours")
        if request.method not in ("GET", "HEAD") and not self._auth.origin_is_ours(
            request.headers.get("Origin"), host
        ):
            return _problem(403, "the Origin header does not match: this call comes from another page")
        if request.path == "/" or request.path.startswith("/static/"):
            return None
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return _problem(403, "this call comes from another page")
        if request.path == "/api/login":
            return None
        authorization = request.headers.get("Authorization")
        if not self._auth.is_signed_in(request.cookies, authorization, self._clock.now()):
            return _problem(401, "open the page by the URL that `hermes status --page-url` prints")
        return None

    # ---- probes ----

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.json_response({"alive": self._door.alive()})

    async def _readyz(self, request: web.Request) -> web.Response:
        health = await self._door.health()
        body = {"ready": not health.not_ready, "reasons": list(health.not_ready)}
        return web.json_response(body, status=503 if health.not_ready else 200)

    async def _startupz(self, request: web.Request) -> web.Response:
        health = await self._door.health()
        return web.json_response({"started": health.started}, status=200 if health.started else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._door.metrics(), headers={"Content-Type": "text/plain; version=0.0.4"})

    # ---- page ----

    async def _page(self, request: web.Request) -> web.Response:
        if not self.settings.page:
            raise web.HTTPNotFound(reason="the page is switched off (platforms.web.enabled: false)")
        return self._file("index.html")

    async def _static_file(self, request: web.Request) -> web.Response:
        return self._file(request.match_info["name"])

    def _file(self, name: str) -> web.Response:
        found = self._static.get(name)
        if found is None:
            raise web.HTTPNotFound(reason="no such file")
        body, kind = found
        return web.Response(
            body=body, headers={"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-cache"}
        )

    async def _login(self, request: web.Request) -> web.Response:
        body = await self._json(request)
        if not self._auth.token_is_right(str(body.get("token", ""))):
            log.warning("page_login_refused", remote=request.remote)
            return _problem(
                401, "this token is not valid; `hermes status --page-url` prints the right address"
            )
        response = web.json_response({"ok": True})
        response.set_cookie(
            self._auth.cookie_name,
            self._auth.cookie(self._clock.now()),
            max_age=int(self._auth.cookie_age),
            httponly=True,
            samesite="Strict",
            path="/",
            secure=request.headers.get("Origin", "").startswith(
                "https:"
            ),  # also behind a proxy that ends TLS
        )
        return response

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response(self._health_dict(await self._door.health()))

    async def _recent(self, request: web.Request) -> web.Response:
        lines = await self._door.recent(CHAT, 100)
        return web.json_response({"lines": [line_dict(line) for line in lines]})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self._streams >= self.settings.max_streams:
            raise web.HTTPServiceUnavailable(
                reason="too many open pages; close one (platforms.web.max_streams)"
            )
        position = request.headers.get("Last-Event-ID") or request.query.get("after", "")
        self._streams += 1
        try:
            return await serve_events(request, self._door, CHAT, position, self.settings.heartbeat)
        finally:
            self._streams -= 1

    async def _say(self, request: web.Request) -> web.Response:
        body = await self._json(request)
        key, text = _key(body), body.get("text")
        files = files_of(body)
        if not isinstance(text, str) or not (text.strip() or files):
            return _problem(400, "text: a message that is not empty is needed")
        if len(text.encode("utf-8", "surrogatepass")) > self.settings.max_message_bytes:
            return self._too_long()
        said = await self._door.say(CHAT, key, text, files)
        return web.json_response({"id": said.inbox_id, "duplicate": said.duplicate}, status=202)

    async def _upload(self, request: web.Request) -> web.Response:
        if self._uploads >= MOST_UPLOADS:
            return _problem(503, f"{MOST_UPLOADS} files are on their way already; try again in a moment")
        self._uploads += 1
        try:
            content = await receive(request, self.settings.max_upload_bytes)
        except web.HTTPRequestEntityTooLarge:
            limit = self.settings.max_upload_bytes
            return _problem(413, f"the file is larger than {limit} bytes (platforms.web.max_upload_bytes)")
        finally:
            self._uploads -= 1
        file = described(request, "", len(content))
        sha256 = await self._door.keep_file(content, file.mime or "")
        return web.json_response({"file": file_dict(replace(file, ref=sha256))}, status=201)

    async def _stop(self, request: web.Request) -> web.Response:
        said = await self._door.say(CHAT, _key(await self._json(request)), "/stop")
        return web.json_response({"id": said.inbox_id, "duplicate": said.duplicate}, status=202)

    async def _json(self, request: web.Request) -> dict[str, Any]:
        """The body, an object. Raises HTTPException for anything else, too much or too slow."""
        most = self.settings.max_message_bytes * ESCAPE_FACTOR + 1024
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = json.loads(await request.clone(client_max_size=most).text())
        except TimeoutError:
            raise web.HTTPRequestTimeout(reason="the body did not arrive in time") from None
        except (ValueError, LookupError, RecursionError):
            raise web.HTTPBadRequest(reason="the body is not JSON") from None
        if not isinstance(body, dict):
            raise web.HTTPBadRequest(reason="the body is not a JSON object")
        return body

    def _too_long(self) -> web.Response:
        limit = self.settings.max_message_bytes
        return _problem(413, f"the message is longer than {limit} bytes (platforms.web.max_message_bytes)")


def _problem(status: int, sentence: str) -> web.Response:
    return web.json_response({"error": sentence}, status=status)


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    """On every answer, streams included."""
    response.headers.update(SECURITY_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")


def _key(body: dict[str, Any]) -> str:
    key = body.get("key")
    if not isinstance(key, str) or KEY.fullmatch(key) is None:
        raise web.HTTPBadRequest(reason="key: a UUID made by the page is needed")
    return key


def _load_static() -> dict[str, tuple[bytes, str]]:
    return {
        path.name: (path.read_bytes(), _TYPES[path.suffix])
        for path in STATIC.iterdir()
        if path.suffix in _TYPES
    }
