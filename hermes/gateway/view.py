"""What a running turn shows while it runs: live text on the page, a streamed draft, typing (R17, R20).

None of it is ever waited for by the turn, except ``settle``: before T2 no draft may be on its way, since
an older edit that arrives after the final text would overwrite it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hermes.core.clock import Clock
from hermes.core.delivery import Operation, Sent
from hermes.core.door import LiveEvent, LiveKind
from hermes.core.errors import LostFence, PlatformFailure, Poison, StoreUnavailable
from hermes.core.ports import Outgoing, Platform
from hermes.core.records import Claim, Draft
from hermes.core.stores import Outbox
from hermes.gateway.live import LiveBus
from hermes.gateway.pacer import Pacer
from hermes.gateway.platform_book import PlatformBook
from hermes.policy import drafts
from hermes.policy.delivery import classify_delivery
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

TYPING = "typing"
DRAFT_CHARS = 5_000
"""What a draft shows is its first part; more than this is not rendered on the loop each second."""


@dataclass(slots=True)
class ViewSettings:
    """``streaming`` of the configuration, and when typing begins; seconds."""

    streaming: bool = True
    first_after: float = 0.5
    min_interval: float = 1.0
    typing_after: float = 1.5
    typing_every: float = 4.5
    settle_within: float = 5.0


class Views:
    """Opens a view for each running turn."""

    def __init__(
        self,
        platforms: PlatformBook,
        outbox: Outbox,
        bus: LiveBus,
        pacer: Pacer,
        clock: Clock,
        supervisor: Supervisor,
        checkpoints: Checkpoints,
        settings: ViewSettings,
    ) -> None:
        self.platforms = platforms
        self.outbox = outbox
        self.bus = bus
        self.pacer = pacer
        self.clock = clock
        self.supervisor = supervisor
        self.checkpoints = checkpoints
        self.settings = settings

    def open(self, claim: Claim) -> TurnView:
        """A view; ``close`` it when the turn has ended, whatever its end."""
        return TurnView(self, claim)


class TurnView:
    """Implements ``ports.TurnObserver`` for one turn."""

    def __init__(self, views: Views, claim: Claim) -> None:
        self._views = views
        self._claim = claim
        self._chat_id = claim.address.chat_id
        platform = views.platforms.find(claim.address.platform)
        self._platform = platform if platform is not None and not platform.delivers_at_commit else None
        self._text: list[str] = []
        self._length = 0
        self._draft: Draft | None = claim.draft
        self._state: drafts.DraftState | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._typing: asyncio.Task[None] | None = None
        self._closed = False
        self._no_drafts = not views.settings.streaming or self._platform is None
        if self._platform is not None:
            self._typing_timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(
                views.settings.typing_after, self._begin_typing
            )
        else:
            self._typing_timer = None
        self._publish(LiveKind.TURN_STARTED)
        views.bus.begin(self._chat_id, self.so_far)

    def so_far(self) -> list[LiveEvent]:
        """For a reader who comes in the middle."""
        started = LiveEvent(LiveKind.TURN_STARTED, self._chat_id)
        shown = "".join(self._text)
        return [started, LiveEvent(LiveKind.TEXT, self._chat_id, shown)] if shown else [started]

    def on_text(self, text: str) -> None:
        self._publish(LiveKind.TEXT, text)
        self._text.append(text)
        if self._no_drafts:
            return
        self._length += len(text)
        if self._state is None:
            self._state = drafts.DraftState(self._views.clock.monotonic())
        if self._timer is None and self._sending is None:
            self._consider()

    def on_restart(self) -> None:
        self._publish(LiveKind.RESTARTED)
        self._text.clear()
        self._length = 0
        if self._state is not None:
            self._state = drafts.restarted(self._state, self._views.clock.monotonic())

    def on_notice(self, kind: str, text: str) -> None:
        self._publish(LiveKind.NOTICE, text, kind)

    def on_tool(self, name: str, phase: str) -> None:
        self._publish(LiveKind.TOOL, name, phase)

    async def settle(self) -> None:
        """No draft is on its way when this returns, or ``settle_within`` seconds have passed."""
        self._closed = True
        self._cancel_timers()
        if self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending], timeout=self._views.settings.settle_within)

    def close(self) -> None:
        """Ends typing and drafts."""
        self._closed = True
        self._cancel_timers()
        if self._typing is not None:
            self._typing.cancel()
        self._views.bus.end(self._chat_id, self.so_far)
        self._publish(LiveKind.TURN_ENDED)

    def _publish(self, kind: LiveKind, text: str = "", detail: str = "") -> None:
        if self._views.bus.watched(self._chat_id):
            self._views.bus.publish(LiveEvent(kind, self._chat_id, text, detail))

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._typing_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._typing_timer = None

    def _consider(self) -> None:
        self._timer = None
        if self._closed or self._state is None or self._sending is not None:
            return
        settings = self._views.settings
        now = self._views.clock.monotonic()
        self._state, decision = drafts.step(
            self._state, self._length, now, settings.first_after, settings.min_interval
        )
        match decision:
            case drafts.Draft():
                self._sending = self._views.supervisor.spawn(self._send_draft(), "view.draft")
            case drafts.Wait(until):
                if until is not None:
                    self._timer = asyncio.get_running_loop().call_later(until - now, self._consider)

    async def _send_draft(self) -> None:
        assert self._platform is not None
        try:
            await self._show(self._platform, "".join(self._text))
        except (LostFence, StoreUnavailable, Poison) as error:
            self._no_drafts = True
            log.info("draft_given_up", turn=self._claim.turn_id, error=str(error))
        finally:
            self._sending = None
        if not self._closed and self._timer is None:
            self._consider()

    async def _show(self, platform: Platform, text: str) -> None:
        address = self._claim.address
        key = (address.platform, address.account, address.chat_id)
        act = Operation.CREATE if self._draft is None else Operation.EDIT
        if not text.strip() or not self._views.pacer.spare(key, act.value):
            return
        with self._views.pacer.calling(key, act.value):
            await self._send_shown(platform, platform.render(text[:DRAFT_CHARS])[0].payload)

    async def _send_shown(self, platform: Platform, payload: str) -> None:
        first = self._draft is None
        address, now = self._claim.address, self._views.clock.now()
        if self._draft is None:
            self._draft = await self._views.outbox.open_draft(
                self._claim.turn_id, self._claim.epoch, address, now
            )
        draft = self._draft
        if not first and draft.receipt is None:
            return  # a create that may have arrived: T2 decides with a mark
        self._views.checkpoints.reach("drafting")
        operation = Operation.CREATE if first else Operation.EDIT
        try:
            receipt = await platform.send(
                Outgoing(address, operation, payload, f"{draft.delivery_id:x}-0", message_ref=draft.receipt)
            )
        except PlatformFailure as failure:
            await self._draft_failed(failure, draft, first)
            return
        if first:
            self._draft = Draft(draft.seq, draft.delivery_id, receipt.message_ref)
            await self._views.outbox.draft_receipt(draft.seq, receipt.message_ref, self._views.clock.now())

    async def _draft_failed(self, failure: PlatformFailure, draft: Draft, first: bool) -> None:
        assert self._state is not None
        facts = failure.facts
        if not first and classify_delivery(facts).detail == "not_modified":
            return  # a resumed turn wrote again what stands there already (R17)
        act = Operation.CREATE if first else Operation.EDIT
        await self._views.pacer.refused(self._claim.address, act.value, facts)
        self._state = drafts.refused(self._state, self._views.clock.monotonic(), facts.retry_after)
        if first and facts.sent is not Sent.MAYBE_SENT:
            await self._views.outbox.discard_draft(draft.seq, self._views.clock.now())
            self._draft = None
        log.info("draft_failed", turn=self._claim.turn_id, error=str(failure))

    def _begin_typing(self) -> None:
        if not self._closed:
            self._typing = self._views.supervisor.spawn(self._keep_typing(), "view.typing")

    async def _keep_typing(self) -> None:
        """Best effort, and never in the way of what is to be delivered."""
        assert self._platform is not None
        address = self._claim.address
        key = (address.platform, address.account, address.chat_id)
        pacer = self._views.pacer
        while not self._closed:
            if self._views.platforms.is_up(address.platform) and pacer.spare(key, TYPING):
                try:
                    with pacer.calling(key, TYPING):
                        await self._platform.typing(address)
                except PlatformFailure as failure:
                    await pacer.refused(address, TYPING, failure.facts)
            await self._views.clock.sleep(self._views.settings.typing_every)
