"""What the parts report, as Prometheus figures; label values come from closed sets only."""

from __future__ import annotations

from hermes.core.records import OutboxRow, StoreFigures
from hermes.runtime.metrics import Metrics


class Figures:
    """Small callbacks for the parts; each a counter or a gauge of ``metrics``."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._rows = metrics.gauge("hermes_outbox_pending_parts", "Parts that wait to be delivered.")
        self._dead = metrics.gauge("hermes_dead_letters", "Dead letters, held parts included.")
        self._suspended = metrics.gauge("hermes_suspended_turns", "Turns that wait for a person or an outage.")

    def received(self, platform: str) -> None:
        """A message is on disk."""
        self.metrics.messages_received.labels(platform).inc()

    def turn_ended(self, outcome: str) -> None:
        """A turn has its end."""
        self.metrics.turns.labels(outcome).inc()

    def provider_called(self, provider: str, reason: str) -> None:
        """A call ended; ``ok`` or the reason of its failure."""
        self.metrics.provider_calls.labels(provider, reason).inc()

    def delivered(self, row: OutboxRow) -> None:
        """A part has arrived."""
        self.metrics.deliveries.labels(row.address.platform, "marked" if row.marked else "delivered").inc()

    def delivery_failed(self, platform: str, reason: str) -> None:
        """One attempt failed."""
        self.metrics.deliveries.labels(platform, reason).inc()

    def delivery_lost(self, platform: str) -> None:
        """A part became a dead letter."""
        self.metrics.deliveries.labels(platform, "dead_letter").inc()

    def called(self, platform: str, status: int) -> None:
        """A platform, or somebody who says so, called us."""
        self.metrics.called.labels(platform, str(status)).inc()

    def observe(self, figures: StoreFigures, now: float) -> None:
        """Queue ages and sizes, measured by the housekeeping."""
        m = self.metrics
        m.inbox_age.set(0.0 if figures.inbox_oldest_at is None else now - figures.inbox_oldest_at)
        m.outbox_age.set(0.0 if figures.outbox_oldest_at is None else now - figures.outbox_oldest_at)
        self._rows.set(figures.outbox_pending)
        self._dead.set(figures.dead_letters + figures.outbox_failed + figures.outbox_held)
        self._suspended.set(figures.suspended_turns)

    def render(self) -> bytes:
        """The text exposition."""
        return self.metrics.render()
