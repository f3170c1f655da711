"""The page's token: made at first start, kept in ``credentials.json`` (0600), never in the store (R38, R40)."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from hermes.core.errors import ForeignHome

KEY = "page_token"


def load_or_make(home: Path) -> str:
    """The home's page token. Raises ForeignHome when credentials.json is not ours to change."""
    path = home / "credentials.json"
    try:
        kept = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        kept = {}
    except (ValueError, OSError) as error:
        raise ForeignHome(f"{path} cannot be read: {error}; move it away to have a new one made") from error
    if not isinstance(kept, dict):
        raise ForeignHome(f"{path} is not a JSON object; move it away to have a new one made")
    token = kept.get(KEY)
    if isinstance(token, str) and len(token) >= 32:
        return token
    token = secrets.token_urlsafe(32)
    _write(path, {**kept, KEY: token})
    return token


def _write(path: Path, content: dict[str, object]) -> None:
    """Whole or not at all: a new file, flushed, then renamed over the old one."""
    new = path.with_suffix(".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def page_url(bind_host: str, port: int, token: str) -> str:
    """The address to open; the token stands in the fragment, which browsers send to nobody."""
    host = "127.0.0.1" if bind_host in ("0.0.0.0", "::", "") else bind_host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/#token={token}"
