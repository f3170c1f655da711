"""/compress: the conversation's older part is summarised now (R36)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.core.clock import Clock
from hermes.core.principals import PrincipalId
from hermes.gateway.commands import CommandCall, CommandSpec

Compress = Callable[[CommandCall, PrincipalId, float], Awaitable[str]]
"""Does it for a principal by a deadline (monotonic), and tells what was done."""


def compress_command(compress: Compress, clock: Clock, seconds: Callable[[], float]) -> CommandSpec:
    """For the registry; ``seconds``: how long it may take."""

    async def run(call: CommandCall) -> str:
        principal = call.row.principal_id
        if principal is None:
            return "There is nothing to compress yet."
        return await compress(call, principal, clock.monotonic() + seconds())

    return CommandSpec("compress", "WORDS – summarise the older part now, above all what concerns these", run)
