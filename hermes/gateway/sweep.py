"""``send_with_retry``: one attempt, its failure classified, the pure ``decide`` obeyed (R18, R19).

Between two attempts the row is ``pending`` on disk with its count, never ``sending``: a process killed
while it waits does not make a repeat doubtful.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import assert_never

from hermes.core.clock import Clock
from hermes.core.delivery import (
    Bury as DecideBury,
)
from hermes.core.delivery import (
    DeliveryFacts,
    DeliveryReason,
    DeliveryVerdict,
    SendAgain,
    SendMarked,
    SendPlain,
    Sent,
    Succeeded,
)
from hermes.core.delivery import (
    Hold as DecideHold,
)
from hermes.core.delivery import (
    WaitLink as DecideWait,
)
from hermes.core.errors import PlatformFailure
from hermes.core.ports import Outgoing, Platform
from hermes.core.records import OutboxRow
from hermes.gateway.pacer import Pacer
from hermes.gateway.platform_book import PlatformBook
from hermes.policy.delivery import SweepPolicy, classify_delivery, decide
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

SLOWEST_UPLOAD = 50_000.0
"""Bytes a second that a file is given time for, beyond the time of any send."""
LINK_WAIT_SECONDS = 30.0
"""How soon a row is tried again whose platform looks up but did not take it."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The platform has it; ``receipt`` is its name there, None where it gave none."""

    receipt: str | None


@dataclass(frozen=True, slots=True)
class PutBack:
    """Pending again, not before then."""

    not_before: float
    attempts: int
    marked: bool


@dataclass(frozen=True, slots=True)
class WaitForLink:
    """Pending until the link is up, or the row's age bound."""

    not_before: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Listed for the owner: it may have been delivered, and repeating it is not wanted."""

    reason: str


@dataclass(frozen=True, slots=True)
class Bury:
    """A dead letter."""

    reason: str


SweepEnd = Delivered | PutBack | WaitForLink | Hold | Bury


class Sweep:
    """Makes one attempt for a row and says what becomes of the row."""

    def __init__(
        self,
        platforms: PlatformBook,
        pacer: Pacer,
        clock: Clock,
        random: Callable[[], float],
        checkpoints: Checkpoints,
        *,
        policy: SweepPolicy,
        send_timeout: float = 60.0,
        on_verdict: Callable[[str, str], None] = lambda platform, reason: None,
    ) -> None:
        self._platforms = platforms
        self._pacer = pacer
        self._clock = clock
        self._random = random
        self._checkpoints = checkpoints
        self.policy = policy
        self._send_timeout = send_timeout
        self._on_verdict = on_verdict
        self.read_file: Callable[[str], Awaitable[bytes | None]] | None = None
        """A file of the spool by its hash; set by who has the spool."""

    async def send(self, row: OutboxRow) -> SweepEnd:
        """Never raises for a delivery that failed; raises only faults of ours and CancelledError."""
        platform = self._platforms.find(row.address.platform)
        if platform is None:
            return Bury(f"platform {row.address.platform} is not configured any more")
        gone = self._pacer.dead.reason((row.address.platform, row.address.account, row.address.chat_id))
        if gone is not None:
            return Bury(f"the chat is retired: {gone}")
        content = None
        if row.file is not None:
            content = await self.read_file(row.file) if self.read_file is not None else None
            if content is None:
                return Bury("its file is not in the spool any more")
        plain = False
        while True:
            self._checkpoints.reach("sending_before_bytes")
            verdict = await self._attempt(platform, row, plain, content)
            if isinstance(verdict, Delivered):
                return verdict
            facts_verdict, failure = verdict
            self._on_verdict(platform.name, facts_verdict.reason.value)
            now = self._clock.now()
            if facts_verdict.reason is DeliveryReason.FLOOD_WAIT:
                until = await self._pacer.refused(
                    row.address, row.operation.value, failure.facts, self.policy.base_delay
                )
                return PutBack(until, row.attempts, row.marked)
            decision = decide(
                facts_verdict, failure.facts, attempt=row.attempts, operation=row.operation,
                nonce_enforced=platform.creates_are_safe, marked_already=row.marked,
                u=self._random(), policy=self.policy,
            )  # fmt: skip
            if isinstance(decision, DecideBury):
                told = failure.facts.message or decision.why
                await self._pacer.dead.judge(row.address, row.operation, facts_verdict, told)
            match decision:
                case SendPlain() if not plain:
                    plain = True
                    continue
                case _:
                    return self._obey(row, decision, facts_verdict, now)

    async def _attempt(
        self, platform: Platform, row: OutboxRow, plain: bool, content: bytes | None
    ) -> Delivered | tuple[DeliveryVerdict, PlatformFailure]:
        outgoing = Outgoing(
            row.address, row.operation, row.payload, row.nonce, row.marked, row.receipt, plain, row.created_at,
            content,
        )
        try:
            async with asyncio.timeout(self._send_timeout + len(content or b"") / SLOWEST_UPLOAD):
                receipt = await platform.send(outgoing)
        except PlatformFailure as failure:
            return classify_delivery(failure.facts), failure
        except TimeoutError:
            # above every limit of the adapter: the bytes may have left
            slow = DeliveryFacts(platform.name, "TimeoutError", message="no answer in time", sent=Sent.MAYBE_SENT)
            return classify_delivery(slow), PlatformFailure(slow)
        self._checkpoints.reach("sending_after_bytes")
        return Delivered(receipt.message_ref)

    def _obey(
        self,
        row: OutboxRow,
        decision: SendAgain | SendMarked | DecideHold | DecideBury | Succeeded | SendPlain | DecideWait,
        verdict: DeliveryVerdict,
        now: float,
    ) -> SweepEnd:
        match decision:
            case SendAgain(after):
                return PutBack(now + after, row.attempts + 1, row.marked)
            case SendMarked(after):
                return PutBack(now + after, row.attempts + 1, True)
            case DecideHold(why):
                return Hold(why)
            case DecideBury(why):
                return Bury(why)
            case Succeeded():
                return Delivered(row.receipt)
            case SendPlain():
                return Bury(f"refused even without formatting: {verdict.reason.value}")
            case DecideWait():
                return WaitForLink(now + LINK_WAIT_SECONDS)
            case _:
                assert_never(decision)
