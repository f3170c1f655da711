"""The figures of /metrics, over prometheus-client with a registry of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Gauge

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The first figures as attributes; `gauge` and `counter` add more.

    Label values must come from a small closed set: each new one is kept for ever.
    """

    def __init__(self) -> None:
        # Imported here: it brings http.server and ssl, which no other command needs.
        from prometheus_client import CollectorRegistry, Counter
        from prometheus_client.process_collector import ProcessCollector

        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        self.messages_received = Counter(
            "hermes_messages_received", "Messages accepted on disk.", ["platform"], registry=self.registry
        )
        self.turns = Counter("hermes_turns", "Turns by how they ended.", ["outcome"], registry=self.registry)
        self.provider_calls = Counter(
            "hermes_provider_calls",
            "Calls of a model by reason of failure, `ok` for none.",
            ["provider", "reason"],
            registry=self.registry,
        )
        self.deliveries = Counter(
            "hermes_deliveries",
            "Parts of replies by how their delivery ended.",
            ["platform", "outcome"],
            registry=self.registry,
        )
        self.called = Counter(
            "hermes_platform_calls",
            "Requests of platforms that call us, by the status of the answer; 401: not signed by the platform.",
            ["platform", "status"],
            registry=self.registry,
        )
        self.loop_lag = self.gauge("hermes_loop_lag_seconds", "Lateness of the event loop.")
        self.output_lost = self.gauge("hermes_output_lost_lines", "Lines of output that were dropped.")
        self.inbox_age = self.gauge("hermes_inbox_oldest_seconds", "Age of the oldest unserved message.")
        self.outbox_age = self.gauge("hermes_outbox_oldest_seconds", "Age of the oldest undelivered part.")

    def gauge(self, name: str, meaning: str, source: Callable[[], float] | None = None) -> Gauge:
        """A gauge, asked of `source` at each scrape if given (else set it, or use its `set_function`)."""
        from prometheus_client import Gauge

        gauge = Gauge(name, meaning, registry=self.registry)
        if source is not None:
            gauge.set_function(source)
        return gauge

    def render(self) -> bytes:
        """The text exposition; runs every gauge's source, so call it on the loop. Type: CONTENT_TYPE."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)
