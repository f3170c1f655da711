"""What of a configuration may be shown: names and harmless values, never a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

SECRET_NAMES = frozenset(
    {
        "token",
        "bot_token",
        "app_token",
        "signing_secret",
        "api_key",
        "api_keys",
        "secret",
        "client_secret",
        "refresh_token",
        "access_token",
        "password",
        "headers",
        "env",
        "authorization",
    }
)
"""Keys whose values, and all values below them, are never printed."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/@ -]{0,63}\Z")
_SECRET_SHAPE = re.compile(
    r"\d{5,}:[\w-]{6,}|\b(sk|pk|rk|ghp|gho|glpat|xox[a-z]|xapp|AIza|eyJ|Bearer)[-_. ]?\w+[-\w.]*"
    r"|[A-Za-z0-9_\-+/=]{24,}"
)
_LONGEST = 60


def looks_secret(text: str) -> bool:
    """True for text in the shape of a token or key."""
    for hit in _SECRET_SHAPE.finditer(text):
        word = hit.group()
        if hit.group(1) or ":" in word or (any(c.isdigit() for c in word) and any(c.isalpha() for c in word)):
            return True
    return False


def show_key(key: str) -> str:
    """A key as printed; one that may be a misplaced secret is only counted."""
    if _NAME.match(key) and not looks_secret(key):
        return key
    return f"<a key of {len(key)} characters>"


def show_path(path: Iterable[str | int]) -> str:
    """``platforms.telegram.allowed_users[2]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{show_key(step)}" if text else show_key(step)
    return text


def show_value(text: str) -> str:
    """A literal value in quotes, shortened; in the shape of a secret or with a password: only counted."""
    if looks_secret(text) or _has_password(text):
        return f"a text of {len(text)} characters"
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return f'"{clean}"' if len(clean) <= _LONGEST else f'"{clean[:_LONGEST]}…"'


def is_secret_path(path: Iterable[str | int]) -> bool:
    """True below any key that holds secrets."""
    return any(isinstance(step, str) and step.lower() in SECRET_NAMES for step in path)


def _has_password(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return "@" in text
    return "@" in parts.netloc or bool(parts.query)
