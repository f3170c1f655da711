"""``clarify``: asks the person and suspends the turn until the answer (R13). The toolbox carries it out."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.errors import ToolError
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import ToolSpec


class Clarify:
    """Only its description: asking is a matter of the turn, not of a call."""

    effect = ToolEffect.ONCE
    spec = ToolSpec(
        "clarify",
        "Ask the person a question when you cannot go on without the answer.",
        {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "options": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["question"],
        },
    )

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        raise ToolError("clarify suspends the turn; it is not run as a call.")
