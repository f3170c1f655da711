"""The bot's application commands: what Discord shows when somebody types a slash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.core.ports import MenuEntry
from hermes.platforms.discord.fields import mappings

MOST = 100  # application commands of an application
DESCRIPTION = 100  # characters of one's description
_NAME = re.compile(r"[a-z0-9_-]{1,32}\Z")


def application_commands(entries: Sequence[MenuEntry]) -> list[dict[str, Any]]:
    """The commands as Discord takes them; each may be given a text, as a written one may.

    Names that Discord would refuse are left out: one of them would have the whole list refused.
    """
    option = {"type": 3, "name": "text", "description": "what goes with it", "required": False}
    return [
        {"name": entry.name, "type": 1, "description": _described(entry.help), "options": [option]}
        for entry in entries
        if _NAME.match(entry.name)
    ][:MOST]


def _described(help_text: str) -> str:
    text = " ".join(help_text.split()) or "a command"
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 1] + "…"


def fingerprint(commands: object) -> str:
    """The same for lists that show the same, whatever Discord adds to them."""
    shown = sorted(_shown(one) for one in mappings(commands))
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def _shown(command: Mapping[str, Any]) -> list[str]:
    options = [
        f"{one.get('type')} {one.get('name')} {one.get('description')}" for one in mappings(command.get("options"))
    ]
    return [str(command.get("name")), str(command.get("description")), *options]
