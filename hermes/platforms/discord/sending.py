"""One operation on Discord, once; a create never makes a second message (R18).

A create carries a nonce that Discord enforces for "the past few minutes": repeated, it answers with the message
that was made. Later than that the message is looked for in the channel's history first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hermes.core.delivery import MARK_PREFIX, Operation, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.ports import Outgoing, Receipt
from hermes.platforms.discord.calls import Call, call_of, channel_of, content_of, nonce_of
from hermes.platforms.discord.failures import FailureReader
from hermes.platforms.discord.fields import mappings
from hermes.platforms.discord.history import History
from hermes.platforms.discord.rest import Rest
from hermes.platforms.outfiles import file_of, upload_seconds

NONCE_TRUST = 60.0
"""Seconds for which Discord surely knows a nonce."""


class Sends:
    """``limit``: seconds for one answer. ``wall`` gives unix seconds."""

    def __init__(
        self, rest: Rest, failures: FailureReader, history: History, limit: float, wall: Callable[[], float]
    ) -> None:
        self._rest = rest
        self._failures = failures
        self._history = history
        self._limit = limit
        self._wall = wall

    async def send(self, outgoing: Outgoing, account: str, salt: str) -> Receipt:
        """``salt`` makes our nonces differ from another store's. Raises PlatformFailure."""
        channel = channel_of(outgoing.address)
        if outgoing.operation is Operation.CREATE and self._is_old(outgoing):
            made, outgoing = await self._look(outgoing, channel, account)
            if made is not None:
                return made
        answer = await self._call(call_of(outgoing, nonce_of(salt, channel, outgoing.nonce)), outgoing)
        if outgoing.operation is not Operation.CREATE:
            return Receipt(outgoing.message_ref or "")
        if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
            raise PlatformFailure(self._failures.garbage("create"))
        return await self._made(outgoing, answer, channel)

    def _is_old(self, outgoing: Outgoing) -> bool:
        since = outgoing.since
        return outgoing.marked or (since is not None and self._wall() - since > NONCE_TRUST)

    async def _look(
        self, outgoing: Outgoing, channel: str, account: str
    ) -> tuple[Receipt | None, Outgoing]:
        """The message if it was made; else the row as it is to be sent: without mark where that is certain."""
        if outgoing.since is None:
            return None, outgoing
        try:
            ours, whole = await self._history.ours(channel, account, outgoing.since)
        except PlatformFailure as failure:
            if failure.facts.sent is not Sent.REFUSED:
                raise
            return None, outgoing  # no right to read there: the mark and the nonce have to do
        unmarked = replace(outgoing, marked=False)
        wanted = content_of(unmarked)["content"].strip()
        for message in ours:
            shown = str(message.get("content", "")).removeprefix(MARK_PREFIX).strip()
            if _carries(message, outgoing) if outgoing.content is not None else shown and wanted == shown:
                return Receipt(str(message["id"])), outgoing
        return None, unmarked if whole else outgoing

    async def _made(self, outgoing: Outgoing, answer: dict[str, Any], channel: str) -> Receipt:
        """The created message. For a nonce that Discord knew it is an earlier one, perhaps with other words."""
        wanted = content_of(replace(outgoing, marked=False))
        shown = str(answer.get("content", "")).removeprefix(MARK_PREFIX).strip()
        if shown != wanted["content"].strip():
            path = f"/channels/{channel}/messages/{answer['id']}"
            await self._call(Call("PATCH", path, {"components": [], **wanted}, ("edit", channel)))
        return Receipt(answer["id"])

    async def _call(self, call: Call, outgoing: Outgoing | None = None) -> Any:
        file = file_of(outgoing) if outgoing is not None else None
        more = upload_seconds(outgoing) if outgoing is not None else 0.0
        files = [(file.name, file.content)] if file is not None else []
        request = self._rest.call(call.method, call.path, body=call.body, route=call.route, files=files)
        return await self._failures.guard(call.route[0], request, 2 * self._limit + more)


def _carries(message: Mapping[str, Any], outgoing: Outgoing) -> bool:
    """Whether a message of ours is this file; Discord changes names, never sizes."""
    size = len(outgoing.content or b"")
    return [one.get("size") for one in mappings(message.get("attachments"))] == [size]
