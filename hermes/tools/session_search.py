"""``session_search``: what was said before, in any of the person's conversations (R37: never in others')."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from hermes.core.errors import ToolError
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.stores import Sessions
from hermes.core.transcript import AssistantItem, ToolSpec

MAX_RESULTS = 10
MAX_CHARS = 500


class SessionSearch:
    """Full-text search, filtered by principal inside the store."""

    effect = ToolEffect.PURE
    spec = ToolSpec(
        "session_search",
        "Search earlier conversations with this person.",
        {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    )

    def __init__(self, sessions: Sessions, zone: tzinfo = UTC) -> None:
        self._sessions = sessions
        self._zone = zone

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ToolError("The argument 'query' is missing: say which words to look for.")
        found = await self._sessions.search(context.principal_id, query, MAX_RESULTS)
        lines = []
        for message in found:
            who = "you" if isinstance(message.item, AssistantItem) else "the person"
            at = datetime.fromtimestamp(message.created_at, self._zone)
            lines.append(f"[{at:%Y-%m-%d %H:%M}] {who}: {message.item.text[:MAX_CHARS]}")
        return "\n".join(lines) or "Nothing was found."
