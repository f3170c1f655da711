"""Secrets leave no trace in what the process prints (R40)."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
SHORTEST = 6
"""Shorter secrets are ignored: their letters stand in innocent words."""

WELL_KNOWN: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Telegram bot token, also inside a URL; the bot's number before the colon is public and stays.
    (":", re.compile(r"(?<=\d{6}):[\w-]{30,}")),
    ("%3", re.compile(r"(?<=\d{6})%3[Aa][\w-]{30,}")),
    # Discord bot token; its first part is the bot's public number.
    (".", re.compile(r"(?<=[\w-]{23})\.[\w-]{6}\.[\w-]{27,}")),
    ("sk-", re.compile(r"\bsk-[\w-]{16,}")),  # OpenAI, Anthropic, OpenRouter
    ("xox", re.compile(r"\bxox[abeprs]-[\w-]{8,}")),  # Slack
    ("xapp-", re.compile(r"\bxapp-\d-[\w-]{8,}")),  # Slack, app level
    ("earer ", re.compile(r"(?<=earer )[\w.~+/=-]{8,}")),
)
"""Tokens known by their shape, for those that nobody registered; each with a text that must be there.

Each begins with fixed characters, for which the engine can scan: one alternation costs ten times as much.
"""


class Redactor:
    """Replaces registered secrets, in all forms in which they commonly appear, by `[redacted]`.

    Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: set[str] = set()
        self._forms: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None

    def register(self, secret: str) -> None:
        """From now on `secret` is hidden as it is and URL-quoted, escaped, or inside any base64 text.

        Secrets shorter than SHORTEST characters and those known already are ignored.
        """
        secret = secret.strip()
        if len(secret) < SHORTEST:
            return
        with self._lock:
            if secret in self._secrets:
                return
            self._secrets.add(secret)
            forms = {*self._forms, *_forms(secret)}
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
            self._pattern = None

    def redact(self, text: str) -> str:
        """`text` without the secrets; the same object where there is none."""
        # A substring search is many times cheaper than an alternation of all forms.
        forms = self._forms
        if any(form in text for form in forms):
            text = self._compiled().sub(MARK, text)
        for hint, pattern in WELL_KNOWN:
            if hint in text:
                text = pattern.sub(MARK, text)
        return text

    def _compiled(self) -> re.Pattern[str]:
        with self._lock:
            if self._pattern is None:
                self._pattern = re.compile("|".join(map(re.escape, self._forms)))
            return self._pattern


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    for ascii_only in (True, False):
        escaped = secret
        for _ in range(3):  # JSON inside of JSON, as in a request's body, inside of the log's own line
            escaped = json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped
    yield repr(secret)[1:-1]
    data = secret.encode("utf-8", "surrogatepass")
    yield repr(data)[2:-1]
    yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterator[str]:
    """The characters that depend on `data` alone, for each of the three places it may have in a group."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode("ascii")
        first = (0, 2, 3)[before]
        last = (before + len(data)) * 8 // 6
        text = encoded[first:last]
        if len(text) >= SHORTEST:
            yield text
            yield text.replace("+", "-").replace("/", "_")
