"""Home channels: where the owner is told that a platform needs them, and the commands of the house."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hermes.core.clock import Clock
from hermes.core.errors import StoreUnavailable
from hermes.core.events import Address
from hermes.core.homes import HomeStore
from hermes.core.links import Link
from hermes.core.principals import Role
from hermes.core.records import OutboxRow, Priority
from hermes.core.stores import Outbox
from hermes.gateway.commands import CommandCall, CommandSpec
from hermes.gateway.links import Links
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.replies import PlatformReplies
from hermes.policy.reconnect import sentence
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

NOTICE_SECONDS = 86_400.0


class Homes:
    """``configured``: ``platforms.NAME.home_channel``; what /sethome chose goes before it."""

    def __init__(
        self,
        store: HomeStore,
        outbox: Outbox,
        replies: PlatformReplies,
        platforms: PlatformBook,
        links: Links,
        clock: Clock,
        supervisor: Supervisor,
        offer: Callable[[Sequence[OutboxRow]], None],
        configured: Mapping[str, str],
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._replies = replies
        self._platforms = platforms
        self._links = links
        self._clock = clock
        self._supervisor = supervisor
        self._offer = offer
        self.configured = dict(configured)
        self._chosen: dict[str, Address] = {}
        self.reload: Callable[[], str] = lambda: "There is no configuration to read again."

    @property
    def specs(self) -> tuple[CommandSpec, ...]:
        """For the registry."""
        return (
            CommandSpec("sethome", "send me notices here", self._sethome, least=Role.OWNER),
            CommandSpec("platform", "NAME – how platforms are connected, or connect one anew", self._platform,
                        least=Role.OWNER),
            CommandSpec("reload", "read the configuration again", self._reload, least=Role.OWNER),
        )  # fmt: skip

    async def load(self) -> None:
        """What earlier processes were told."""
        self._chosen = dict(await self._store.all())

    def of(self, platform: str) -> Address | None:
        """The platform's home channel, if it has one."""
        if platform in self._chosen:
            return self._chosen[platform]
        chat = self.configured.get(platform)
        known = self._platforms.find(platform)
        return Address(platform, known.account, chat) if chat and known is not None else None

    def link_needs_owner(self, link: Link, text: str) -> None:
        """One notice on each other platform's home channel; the broken one cannot carry it. Returns at once."""
        self._supervisor.spawn(self._tell(link.platform, text), "home notice")

    async def _tell(self, broken: str, text: str) -> None:
        homes = [self.of(platform.name) for platform in self._platforms if platform.name != broken]
        now = self._clock.now()
        notices = [
            replace(self._replies.reply(home, None, text, Priority.NOTICE), expires_at=now + NOTICE_SECONDS)
            for home in homes
            if home is not None
        ]
        if not notices:
            return
        try:
            self._offer(await self._outbox.enqueue(notices, now))
        except StoreUnavailable as error:
            log.warning("home_notice_lost", platform=broken, error=str(error))

    async def _sethome(self, call: CommandCall) -> str:
        address = replace(call.event.address, reply_to=None)
        await self._store.keep(address)
        self._chosen[address.platform] = address
        return "I send notices here from now on."

    async def _platform(self, call: CommandCall) -> str:
        name = call.argument.strip().lower()
        now = self._clock.now()
        links = {link.platform: link for link in self._links.states()}
        if not name:
            lines = [sentence(link, now=now) for link in links.values()]
            return "\n".join(lines) or "No platform receives here; the page is always there."
        if name not in links:
            return f"There is no platform {name!r} here. There are: {', '.join(links) or 'none'}."
        self._links.reconnect(name)
        return f"I connect {name} anew; /platform says how it went."

    async def _reload(self, call: CommandCall) -> str:
        return self.reload()
