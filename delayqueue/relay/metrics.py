"""What Prometheus can read about a relay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from delayqueue.relay.relay import Relay


class RelayMetrics(Collector):
    """Reads the numbers of a relay whenever Prometheus collects them."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def collect(self) -> Iterator[Metric]:
        """Rows by their result, and how late the relay is."""
        rows = CounterMetricFamily("delayqueue_relay_rows", "Rows of the outbox", labels=["result"])
        for result in ("pushed", "cancelled", "failed"):
            rows.add_metric([result], self._relay.moved[result])
        yield rows
        yield GaugeMetricFamily(
            "delayqueue_relay_failed_rows",
            "Rows that cannot be carried out, as of the last ten seconds",
            self._relay.failed,
        )
        yield GaugeMetricFamily(
            "delayqueue_relay_oldest_seconds",
            "Age of the oldest row that waits; 0 = none waits",
            self._relay.oldest_s,
        )


def serve(relay: Relay, host: str, port: int) -> None:
    """Answer GET /metrics there, in a thread. Raises OSError if the address cannot be used."""
    registry = CollectorRegistry()
    registry.register(RelayMetrics(relay))
    start_http_server(port, host, registry)
