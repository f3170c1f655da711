"""R38: who is let in, by which name, from which page; and what an answer never holds."""

from __future__ import annotations

import time
from http.cookies import SimpleCookie

import pytest

from hermes.web.auth import PageAuth
from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import Page, browser, token_of

pytestmark = pytest.mark.wire

OPEN = ("/healthz", "/readyz", "/startupz", "/", "/static/app.js", "/static/style.css", "/static/icon.svg")
CLOSED = ("/metrics", "/api/health", "/api/recent", "/api/events", "/api/nothing", "/nothing")
CHANGING = ("/api/login", "/api/say", "/api/stop")
LINE = {"key": "0123456789abcdef", "text": "from elsewhere"}
FAR = 10 * 365 * 86_400.0


async def _status(page: Page, path: str, **headers: str) -> int:
    async with page.session.get(page.url + path, headers=headers) as answer:
        return answer.status


def _cookie(gateway: Gateway, issued: float, token: str | None = None) -> str:
    auth = PageAuth(token_of(gateway), FAR, frozenset())
    signing = auth if token is None else PageAuth(token, FAR, frozenset())
    return f"{auth.cookie_name}={signing.cookie(issued)}"


@pytest.mark.parametrize("path", OPEN)
async def test_probes_and_the_empty_page_need_no_token(gateway: Gateway, path: str) -> None:
    async with browser(gateway, token=None) as stranger:
        assert await _status(stranger, path) == 200


@pytest.mark.parametrize("path", CLOSED)
async def test_everything_else_needs_one(gateway: Gateway, path: str) -> None:
    async with browser(gateway, token=None) as stranger:
        status, body = await stranger.get(path)
        assert status == 401
        assert "hermes status --page-url" in body["error"]


@pytest.mark.parametrize("path", ["/api/say", "/api/stop"])
async def test_a_stranger_changes_nothing(gateway: Gateway, path: str) -> None:
    async with browser(gateway, token=None) as stranger:
        assert (await stranger.post(path, LINE))[0] == 401
    async with browser(gateway) as owner:
        assert all(line["text"] != LINE["text"] for line in (await owner.get("/api/recent"))[1]["lines"])


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "\ud800", None, 7, ["x"], {"x": 1}])
async def test_a_wrong_token_opens_nothing_and_gives_no_cookie(gateway: Gateway, token: object) -> None:
    async with browser(gateway, token=None) as stranger:
        status, body = await stranger.post("/api/login", {"token": token})
        assert status == 401
        assert "page-url" in body["error"]
        assert not list(stranger.session.cookie_jar)


async def test_the_cookie_is_for_this_host_alone_and_no_script_reads_it(gateway: Gateway) -> None:
    async with browser(gateway, token=None) as page:
        body = {"token": token_of(gateway)}
        async with page.session.post(f"{page.url}/api/login", json=body, headers=page.origin) as answer:
            [cookie] = SimpleCookie(answer.headers["Set-Cookie"]).values()
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert not cookie["domain"]
    assert not cookie["secure"]  # plain http on the loopback; with an Origin of https it is set


async def test_a_session_behind_tls_has_a_secure_cookie(gateway: Gateway) -> None:
    async with browser(gateway, token=None) as page:
        host = page.url.removeprefix("http://")
        body = {"token": token_of(gateway)}
        origin = {"Origin": f"https://{host}"}
        async with page.session.post(f"{page.url}/api/login", json=body, headers=origin) as answer:
            assert "; Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("age", "status"), [(0.0, 200), (86_400.0, 200), (40 * 86_400.0, 401), (-3600.0, 401)]
)
async def test_a_cookie_ends_with_its_age(gateway: Gateway, age: float, status: int) -> None:
    async with browser(gateway, token=None) as page:
        cookie = _cookie(gateway, time.time() - age)
        assert await _status(page, "/api/health", Cookie=cookie) == status


