"""The figures as Prometheus reads them."""

from __future__ import annotations

import subprocess
import sys

from hermes.runtime.metrics import Metrics


def test_the_first_figures_are_there_and_gauges_are_asked() -> None:
    metrics = Metrics()
    metrics.messages_received.labels("telegram").inc()
    metrics.turns.labels(outcome="answered").inc(2)
    metrics.provider_calls.labels(provider="main", reason="ok").inc()
    metrics.deliveries.labels(platform="web", outcome="delivered").inc()
    metrics.inbox_age.set_function(lambda: 4.5)
    metrics.gauge("hermes_extra", "More.", lambda: 7.0)
    text = metrics.render().decode()
    for line in (
        'hermes_messages_received_total{platform="telegram"} 1.0',
        'hermes_turns_total{outcome="answered"} 2.0',
        'hermes_provider_calls_total{provider="main",reason="ok"} 1.0',
        'hermes_deliveries_total{outcome="delivered",platform="web"} 1.0',
        "hermes_inbox_oldest_seconds 4.5",
        "hermes_extra 7.0",
        "hermes_loop_lag_seconds 0.0",
    ):
        assert line in text.splitlines()


def test_two_sets_of_figures_do_not_meet() -> None:
    first, second = Metrics(), Metrics()
    first.turns.labels("x").inc()
    assert b'hermes_turns_total{outcome="x"}' not in second.render()


def test_importing_the_module_does_not_load_the_library() -> None:
    code = "import sys, hermes.runtime.metrics; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
