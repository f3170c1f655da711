"""The chat commands in each platform's own menu: published from the one registry, off the ready path."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.core.clock import Clock
from hermes.core.errors import PlatformFailure
from hermes.core.ports import CommandMenu, MenuEntry
from hermes.gateway.platform_book import PlatformBook
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

RETRY_SECONDS = 600.0
"""How soon a menu that was refused is offered again; the platform serves without it."""


class Menus:
    """Publishes once a process and platform, when the platform is first up; a failure is tried again later."""

    def __init__(
        self,
        platforms: PlatformBook,
        entries: Callable[[], Sequence[MenuEntry]],
        clock: Clock,
        supervisor: Supervisor,
    ) -> None:
        self._platforms = platforms
        self._entries = entries
        self._clock = clock
        self._supervisor = supervisor
        self._next_try: dict[str, float | None] = {
            platform.name: 0.0 for platform in platforms if isinstance(platform, CommandMenu)
        }

    def start(self) -> None:
        """From now on a platform that comes up gets its menu."""
        self._platforms.on_up(self._is_up)

    def _is_up(self, name: str) -> None:
        due = self._next_try.get(name)
        if due is None or due > self._clock.monotonic():
            return
        self._next_try[name] = None
        self._supervisor.spawn(self._publish(name), f"menu.{name}")

    async def _publish(self, name: str) -> None:
        platform = self._platforms.get(name)
        assert isinstance(platform, CommandMenu)
        try:
            written = await platform.publish_commands(self._entries())
        except PlatformFailure as failure:
            self._next_try[name] = self._clock.monotonic() + RETRY_SECONDS
            log.warning("menu_refused", platform=name, error=str(failure))
            return
        log.info("menu", platform=name, written=written)
