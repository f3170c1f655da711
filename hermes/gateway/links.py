"""A platform's link: receive cycles, T1, reconnection and the failed-platforms queue (DESIGN §5 "Links").

    connect ─► receive ─► T1 ─► confirm ─► receive …        one task a platform, none waits for another
       └──────────┴─ failure: facts ─► step(link, event) ─► same link | rebuild | park, each with its time
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from hermes.core.clock import Clock
from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.errors import PlatformFailure, StoreUnavailable
from hermes.core.links import Connected, CycleCompleted, CycleFailed, Link, LinkEvent, LinkState, ReconnectNow
from hermes.core.ports import CatchesUp, Platform
from hermes.gateway.ingest import Ingest
from hermes.gateway.platform_book import PlatformBook
from hermes.policy.delivery import classify_delivery
from hermes.policy.reconnect import ReconnectPolicy, initial, sentence, step
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

STORE_RETRY_SECONDS = 2.0
BREATH_SECONDS = 0.003
"""What has just come in goes first: the next cycle's request would be built while its claim is written. Short,
because that request also confirms what has come in."""


def _held_elsewhere(platform: str) -> DeliveryFacts:
    """Another gateway on this machine holds the token: stand by, take over when it is gone (R32)."""
    return DeliveryFacts(
        platform, status=409, message="Conflict: another gateway on this machine receives with this token",
        sent=Sent.NOT_SENT,
    )  # fmt: skip


def _named(platform: Platform, cursors: Mapping[str, str]) -> dict[str, str]:
    """Cursors under the names that the inbox takes."""
    return {f"{platform.name}\n{platform.account}\n{name}": value for name, value in cursors.items()}


class Links:
    """All platforms' links: every one connects at once, each under its own task."""

    def __init__(
        self,
        platforms: PlatformBook,
        ingest: Ingest,
        clock: Clock,
        random: Callable[[], float],
        supervisor: Supervisor,
        policy: ReconnectPolicy,
        *,
        checkpoints: Checkpoints,
        may_receive: Callable[[str], bool] = lambda platform: True,
        has_room: Callable[[], bool] = lambda: True,
        on_change: Callable[[Link], None] = lambda link: None,
        on_notice: Callable[[Link, str], None] = lambda link, text: None,
    ) -> None:
        self._platforms = platforms
        self._ingest = ingest
        self._clock = clock
        self._random = random
        self._supervisor = supervisor
        self.policy = policy
        self._checkpoints = checkpoints
        self._may_receive = may_receive
        self.has_room = has_room
        self._on_change = on_change
        self._on_notice = on_notice
        self._links: dict[str, Link] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def states(self) -> Iterable[Link]:
        """The links as they are now."""
        return tuple(self._links.values())

    def start(self) -> None:
        """Starts one supervised task for each platform that receives."""
        for platform in self._platforms:
            if platform.delivers_at_commit:
                continue
            self._links[platform.name] = initial(platform.name, self._clock.now())
            self._spawn(platform, None)

    def reconnect(self, name: str) -> None:
        """The owner asked: a fresh client at once, whatever the link waits for. KeyError for an unknown name."""
        before, platform = self._tasks[name], self._platforms.get(name)
        before.cancel()
        self._event(platform, ReconnectNow())
        self._spawn(platform, before)

    def _spawn(self, platform: Platform, before: asyncio.Task[None] | None) -> None:
        run = partial(self._run, platform, before)
        self._tasks[platform.name] = self._supervisor.spawn_forever(run, f"link.{platform.name}")

    async def stop(self) -> None:
        """Intake ends: receive cycles are cancelled where they stand; nothing unconfirmed is lost."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        self._tasks.clear()

    async def _run(self, platform: Platform, before: asyncio.Task[None] | None) -> None:
        """``before``: the task that this one takes over from; its client is not used again."""
        if before is not None:
            await asyncio.wait([before])
            await platform.rebuild()
        connected = False
        while True:
            try:
                if not self._may_receive(platform.name):
                    raise PlatformFailure(_held_elsewhere(platform.name))
                if not connected:
                    if isinstance(platform, CatchesUp) and platform.account:
                        platform.resume_from(await self._ingest.cursors(platform.name, platform.account))
                    await platform.connect()
                    if isinstance(platform, CatchesUp):
                        platform.resume_from(await self._ingest.cursors(platform.name, platform.account))
                    connected = True
                    self._event(platform, Connected())
                    self._platforms.set_up(platform.name, True)
                if not self.has_room():
                    raise StoreUnavailable("the disk is nearly full (gateway.disk_floor)")
                batch = await platform.receive()
                if batch.updates or batch.cursors:
                    await self._ingest.accept(batch.updates, _named(platform, batch.cursors))
                platform.confirm(batch)
                self._checkpoints.reach("after_offset")
                self._event(platform, CycleCompleted())
                self._platforms.prove(platform.name, self._clock.now())
                if batch.updates:
                    await self._clock.sleep(BREATH_SECONDS)
            except StoreUnavailable as error:
                # nothing was confirmed: the platform offers the same updates again
                log.error("intake_waits_for_the_store", platform=platform.name, error=str(error))
                await self._clock.sleep(STORE_RETRY_SECONDS)
            except PlatformFailure as failure:
                connected = await self._failed(platform, failure, connected)

    async def _failed(self, platform: Platform, failure: PlatformFailure, connected: bool) -> bool:
        """Waits as the link's state says; returns whether the connection may be used again."""
        verdict = classify_delivery(failure.facts)
        link = self._event(platform, CycleFailed(verdict, failure.facts.message))
        if not connected or not (link.is_usable or link.state is LinkState.CONFLICT):
            self._platforms.set_up(platform.name, False)
        log.warning(
            "link_failed", platform=platform.name, state=link.state.value, reason=verdict.reason.value,
            retry_in=round(max(0.0, link.next_try_at - self._clock.now()), 1), error=str(failure),
        )  # fmt: skip
        if link.notice:
            self._on_notice(link, sentence(link, now=self._clock.now()))
        await self._clock.sleep(max(0.0, link.next_try_at - self._clock.now()))
        if link.rebuild_client or not connected:
            await platform.rebuild()
            return False
        return True

    def _event(self, platform: Platform, event: LinkEvent) -> Link:
        before = self._links[platform.name]
        link = step(before, event, policy=self.policy, now=self._clock.now(), u=self._random())
        self._links[platform.name] = link
        if link.state is not before.state:
            log.info("link", platform=platform.name, state=link.state.value)
            self._on_change(link)
        return link
