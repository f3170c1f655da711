"""Pressed buttons and given commands: what tells their person that they were heard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermes.platforms.discord.failures import FailureReader
from hermes.platforms.discord.rest import Rest, segment

ANSWER_LIMIT = 2.0  # seconds; Discord gives three
COMPONENT, COMMAND = 3, 2
_DEFERRED_UPDATE, _MESSAGE, _EPHEMERAL = 6, 4, 1 << 6


@dataclass(frozen=True, slots=True)
class Pressed:
    """An interaction that waits for an answer: where, and of which kind. Its token is kept in memory only."""

    path: str
    kind: int

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Pressed:
        number, token = segment(str(data.get("id"))), segment(str(data.get("token")))
        kind = data.get("type")
        return cls(f"/interactions/{number}/{token}/callback", kind if isinstance(kind, int) else 0)

    async def answer(self, rest: Rest, failures: FailureReader) -> None:
        """A component is left as it is; a command is told, to its person alone, that it was heard.

        Raises PlatformFailure.
        """
        body: dict[str, Any] = {"type": _DEFERRED_UPDATE}
        if self.kind != COMPONENT:
            body = {"type": _MESSAGE, "data": {"content": "✓", "flags": _EPHEMERAL}}
        said = rest.call("POST", self.path, body=body, route=("callback", self.path), authorised=False)
        await failures.guard("callback", said, ANSWER_LIMIT)