async def test_a_cookie_signed_with_another_token_is_refused(gateway: Gateway) -> None:
    async with browser(gateway, token=None) as page:
        forged = _cookie(gateway, time.time(), "another-token")
        assert await _status(page, "/api/health", Cookie=forged) == 401


@pytest.mark.parametrize("value", ["", ".", "1.", ".x", "1.2.3", "9" * 30 + ".x", "١.x", "-1.x", '"'])
async def test_a_malformed_cookie_is_refused(gateway: Gateway, value: str) -> None:
    name = PageAuth(token_of(gateway), FAR, frozenset()).cookie_name
    async with browser(gateway, token=None) as page:
        assert await _status(page, "/api/health", Cookie=f"{name}={value}") == 401


async def test_a_scraper_reads_the_metrics_with_a_bearer_token(gateway: Gateway) -> None:
    async with browser(gateway, token=None) as scraper:
        assert await _status(scraper, "/metrics", Authorization=f"Bearer {token_of(gateway)}") == 200
        assert await _status(scraper, "/metrics", Authorization="Bearer wrong") == 401
        assert await _status(scraper, "/metrics", Authorization=f"Basic {token_of(gateway)}") == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::", "a@b"]
)
@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/health", "/api/events", "/metrics"])
async def test_a_name_that_is_not_ours_is_refused(gateway: Gateway, host: str, path: str) -> None:
    """DNS rebinding: a foreign page has its own name point at the loopback."""
    async with browser(gateway) as owner:
        assert await _status(owner, path, Host=host) in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1", "[::1]:8642", "LOCALHOST"])
async def test_the_loopback_by_any_of_its_names_is_ours(gateway: Gateway, host: str) -> None:
    async with browser(gateway, token=None) as page:
        assert await _status(page, "/", Host=host) == 200


@pytest.mark.parametrize("path", CHANGING)
@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://", "x"]
)
async def test_a_call_that_changes_something_comes_from_our_own_page(
    gateway: Gateway, path: str, origin: str | None
) -> None:
    async with browser(gateway) as owner:
        headers = {} if origin is None else {"Origin": origin}
        status, body = await owner.post(path, {**LINE, "token": token_of(gateway)}, headers)
        assert status == 403, body
        assert all(line["text"] != LINE["text"] for line in (await owner.get("/api/recent"))[1]["lines"])


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/api/recent", "/api/events", "/metrics"])
async def test_a_page_of_another_port_cannot_have_the_browser_ask(
    gateway: Gateway, site: str, path: str
) -> None:
    """Cookies know no ports: SameSite lets http://localhost:3000 through."""
    async with browser(gateway) as owner:
        assert await _status(owner, path, **{"Sec-Fetch-Site": site}) == 403


@pytest.mark.parametrize(
    "path", ["/", "/static/app.js", "/api/health", "/api/nothing", "/healthz", "/api/events"]
)
async def test_every_answer_carries_the_security_headers(gateway: Gateway, path: str) -> None:
    async with (
        browser(gateway) as owner,
        owner.session.get(owner.url + path) as answer,
    ):
        policy = answer.headers.get("Content-Security-Policy", "")
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "no-" in answer.headers["Cache-Control"]
        assert not any(name.startswith("Access-Control") for name in answer.headers)


async def test_no_answer_and_no_log_line_holds_the_token(gateway: Gateway) -> None:
    token = token_of(gateway)
    async with browser(gateway) as owner:
        await owner.say(f"my token is not in your answers: {token[:4]}")
        for path in (*OPEN, "/metrics", "/api/health", "/api/recent", "/api/nothing"):
            async with owner.session.get(owner.url + path) as answer:
                assert token not in f"{await answer.text()} {dict(answer.headers)}", path
        for body in ({"token": token[:-1]}, {"token": token + "x"}):
            _, refused = await owner.post("/api/login", body)
            assert token[:-1] not in str(refused)
    assert token not in gateway.log_text()
    assert token[:-1] not in gateway.log_text()
