"""Reading Slack's past: the channels we are in, a channel's messages since a mark, one message of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address
from hermes.platforms.slack.calls import nonce_of
from hermes.platforms.slack.stamps import is_stamp, later, order, stamp_of

Call = Callable[..., Awaitable[Mapping[str, Any]]]
PAGE = 100
LIST_PAGE, LIST_PAGES = 200, 10
LOOK_PAGES = 3
RETRY = 5.0  # seconds after which a history that was refused is asked for again
SKEW = 300.0  # seconds by which Slack's clock and ours may differ
REFUSES_US = frozenset({"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"})
_NO_LOOK = frozenset({"missing_scope", "not_in_channel", "channel_not_found", "method_not_supported_for_channel_type"})


class CannotLook(Exception):
    """The app may not read this channel."""


class History:
    """``call(method, form)`` makes one call. ``wait``: how long a refused history is to be left alone."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.wait = RETRY
        self.limited = False
        """Whether the last refusal was about our pace."""
        self.refusal = ""
        self.skipped = 0
        """Messages left out because there were more than the bound; at least."""

    async def channels(self) -> dict[str, str] | None:
        """Every conversation we are in, with its kind; None when the app may not list them. Raises PlatformFailure."""
        found: dict[str, str] = {}
        form = {"types": "public_channel,private_channel,mpim,im", "exclude_archived": "true", "limit": LIST_PAGE}
        for _ in range(LIST_PAGES):
            try:
                answer = await self._call("users.conversations", form)
            except PlatformFailure as failure:
                if failure.facts.code == "missing_scope":
                    return None
                raise
            for one in _objects(answer.get("channels")):
                if isinstance(one.get("id"), str):
                    found[one["id"]] = _kind(one)
            following = _cursor(answer)
            if not following:
                break
            form = {**form, "cursor": following}
        return found

    async def since(
        self, channel: str, mark: str, oldest: float, most: int, threads: Sequence[str]
    ) -> list[Mapping[str, Any]] | None:
        """The newest ``most`` messages after ``mark`` and not older than ``oldest`` (unix seconds), oldest first,
        those in threads included: in the given ones, and in those whose first message is among what was read.

        None when Slack refuses; raises PlatformFailure when it does not answer.
        """
        after = mark if later(mark, stamp_of(oldest)) else stamp_of(oldest)
        found: dict[str, Mapping[str, Any]] = {}
        try:
            for one in await self._pages("conversations.history", {"channel": channel, "oldest": after}, most):
                found[one["ts"]] = one
            grown = [ts for ts, one in found.items() if one.get("reply_count")]
            for thread in dict.fromkeys((*threads, *grown)):
                form = {"channel": channel, "ts": thread, "oldest": after}
                for one in await self._pages("conversations.replies", form, most, missing_is_empty=True):
                    found[one["ts"]] = one
        except PlatformFailure as failure:
            if not _is_refusal(failure.facts):
                raise
            self.wait = failure.facts.retry_after or RETRY
            self.refusal = failure.facts.message
            self.limited = failure.facts.status == 429 or failure.facts.code == "ratelimited"
            return None
        told = sorted((ts for ts in found if later(ts, after)), key=order)
        self.skipped += max(0, len(told) - most)
        return [found[ts] for ts in told[-most:]] if most else []

    async def _pages(
        self, method: str, form: Mapping[str, Any], most: int, *, missing_is_empty: bool = False
    ) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        asked: dict[str, Any] = {**form, "limit": PAGE}
        while len(found) < most:
            try:
                answer = await self._call(method, asked)
            except PlatformFailure as failure:
                if missing_is_empty and failure.facts.code == "thread_not_found":
                    return found
                raise
            found += [one for one in _objects(answer.get("messages")) if is_stamp(one.get("ts"))]
            following = _cursor(answer)
            if not following:
                break
            asked["cursor"] = following
        return found

    async def newest(self, channel: str, mark: str) -> list[Mapping[str, Any]] | None:
        """A few messages after ``mark``, newest first; None when Slack refuses. Raises PlatformFailure."""
        try:
            answer = await self._call("conversations.history", {"channel": channel, "oldest": mark, "limit": 15})
        except PlatformFailure as failure:
            if not _is_refusal(failure.facts):
                raise
            return None
        return [one for one in _objects(answer.get("messages")) if is_stamp(one.get("ts")) and later(one["ts"], mark)]

    async def ours(self, address: Address, nonce: str, since: float) -> Mapping[str, Any] | None:
        """Our message that carries ``nonce`` and is not older than ``since``; None when there is none.

        Raises CannotLook, and PlatformFailure when the look failed otherwise.
        """
        form: dict[str, Any] = {
            "channel": address.chat_id, "oldest": stamp_of(since - SKEW), "limit": PAGE, "include_all_metadata": "true",
        }  # fmt: skip
        method = "conversations.history"
        if address.thread_id is not None:
            method, form = "conversations.replies", form | {"ts": address.thread_id}
        for _ in range(LOOK_PAGES):
            try:
                answer = await self._call(method, form)
            except PlatformFailure as failure:
                if failure.facts.code == "thread_not_found":
                    return None
                if failure.facts.code in _NO_LOOK:
                    raise CannotLook from None
                raise
            for one in _objects(answer.get("messages")):
                if nonce_of(one) == nonce and is_stamp(one.get("ts")):
                    return one
            following = _cursor(answer)
            if not following:
                return None
            form["cursor"] = following
        return None


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _cursor(answer: Mapping[str, Any]) -> str:
    meta = answer.get("response_metadata")
    return str(meta.get("next_cursor") or "") if isinstance(meta, Mapping) else ""


def _kind(conversation: Mapping[str, Any]) -> str:
    if conversation.get("is_im"):
        return "im"
    if conversation.get("is_mpim"):
        return "mpim"
    return "group" if conversation.get("is_private") else "channel"


def _is_refusal(facts: DeliveryFacts) -> bool:
    """An answer about this channel alone, or about our pace: another one may well be read, or later."""
    answered = facts.status is not None and facts.sent is Sent.REFUSED
    return answered and facts.status != 401 and facts.code not in REFUSES_US
