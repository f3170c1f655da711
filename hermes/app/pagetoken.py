"""The page's token: made at first start, kept in ``credentials.json`` (0600), never in the store (R38, R40)."""

from __future__ import annotations

import secrets


def new_token() -> str:
    """256 bits, safe in a URL."""
    return secrets.token_urlsafe(32)


def page_url(bind_host: str, port: int, token: str) -> str:
    """The address to open; the token stands in the fragment, which browsers send to nobody."""
    host = "127.0.0.1" if bind_host in ("0.0.0.0", "::", "") else bind_host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/#token={token}"
