"""Reading Discord's past: a channel's messages since a mark, one message's files, what a channel is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure
from hermes.platforms.discord.failures import FailureReader
from hermes.platforms.discord.fields import first_id_at, is_snowflake, mappings
from hermes.platforms.discord.rest import Rest

PAGE = 100
AUTHORS = 50
SKEW = 5.0  # seconds our clock may be ahead of Discord's
RETRY = 5.0  # seconds after which a history that was refused is asked for again


class History:
    """``limit``: seconds for one answer. ``wait``: how long a refused history is to be left alone."""

    def __init__(self, rest: Rest, failures: FailureReader, limit: float) -> None:
        self._rest = rest
        self._failures = failures
        self._limit = limit
        self.wait = 0.0
        self.skipped = 0
        """Messages left out because there were more than the bound, or they were too old; at least."""

    async def since(
        self, channel: str, mark: int, oldest: float, most: int
    ) -> list[Mapping[str, Any]] | None:
        """The newest ``most`` messages after ``mark`` and not made before ``oldest`` (unix seconds), oldest first.

        None when Discord refuses; raises PlatformFailure when it does not answer.
        """
        after, found = max(mark, first_id_at(oldest)), list[Mapping[str, Any]]()
        query = {"limit": str(PAGE)}
        while len(found) < most:
            page = await self._page(channel, query)
            if page is None:
                return None
            newer = [one for one in page if int(one["id"]) > after]
            found += newer
            if len(newer) < PAGE:
                break
            query = {"limit": str(PAGE), "before": newer[-1]["id"]}
        found.sort(key=lambda one: int(one["id"]))
        self.skipped += max(0, len(found) - most)
        return found[-most:] if most else []

    async def _page(self, channel: str, query: Mapping[str, str]) -> list[Mapping[str, Any]] | None:
        """Newest first."""
        try:
            answer = await self._get(f"/channels/{channel}/messages", ("history", channel), query)
        except PlatformFailure as failure:
            if not _is_refusal(failure.facts):
                raise
            self.wait = failure.facts.retry_after or RETRY
            return None
        if not isinstance(answer, list):
            raise PlatformFailure(self._failures.garbage("history"))
        return [one for one in answer if isinstance(one, dict) and is_snowflake(one.get("id"))]

    async def ours(self, channel: str, account: str, since: float) -> tuple[list[Mapping[str, Any]], bool]:
        """The bot's messages made since then (unix seconds), newest first, and whether these are all.

        Raises PlatformFailure when Discord does not answer, or refuses.
        """
        answer = await self._get(
            f"/channels/{channel}/messages", ("history", channel), {"limit": str(PAGE)}
        )
        if not isinstance(answer, list):
            raise PlatformFailure(self._failures.garbage("history"))
        page: list[Mapping[str, Any]] = [
            one for one in answer if isinstance(one, dict) and is_snowflake(one.get("id"))
        ]
        first = first_id_at(since - SKEW)
        found = [
            one for one in page
            if int(one["id"]) >= first and isinstance(one.get("author"), dict) and one["author"].get("id") == account
        ]
        whole = len(page) < PAGE or int(page[-1]["id"]) < first
        return found, whole

    async def channel(self, channel: str) -> Mapping[str, Any] | None:
        """The channel object; None when Discord refuses it. Raises PlatformFailure when it does not answer."""
        try:
            answer = await self._get(f"/channels/{channel}", ("channel", channel))
        except PlatformFailure as failure:
            if not _is_refusal(failure.facts):
                raise
            return None
        return answer if isinstance(answer, dict) else None

    async def members(
        self, guild: str, messages: Sequence[Mapping[str, Any]]
    ) -> dict[str, Mapping[str, Any]]:
        """The authors as members of the guild, with their roles: messages of the history lack them.

        At most ``AUTHORS`` are asked for; who has left is none. Raises PlatformFailure when Discord does not answer.
        """
        found: dict[str, Mapping[str, Any]] = {}
        authors = [one["author"] for one in messages if isinstance(one.get("author"), dict)]
        people = dict.fromkeys(a["id"] for a in authors if is_snowflake(a.get("id")) and not a.get("bot"))
        for user in list(people)[:AUTHORS]:
            try:
                answer = await self._get(f"/guilds/{guild}/members/{user}", ("member", guild))
            except PlatformFailure as failure:
                if not _is_refusal(failure.facts):
                    raise
                continue
            if isinstance(answer, dict):
                found[user] = answer
        return found

    async def address_of(self, ref: str) -> str:
        """Where the file ``channel:message:file`` can be fetched for now. Raises PlatformFailure."""
        channel, _, rest = ref.partition(":")
        message, _, file = rest.partition(":")
        if not (is_snowflake(channel) and is_snowflake(message) and is_snowflake(file)):
            raise PlatformFailure(self._failures.bound("download", "not a file of this platform"))
        answer = await self._get(f"/channels/{channel}/messages/{message}", ("message", channel))
        for one in _files(answer):
            if one.get("id") == file and isinstance(one.get("url"), str):
                return str(one["url"])
        raise PlatformFailure(self._failures.bound("download", "the message does not hold that file any more"))

    async def _get(self, path: str, route: tuple[str, str], query: Mapping[str, str] | None = None) -> Any:
        request = self._rest.call("GET", path, query=query, route=route)
        return await self._failures.guard(route[0], request, self._limit)


def _files(message: object) -> list[Mapping[str, Any]]:
    """The files of a message and of those forwarded in it."""
    if not isinstance(message, Mapping):
        return []
    found = list(mappings(message.get("attachments")))
    for snapshot in mappings(message.get("message_snapshots")):
        found += _files(snapshot.get("message"))
    return found


def _is_refusal(facts: DeliveryFacts) -> bool:
    """An answer about this channel alone: another one may well be read."""
    return facts.status is not None and facts.sent is Sent.REFUSED and facts.status != 401
