"""What parts report to each other without knowing each other; logs what the owner should read."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.app.figures import Figures
from hermes.app.parts import Gateway
from hermes.core.door import LiveKind
from hermes.core.ids import SessionId
from hermes.core.links import Link
from hermes.core.records import Accepted, OutboxRow, StrangerCount
from hermes.runtime.logs import get_logger

log = get_logger(__name__)


class Hooks:
    """What parts report to each other without knowing each other."""

    def __init__(self, metrics: Figures) -> None:
        self._metrics = metrics
        self._strangers_told: set[tuple[str, str]] = set()
        self.gateway: Gateway | None = None

    def accepted(self, accepted: Sequence[Accepted]) -> None:
        assert self.gateway is not None
        self.gateway.pacer.dead.heard(one.row for one in accepted)
        self.gateway.dispatch.on_accepted(accepted)
        for one in accepted:
            self._metrics.received(one.row.update.platform)

    def wake(self, session: SessionId) -> None:
        assert self.gateway is not None
        self.gateway.dispatch.lanes.wake(session)

    def delivered(self, row: OutboxRow) -> None:
        assert self.gateway is not None
        self._metrics.delivered(row)
        self.gateway.door.delivered(row)

    def lost(self, row: OutboxRow, reason: str) -> None:
        log.error("delivery_lost", platform=row.address.platform, chat=row.address.chat_id, delivery=row.delivery_id,
                  reason=reason, cure="hermes dead-letters list")  # fmt: skip
        self._metrics.delivery_lost(row.address.platform)

    def link_changed(self, link: Link) -> None:
        if self.gateway is not None:
            self.gateway.bus.broadcast(LiveKind.LINKS, link.platform)

    def link_notice(self, link: Link, text: str) -> None:
        log.error("link_needs_you", platform=link.platform, state=link.state.value, told=text)
        if self.gateway is not None:
            self.gateway.homes.link_needs_owner(link, text)

    def stranger(self, stranger: StrangerCount) -> None:
        """Strangers hear nothing; the owner reads the id and the line to add, once a start."""
        key = (stranger.platform, stranger.user_id)
        if key in self._strangers_told or len(self._strangers_told) >= 100:
            return
        self._strangers_told.add(key)
        log.warning(
            "stranger", platform=stranger.platform, user_id=stranger.user_id,
            to_allow=f'add to config.yaml: platforms.{stranger.platform}.allowed_users: ["{stranger.user_id}"]',
        )  # fmt: skip

    async def status_text(self) -> str:
        assert self.gateway is not None
        health = await self.gateway.health.health()
        return "\n".join(f"{i.name}: {i.light.value} – {i.sentence}" for i in health.items)
