"""Who may use the page (R38): a token once, then a cookie; matching Host and Origin always.

The token is in the fragment of the printed URL, so no server log and no Referer ever holds it; the page
sends it once and gets a cookie that proves it. The cookie is ``issued.signature``, signed with the token:
it survives a restart and ends when the token is replaced. Its name is the home's own, for browsers share
cookies among all ports of a host: two gateways on one machine would sign each other's page out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class PageAuth:
    """``token``: the page's secret. ``cookie_age`` in seconds. ``allowed_hosts``: names beside loopback."""

    token: str
    cookie_age: float
    allowed_hosts: frozenset[str]

    @property
    def cookie_name(self) -> str:
        """The same for one home at every start; says nothing of the token."""
        return f"hermes_{self._sign('name')[:12]}"

    def token_is_right(self, given: str) -> bool:
        """In constant time."""
        return hmac.compare_digest(_octets(given), _octets(self.token))

    def cookie(self, now: float) -> str:
        """A fresh cookie value."""
        issued = str(int(now))
        return f"{issued}.{self._sign(issued)}"

    def cookie_is_right(self, value: str | None, now: float) -> bool:
        """Whether a cookie was signed with our token and is young enough."""
        issued, _, signature = (value or "").partition(".")
        if not (issued.isascii() and issued.isdigit() and len(issued) < 16):
            return False
        fresh = now - self.cookie_age <= int(issued) <= now + 60.0
        return fresh and hmac.compare_digest(_octets(signature), _octets(self._sign(issued)))

    def is_signed_in(self, cookies: Mapping[str, str], authorization: str | None, now: float) -> bool:
        """By cookie (a browser) or by ``Authorization: Bearer TOKEN`` (a scraper)."""
        if authorization is not None and authorization.startswith("Bearer "):
            return self.token_is_right(authorization.removeprefix("Bearer ").strip())
        return self.cookie_is_right(cookies.get(self.cookie_name), now)

    def host_is_ours(self, host: str | None) -> bool:
        """Whether a Host header names us: else a foreign page has its name point at us (DNS rebinding)."""
        try:
            name = urlsplit(f"//{host or ''}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        return name in LOOPBACK_NAMES or any(name == allowed.lower() for allowed in self.allowed_hosts)

    def origin_is_ours(self, origin: str | None, host: str | None) -> bool:
        """Whether a state-changing call comes from our own page."""
        if not origin or not host:
            return False
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def _sign(self, issued: str) -> str:
        return hmac.new(self.token.encode(), f"hermes-page:{issued}".encode(), hashlib.sha256).hexdigest()


def _octets(text: str) -> bytes:
    """Total: what comes from outside may hold lone surrogates."""
    return text.encode("utf-8", "surrogatepass")
